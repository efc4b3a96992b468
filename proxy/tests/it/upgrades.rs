//! WebSocket over a stream of HTTP/2 (RFC 8441).

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use hyper::body::Incoming;
use hyper::client::conn::http2::SendRequest;
use hyper::ext::Protocol;
use hyper::upgrade::Upgraded;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::support::client::{Answer, Client, Front, get};
use crate::support::mesh::{documents, everything_to, everything_to_address, gateway, routes};
use crate::support::origin::{Back, Body, Origin, RawOrigin, empty, full, read_head};
use crate::support::proxy::Proxy;
use crate::support::{DEADLINE, until};

/// Switches to WebSocket on `/chat`, by the requested protocol, and echoes every message; answers other paths with an
/// ordinary response.
pub async fn chat(mut request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    if path != "/chat" {
        let mut response = Response::new(full(path.clone()));
        if path == "/refuse" {
            *response.status_mut() = StatusCode::FORBIDDEN;
        }
        return response;
    }
    let key = derive_accept_key(request.headers()["sec-websocket-key"].as_bytes());
    let protocol = request.headers().get("sec-websocket-protocol").cloned();
    let upgraded = hyper::upgrade::on(&mut request);
    tokio::task::spawn_local(async move {
        let io = TokioIo::new(upgraded.await.unwrap());
        let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
        while let Some(Ok(message)) = socket.next().await {
            if message.is_text() {
                socket.send(message).await.unwrap();
            }
        }
    });
    let mut response = Response::new(empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert("connection", "Upgrade".parse().unwrap());
    headers.insert("upgrade", "websocket".parse().unwrap());
    headers.insert("sec-websocket-accept", key.parse().unwrap());
    if let Some(protocol) = protocol {
        headers.insert("sec-websocket-protocol", protocol);
    }
    response
}

/// Opens a connection and waits for the proxy's SETTINGS, so that extended CONNECT may be used on it.
async fn connected(proxy: &Proxy) -> SendRequest<Body> {
    let mut client = Client::connect(Front::H2, proxy.edge).await;
    assert!(client.get("/ready").await.status < 500);
    client.http2_handle().unwrap()
}

async fn connect(sender: &mut SendRequest<Body>, path: &str) -> Response<Incoming> {
    connect_to(sender, path, Protocol::from_static("websocket")).await
}

async fn connect_to(
    sender: &mut SendRequest<Body>,
    path: &str,
    protocol: Protocol,
) -> Response<Incoming> {
    let mut request = Request::connect(format!("http://a.test{path}"))
        .header("sec-websocket-version", "13")
        .header("sec-websocket-protocol", "echo")
        .body(empty())
        .unwrap();
    request.extensions_mut().insert(protocol);
    sender.ready().await.unwrap();
    sender.send_request(request).await.unwrap()
}

async fn socket(response: Response<Incoming>) -> WebSocketStream<TokioIo<Upgraded>> {
    let io = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    WebSocketStream::from_raw_socket(io, Role::Client, None).await
}

#[tokio::test]
async fn web_socket_over_http2_reaches_an_http1_origin() {
    let origin = Origin::start(Back::H1, chat);
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let mut sender = connected(&proxy).await;
    let response = connect(&mut sender, "/chat").await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["sec-websocket-protocol"], "echo");
    for name in ["connection", "upgrade", "sec-websocket-accept"] {
        assert!(!response.headers().contains_key(name), "{name}");
    }
    let mut first = socket(response).await;
    let mut second = socket(connect(&mut sender, "/chat").await).await;
    let large = "x".repeat(300_000);
    for text in ["hello", "", &large] {
        for socket in [&mut first, &mut second] {
            socket.send(Message::text(text)).await.unwrap();
            assert_eq!(socket.next().await.unwrap().unwrap(), Message::text(text));
        }
        // Other requests pass on the same connection meanwhile.
        let answer = sender.send_request(get("/other")).await.unwrap();
        assert_eq!(Answer::read(answer).await.unwrap().text(), "/other");
    }
    assert_eq!(proxy.metric("strait_upgrades_active", &[]), 2.0);
    for mut socket in [first, second] {
        socket.close(None).await.unwrap();
        while socket.next().await.is_some_and(|message| message.is_ok()) {}
    }
    until("the tunnels end", async || {
        proxy.metric("strait_upgrades_active", &[]) == 0.0
    })
    .await;
    let seen = origin.seen();
    let seen = seen.iter().find(|seen| seen.path() == "/chat").unwrap();
    assert_eq!(seen.method, "GET");
    assert_eq!(seen.header("upgrade"), Some("websocket"));
    assert_eq!(seen.header("connection"), Some("upgrade"));
    assert_eq!(seen.header("sec-websocket-version"), Some("13"));
    assert_eq!(seen.header("sec-websocket-key").map(str::len), Some(24));
    let logged = proxy.logged("/chat");
    assert_eq!(logged["method"], "GET");
    assert_eq!(logged["protocol"], "HTTP/2");
    assert_eq!(logged["response_code"], 101);
    assert_eq!(logged["response_flags"], "-");
    // The connection is still in step.
    let answer = sender.send_request(get("/after")).await.unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn response_other_than_101_opens_no_tunnel() {
    let origin = Origin::start(Back::H1, chat);
    let direct = "\
- match: [{uri: {exact: /direct}}]
  directResponse: {status: 200, body: {string: hi}}
- route: [{destination: {host: web.test}}]";
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(&[edge]),
            crate::support::mesh::service("web", Back::H1, &[(origin.address, "v1")]),
            routes("all", "[\"*\"]", direct),
        ])
    });
    let mut sender = connected(&proxy).await;
    let answer = Answer::read(connect(&mut sender, "/refuse").await)
        .await
        .unwrap();
    assert_eq!((answer.status, answer.text()), (403, "/refuse"));
    // Success would tell the client that it has a tunnel.
    for path in ["/ordinary", "/direct"] {
        let answer = Answer::read(connect(&mut sender, path).await)
            .await
            .unwrap();
        assert_eq!((answer.status, answer.text()), (502, ""), "{path}");
    }
    assert_eq!(proxy.metric("strait_upgrades_active", &[]), 0.0);
    let answer = sender.send_request(get("/after")).await.unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn http2_endpoints_get_no_upgrade_request() {
    let origin = Origin::start(Back::H2, |_| async { Response::new(full(Bytes::new())) });
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let mut sender = connected(&proxy).await;
    let answer = Answer::read(connect(&mut sender, "/chat").await)
        .await
        .unwrap();
    assert_eq!(answer.status, 403);
    assert_eq!(
        proxy.logged("/chat")["response_code_details"],
        "upgrade_failed"
    );
    assert_eq!(origin.seen().len(), 1);
}

#[tokio::test]
async fn h2c_upgrade_is_rejected_over_http2_and_ignored_over_http1() {
    let origin = Origin::start(Back::H1, chat);
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let mut sender = connected(&proxy).await;
    let protocol = Protocol::from_static("h2c");
    let answer = connect_to(&mut sender, "/chat", protocol).await;
    assert_eq!(answer.status(), 403);
    assert_eq!(origin.seen().len(), 1);
    // HTTP/1 clients are served as if they had not asked
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let mut request = get("/plain");
    for (name, value) in [
        ("connection", "Upgrade, HTTP2-Settings"),
        ("upgrade", "h2c"),
        ("http2-settings", "AAMAAABkAAQCAAAAAAIAAAAA"),
    ] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    assert_eq!(client.call(request).await.status, 200);
    let seen = origin.seen();
    for name in ["connection", "upgrade", "http2-settings"] {
        assert_eq!(seen[1].header(name), None);
    }
}

#[tokio::test]
async fn plain_connect_has_no_route() {
    let origin = Origin::start(Back::H1, chat);
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let mut sender = connected(&proxy).await;
    let request = Request::connect("a.test:80").body(empty()).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!(answer.status(), 404);
    assert_eq!(origin.seen().len(), 1);
}

/// Response with a content length, as some servers send it; it does not apply to the tunnel.
const SWITCH: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\ncontent-length: 0\r\n\r\n";

/// End of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq)]
enum TunnelEnd {
    /// Both sides close in order.
    Closed,
    /// The client resets its connection or stream.
    ClientResets,
    /// The endpoint resets its connection.
    EndpointResets,
}

fn reset(stream: TcpStream) {
    let linger = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    linger.unwrap();
}

/// Starts an origin that switches on `/chat`, reads 1,000 bytes and answers with 3,000, 300 of them with the response
/// head.
fn counted_origin(end: TunnelEnd) -> RawOrigin {
    RawOrigin::start(move |_, mut stream| {
        let mut head = read_head(&mut stream);
        while !head.starts_with("GET /chat") {
            if head.is_empty() {
                return;
            }
            let ordinary = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(ordinary).unwrap();
            head = read_head(&mut stream);
        }
        stream.write_all(&[SWITCH, &[b'd'; 300]].concat()).unwrap();
        stream.read_exact(&mut [0; 1_000]).unwrap();
        stream.write_all(&[b'd'; 2_700]).unwrap();
        let _ = stream.read(&mut [0]);
        if end == TunnelEnd::EndpointResets {
            reset(stream);
        }
    })
}

/// Sends 1,000 bytes on an upgraded HTTP/1 connection and reads 3,000.
fn exchange_http1(proxy: &Proxy, end: TunnelEnd) {
    let mut stream = TcpStream::connect(proxy.edge).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let head =
        "GET /chat HTTP/1.1\r\nhost: a.test\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    // some of it before the proxy knows whether the endpoint switches
    stream
        .write_all(&[head.as_bytes(), &[b'u'; 400]].concat())
        .unwrap();
    read_head(&mut stream);
    stream.write_all(&[b'u'; 600]).unwrap();
    stream.read_exact(&mut [0; 3_000]).unwrap();
    match end {
        TunnelEnd::Closed => drop(stream),
        TunnelEnd::ClientResets => reset(stream),
        TunnelEnd::EndpointResets => {
            stream.write_all(b"!").unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        }
    }
}

/// Sends 1,000 bytes on an upgraded HTTP/2 stream and reads 3,000.
async fn exchange_http2(proxy: &Proxy, end: TunnelEnd) {
    let mut sender = connected(proxy).await;
    let response = connect(&mut sender, "/chat").await;
    let mut io = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    io.write_all(&[b'u'; 1_000]).await.unwrap();
    io.read_exact(&mut [0; 3_000]).await.unwrap();
    match end {
        TunnelEnd::Closed => io.shutdown().await.unwrap(),
        TunnelEnd::ClientResets => drop(io),
        TunnelEnd::EndpointResets => {
            io.write_all(b"!").await.unwrap();
            let _ = io.read_to_end(&mut Vec::new()).await;
        }
    }
}

#[tokio::test]
async fn upgraded_bytes_are_logged_and_counted_however_the_tunnel_ends() {
    for end in [
        TunnelEnd::Closed,
        TunnelEnd::ClientResets,
        TunnelEnd::EndpointResets,
    ] {
        for front in [Front::H1, Front::H2] {
            let origin = counted_origin(end);
            let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, origin.address));
            match front {
                Front::H1 => exchange_http1(&proxy, end),
                Front::H2 => exchange_http2(&proxy, end).await,
            }
            // one byte more asks the endpoint for its reset
            let received = 1_000 + u32::from(end == TunnelEnd::EndpointResets);
            // the client's own task has to run meanwhile
            until("the tunnel is logged", async || {
                proxy
                    .access_log()
                    .iter()
                    .any(|line| line["path"] == "/chat")
            })
            .await;
            let logged = proxy.logged("/chat");
            assert_eq!(logged["bytes_received"], received, "{front:?} {end:?}");
            assert_eq!(logged["bytes_sent"], 3_000, "{front:?} {end:?}");
            let sum = |name| proxy.metric(name, &[("response_code", "101")]);
            let received = f64::from(received);
            assert_eq!(
                sum("istio_request_bytes_sum"),
                received,
                "{front:?} {end:?}"
            );
            assert_eq!(
                sum("istio_response_bytes_sum"),
                3_000.0,
                "{front:?} {end:?}"
            );
        }
    }
}
