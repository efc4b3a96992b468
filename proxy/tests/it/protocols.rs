//! Forwarding of all protocol pairs, bodies, trailers, interim responses, gRPC, upgrades, and back pressure.

use std::io::{Read, Write};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Channel, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use tokio_tungstenite::tungstenite::Message;

use crate::support::client::{Answer, Client, Front, get, post};
use crate::support::mesh::{
    documents, everything_to, everything_to_address, gateway, routes, service,
};
use crate::support::origin::{Back, Body, Origin, RawOrigin, empty, full, read_head};
use crate::support::proxy::{Proxy, free_address};
use crate::support::raw::Raw;
use crate::support::{eventually, until};
use crate::upgrades::chat;

const PAIRS: [(Front, Back); 4] = [
    (Front::H1, Back::H1),
    (Front::H1, Back::H2),
    (Front::H2, Back::H1),
    (Front::H2, Back::H2),
];

/// Echoes the request, or answers as the path specifies.
async fn scripted(request: Request<Incoming>) -> Response<Body> {
    let mut response = Response::new(empty());
    match request.uri().path() {
        "/echo" => {
            let trailer = request.headers().get("trailer").cloned();
            *response.body_mut() = request.into_body().map_err(Into::into).boxed_unsync();
            if let Some(trailer) = trailer {
                response.headers_mut().insert("trailer", trailer);
            }
        }
        "/length" => {
            let body = request.into_body().collect().await;
            let length = body.map(|body| body.to_bytes().len()).unwrap_or(0);
            *response.body_mut() = full(length.to_string());
        }
        "/hello" if request.method() == Method::HEAD => {
            let headers = response.headers_mut();
            headers.insert("content-length", "5".parse().unwrap());
        }
        "/hello" => *response.body_mut() = full("hello"),
        "/204" => {
            *response.status_mut() = StatusCode::NO_CONTENT;
            let headers = response.headers_mut();
            headers.insert("content-length", "0".parse().unwrap());
        }
        "/304" => {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
                .headers_mut()
                .insert("etag", "\"x\"".parse().unwrap());
        }
        "/early" => {
            *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
            *response.body_mut() = full("too much");
        }
        "/large-headers" => {
            let sent = request.headers()["x-large"].clone();
            response.headers_mut().insert("x-large", sent);
        }
        _ => *response.status_mut() = StatusCode::NOT_FOUND,
    }
    response
}

async fn each_pair(test: impl AsyncFn(Client, &Origin, &Proxy)) {
    for back in [Back::H1, Back::H2] {
        let origin = Origin::start(back, scripted);
        let proxy = Proxy::with(|edge| everything_to(edge, &origin));
        for (front, _) in PAIRS.iter().filter(|(_, of)| *of == back) {
            println!("{front:?} to {back:?}");
            test(Client::connect(*front, proxy.edge).await, &origin, &proxy).await;
        }
    }
}

#[tokio::test]
async fn plain_requests_pass_between_all_protocols() {
    each_pair(async |mut client, origin, _| {
        for _ in 0..3 {
            let answer = client.get("/hello").await;
            assert_eq!((answer.status, answer.text()), (200, "hello"));
            assert_eq!(answer.header("content-length"), Some("5"));
            assert_eq!(answer.header("server"), Some("istio-envoy"));
            assert!(answer.header("x-envoy-upstream-service-time").is_some());
        }
        assert_eq!(client.get("/nothing").await.status, 404);
        let seen = origin.seen().pop().unwrap();
        assert_eq!((seen.host(), seen.path()), ("a.test", "/nothing"));
        // One at a time, so one connection of each worker does for all.
        assert!(origin.connections() <= 2);
    })
    .await;
}

#[tokio::test]
async fn bodies_stream_in_both_directions_unchanged() {
    let bytes: Vec<u8> = (0..1u32 << 20).map(|n| ((n * 31) >> 3) as u8).collect();
    let bytes = Bytes::from(bytes);
    each_pair(async |mut client, _, _| {
        // With a length.
        let answer = client.call(post("/echo", bytes.clone())).await;
        assert_eq!(answer.status, 200);
        assert!(answer.body == bytes, "{} bytes", answer.body.len());
        // Without one: chunked in HTTP/1.1.
        let frames = bytes.chunks(10_000).map(Bytes::copy_from_slice);
        let frames: Vec<_> = frames.map(|bytes| Ok(Frame::data(bytes))).collect();
        let body = StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync();
        let request = Request::post("http://a.test/echo").body(body).unwrap();
        let answer = client.call(request).await;
        assert!(answer.body == bytes, "{} bytes", answer.body.len());
        assert_eq!(answer.header("content-length"), None);
        let answer = client.call(post("/length", bytes.clone())).await;
        assert_eq!(answer.text(), bytes.len().to_string());
    })
    .await;
}

#[tokio::test]
async fn body_frames_are_forwarded_before_the_body_ends() {
    each_pair(async |mut client, _, _| {
        let (mut sender, body) = Channel::<Bytes, crate::support::origin::BodyError>::new(1);
        let request = Request::post("http://a.test/echo");
        let request = request.body(body.boxed_unsync()).unwrap();
        sender.send_data("one".into()).await.unwrap();
        let mut response = client.send(request).await.unwrap();
        for word in ["one", "two", "three"] {
            if word != "one" {
                sender.send_data(word.into()).await.unwrap();
            }
            let frame = response.body_mut().frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), word);
        }
        drop(sender);
        assert_eq!(Answer::read(response).await.unwrap().text(), "");
    })
    .await;
}

#[tokio::test]
async fn trailers_pass_in_both_directions() {
    each_pair(async |mut client, _, _| {
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", "42".parse().unwrap());
        let frames = [
            Ok(Frame::data("body".into())),
            Ok(Frame::trailers(trailers)),
        ];
        let body = StreamBody::new(futures_util::stream::iter(frames)).boxed_unsync();
        let request = Request::post("http://a.test/echo")
            .header("te", "trailers")
            .header("trailer", "x-sum")
            .body(body)
            .unwrap();
        let answer = client.call(request).await;
        assert_eq!((answer.status, answer.text()), (200, "body"));
        assert_eq!(answer.trailers.unwrap()["x-sum"], "42");
    })
    .await;
}

#[tokio::test]
async fn bodiless_responses_keep_their_headers() {
    each_pair(async |mut client, _, _| {
        let head = Request::head("http://a.test/hello").body(empty()).unwrap();
        let answer = client.call(head).await;
        assert_eq!((answer.status, answer.body.len()), (200, 0));
        assert_eq!(answer.header("content-length"), Some("5"));
        let answer = client.get("/204").await;
        assert_eq!((answer.status, answer.body.len()), (204, 0));
        assert_eq!(answer.header("content-length"), None);
        assert_eq!(answer.header("transfer-encoding"), None);
        let answer = client.get("/304").await;
        assert_eq!((answer.status, answer.body.len()), (304, 0));
        assert_eq!(answer.header("etag"), Some("\"x\""));
        // The connection is still in step.
        assert_eq!(client.get("/hello").await.text(), "hello");
    })
    .await;
}

#[tokio::test]
async fn large_headers_pass_in_both_directions() {
    let large = "x".repeat(12 * 1024);
    each_pair(async |mut client, _, _| {
        let mut request = get("/large-headers");
        let headers = request.headers_mut();
        headers.insert("x-large", large.parse().unwrap());
        let answer = client.call(request).await;
        assert_eq!(answer.header("x-large"), Some(&*large));
    })
    .await;
}

#[tokio::test]
async fn early_response_reaches_the_client() {
    each_pair(async |mut client, _, _| {
        let (mut sender, body) = Channel::<Bytes, crate::support::origin::BodyError>::new(1);
        sender.send_data("start".into()).await.unwrap();
        let request = Request::post("http://a.test/early");
        let request = request.body(body.boxed_unsync()).unwrap();
        let response = client.send(request).await.unwrap();
        assert_eq!(response.status(), 413);
        drop(sender);
    })
    .await;
}

#[test]
fn local_reply_before_the_end_of_the_request_closes_the_connection() {
    let origin = Origin::start(Back::H1, scripted);
    let closed = free_address();
    let proxy = Proxy::with(|edge| {
        let hosts = |name: &str, answer: &str| routes(name, &format!("[{name}.test]"), answer);
        documents([
            gateway(&[edge]),
            hosts("redirect", "- {redirect: {authority: b.test}}"),
            hosts("direct", "- {directResponse: {status: 200}}"),
            hosts(
                "closed",
                "- {retries: {attempts: 0}, route: [{destination: {host: closed.test}}]}",
            ),
            hosts("early", "- {route: [{destination: {host: a.test}}]}"),
            service("a", Back::H1, &[(origin.address, "v1")]),
            service("closed", Back::H1, &[(closed, "v1")]),
        ])
    });
    let post = |path: &str, host: &str, length: usize| {
        format!("POST {path} HTTP/1.1\r\nHost: {host}.test\r\nContent-Length: {length}\r\n\r\nfour")
    };
    for (host, status) in [
        ("unknown", 404),
        ("redirect", 301),
        ("direct", 200),
        ("closed", 503),
    ] {
        // a request that is complete leaves its connection as it is
        let mut client = Raw::connect(proxy.edge);
        for _ in 0..2 {
            let reply = client.send(post("/", host, 4)).reply();
            assert_eq!(reply.status, status, "{host}");
            assert!(!reply.has("connection: close"), "{host}");
        }
        let reply = client.send(post("/", host, 1 << 20)).reply();
        assert_eq!(reply.status, status, "{host}");
        assert!(reply.has("connection: close"), "{host}");
    }
    // what an endpoint says early does not end it: the rest of the request goes there
    let mut client = Raw::connect(proxy.edge);
    let reply = client.send(post("/echo", "early", 8)).send("more").reply();
    assert_eq!((reply.status, &reply.body[..]), (200, &b"fourmore"[..]));
    assert!(!reply.has("connection: close"));
}

#[test]
fn expect_100_continue_is_answered_when_the_body_is_read() {
    let origin = Origin::start(Back::H1, scripted);
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let mut client = Raw::connect(proxy.edge);
    client.send(
        "POST /length HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n",
    );
    assert_eq!(client.reply().status, 100);
    let reply = client.send("four").reply();
    assert_eq!((reply.status, &reply.body[..]), (200, &b"4"[..]));
    assert_eq!(origin.only().header("expect"), None);
}

#[test]
fn interim_responses_reach_clients_that_support_them() {
    let origin = RawOrigin::start(|_, mut stream| {
        while !read_head(&mut stream).is_empty() {
            stream
                .write_all(
                    b"HTTP/1.1 100 Continue\r\n\r\n\
                      HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
                      HTTP/1.1 102 Processing\r\n\r\n\
                      HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
                )
                .unwrap();
        }
    });
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, origin.address));
    let mut client = Raw::connect(proxy.edge);
    for _ in 0..2 {
        let hints = client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").reply();
        assert!(hints.status == 103 && hints.has("link: </a>"));
        assert_eq!(client.reply().status, 102);
        let reply = client.reply();
        assert_eq!((reply.status, &reply.body[..]), (200, &b"ok"[..]));
    }
    // HTTP/1.0 has no interim responses (RFC 9110, section 15.2)
    let reply = client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n").reply();
    assert_eq!((reply.status, &reply.body[..]), (200, &b"ok"[..]));
}

#[test]
fn interim_response_does_not_wait_for_the_final_one() {
    let (tell, told) = mpsc::channel();
    let told = Mutex::new(told);
    let origin = RawOrigin::start(move |_, mut stream| {
        while !read_head(&mut stream).is_empty() {
            let hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
            stream.write_all(hints).unwrap();
            told.lock().unwrap().recv().unwrap();
            let last = b"HTTP/1.1 204 No Content\r\n\r\n";
            stream.write_all(last).unwrap();
        }
    });
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, origin.address));
    let mut client = Raw::connect(proxy.edge);
    assert_eq!(
        client
            .send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            .reply()
            .status,
        103
    );
    tell.send(()).unwrap();
    assert_eq!(client.reply().status, 204);
}

/// Returns a gRPC frame: not compressed, length, message.
fn grpc_frame(message: &str) -> Bytes {
    let mut frame = vec![0];
    frame.extend((message.len() as u32).to_be_bytes());
    frame.extend(message.as_bytes());
    frame.into()
}

#[tokio::test]
async fn grpc_status_trailers_are_forwarded() {
    let origin = Origin::start(Back::H2, |request| async move {
        let status = request.headers()["x-want-status"].clone();
        let mut body = request.into_body();
        let (mut sender, reply) = Channel::<Bytes, crate::support::origin::BodyError>::new(1);
        tokio::task::spawn_local(async move {
            // An answer for each message, at once.
            while let Some(Ok(frame)) = body.frame().await {
                if let Ok(data) = frame.into_data() {
                    sender.send_data(data).await.unwrap();
                }
            }
            let mut trailers = HeaderMap::new();
            trailers.insert("grpc-status", status);
            sender.send_trailers(trailers).await.unwrap();
        });
        let mut response = Response::new(reply.boxed_unsync());
        let headers = response.headers_mut();
        headers.insert("content-type", "application/grpc".parse().unwrap());
        response
    });
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let mut client = Client::connect(Front::H2, proxy.edge).await;
    let call = |status: &str| {
        Request::post("http://a.test/pkg.Greeter/Chat")
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("x-want-status", status)
    };
    for status in ["0", "5"] {
        // Unary.
        let request = call(status).body(full(grpc_frame("hi"))).unwrap();
        let answer = client.call(request).await;
        assert_eq!(
            (answer.status, &answer.body[..]),
            (200, &grpc_frame("hi")[..])
        );
        assert_eq!(answer.trailers.unwrap()["grpc-status"], *status);
        // Both ways, in turns.
        let (mut sender, body) = Channel::<Bytes, crate::support::origin::BodyError>::new(1);
        let request = call(status).body(body.boxed_unsync()).unwrap();
        let mut response = client.send(request).await.unwrap();
        for message in ["one", "two", "three"] {
            sender.send_data(grpc_frame(message)).await.unwrap();
            let frame = response.body_mut().frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), grpc_frame(message));
        }
        drop(sender);
        let rest = Answer::read(response).await.unwrap();
        assert_eq!(rest.trailers.unwrap()["grpc-status"], *status);
    }
    assert_eq!(origin.seen()[0].header("te"), Some("trailers"));
    let count = |status| {
        let labels = [
            ("request_protocol", "grpc"),
            ("grpc_response_status", status),
        ];
        proxy.metric("istio_requests_total", &labels)
    };
    until("both calls of each status are counted", async || {
        count("0") == 2.0 && count("5") == 2.0
    })
    .await;
    // Of each status, a unary call and one of three messages.
    for metric in [
        "istio_request_messages_total",
        "istio_response_messages_total",
    ] {
        for status in ["0", "5"] {
            let labels = [("grpc_response_status", status)];
            assert_eq!(proxy.metric(metric, &labels), 4.0, "{metric} {status}");
        }
    }
}

#[tokio::test]
async fn web_socket_messages_pass_in_both_directions() {
    let origin = Origin::start(Back::H1, chat);
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let stream = tokio::net::TcpStream::connect(proxy.edge).await.unwrap();
    let (mut socket, response) = tokio_tungstenite::client_async("ws://a.test/chat", stream)
        .await
        .unwrap();
    assert_eq!(response.status(), 101);
    let large = "x".repeat(200_000);
    for text in ["hello", "", &large] {
        socket.send(Message::text(text)).await.unwrap();
        assert_eq!(socket.next().await.unwrap().unwrap(), Message::text(text));
    }
    assert_eq!(proxy.metric("strait_upgrades_active", &[]), 1.0);
    socket.close(None).await.unwrap();
    while socket.next().await.is_some_and(|message| message.is_ok()) {}
    drop(socket);
    until("the tunnel ends", async || {
        proxy.metric("strait_upgrades_active", &[]) == 0.0
    })
    .await;
    let seen = origin.only();
    assert_eq!(seen.header("upgrade"), Some("websocket"));
    let logged = proxy.logged("/chat");
    assert_eq!(logged["response_code"], 101);
    assert_eq!(logged["response_flags"], "-");
}

#[test]
fn rejected_upgrade_is_an_ordinary_response() {
    let origin = Origin::start(Back::H1, chat);
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let mut client = Raw::connect(proxy.edge);
    for _ in 0..2 {
        let reply = client
            .send(
                "GET /refuse HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            )
            .reply();
        assert_eq!((reply.status, &reply.body[..]), (403, &b"/refuse"[..]));
    }
    assert_eq!(proxy.metric("strait_upgrades_active", &[]), 0.0);
}

#[test]
fn client_that_stops_reading_stops_the_endpoint() {
    let pushed = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = std::sync::Arc::clone(&pushed);
    const TOTAL: usize = 64 << 20;
    let origin = RawOrigin::start(move |_, mut stream| {
        read_head(&mut stream);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {TOTAL}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let block = vec![b'x'; 64 << 10];
        while count.load(std::sync::atomic::Ordering::SeqCst) < TOTAL {
            if stream.write_all(&block).is_err() {
                return;
            }
            count.fetch_add(block.len(), std::sync::atomic::Ordering::SeqCst);
        }
    });
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, origin.address));
    let mut client = std::net::TcpStream::connect(proxy.edge).unwrap();
    client
        .write_all(b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    let so_far = || pushed.load(std::sync::atomic::Ordering::SeqCst);
    eventually("the origin begins", || so_far() > 0);
    // It has stopped once nothing moved for a while; how far it got is what this test is about.
    let mut last = (so_far(), std::time::Instant::now());
    eventually("the origin stops", || {
        if so_far() != last.0 {
            last = (so_far(), std::time::Instant::now());
        }
        last.1.elapsed() > Duration::from_millis(500)
    });
    // The kernel's socket buffers hold a few megabytes on each side.
    assert!(so_far() < 24 << 20, "{} bytes were taken in", so_far());
    let mut bytes = Vec::new();
    client.read_to_end(&mut bytes).unwrap();
    let body = bytes.len() - bytes.windows(4).position(|end| end == b"\r\n\r\n").unwrap() - 4;
    assert_eq!(body, TOTAL);
}

#[tokio::test]
async fn slow_endpoint_stops_the_client() {
    for (front, back) in PAIRS {
        let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
        let opened = std::sync::Arc::clone(&gate);
        let origin = Origin::start(back, move |request| {
            let gate = std::sync::Arc::clone(&opened);
            async move {
                gate.acquire().await.unwrap().forget();
                scripted(request).await
            }
        });
        let proxy = Proxy::with(|edge| everything_to(edge, &origin));
        let mut client = Client::connect(front, proxy.edge).await;
        let taken = std::rc::Rc::new(std::cell::Cell::new(0usize));
        const TOTAL: usize = 64 << 20;
        let block = Bytes::from(vec![b'x'; 64 << 10]);
        let sent = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let count = std::sync::Arc::clone(&sent);
        let frames = futures_util::stream::iter(0..TOTAL / block.len()).map(move |_| {
            count.fetch_add(block.len(), std::sync::atomic::Ordering::SeqCst);
            Ok(Frame::data(block.clone()))
        });
        let request = Request::builder()
            .method(Method::POST)
            .uri("http://a.test/length")
            .body(StreamBody::new(frames).boxed_unsync())
            .unwrap();
        let so_far = || sent.load(std::sync::atomic::Ordering::SeqCst);
        let stalled = async {
            let mut since = std::time::Instant::now();
            until("the sender stops", async || {
                if so_far() != taken.replace(so_far()) {
                    since = std::time::Instant::now();
                }
                so_far() > 0 && since.elapsed() > Duration::from_millis(500)
            })
            .await;
            assert!(so_far() < 24 << 20, "{front:?}: {} bytes", so_far());
            gate.add_permits(1);
        };
        let (answer, ()) = tokio::join!(client.call(request), stalled);
        assert_eq!(answer.text(), TOTAL.to_string());
    }
}

#[tokio::test]
async fn many_requests_run_concurrently() {
    const PARALLEL: usize = 40;
    for (front, back) in PAIRS {
        let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
        let opened = std::sync::Arc::clone(&gate);
        let origin = Origin::start(back, move |_| {
            let gate = std::sync::Arc::clone(&opened);
            async move {
                gate.acquire().await.unwrap().forget();
                Response::new(full("hello"))
            }
        });
        let proxy = Proxy::with(|edge| everything_to(edge, &origin));
        let address = proxy.edge;
        // An HTTP/2 client asks all of it on one connection.
        let shared = Client::connect(Front::H2, address)
            .await
            .http2_handle()
            .unwrap();
        let requests = (0..PARALLEL).map(|_| {
            let mut shared = shared.clone();
            tokio::spawn(async move {
                match front {
                    Front::H1 => Client::connect(front, address).await.get("/").await,
                    Front::H2 => {
                        shared.ready().await.unwrap();
                        let response = shared.send_request(get("/")).await.unwrap();
                        Answer::read(response).await.unwrap()
                    }
                }
            })
        });
        let requests: Vec<_> = requests.collect();
        until("all of them are at the origin", async || {
            origin.seen().len() == PARALLEL
        })
        .await;
        assert_eq!(proxy.metric("strait_requests_active", &[]), PARALLEL as f64);
        gate.add_permits(PARALLEL);
        for request in requests {
            assert_eq!(request.await.unwrap().text(), "hello");
        }
        let connections = match back {
            Back::H1 => PARALLEL,
            // One for each worker.
            Back::H2 => 2,
        };
        assert!(origin.connections() <= connections, "{front:?} {back:?}");
    }
}
