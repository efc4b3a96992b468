//! Headers of requests and responses as seen on the other side of the proxy.

use std::net::{Ipv4Addr, SocketAddr};

use http_body_util::BodyExt;
use hyper::{Request, Response};

use crate::support::client::{Client, Front, get};
use crate::support::mesh::{
    documents, everything_to, everything_to_address, gateway, routes, service,
};
use crate::support::origin::{Back, Origin, RawOrigin, empty, full, read_head};
use crate::support::proxy::Proxy;
use crate::support::raw::Raw;

fn hello(back: Back) -> (Origin, Proxy) {
    let origin = Origin::named(back, "hello");
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    (origin, proxy)
}

/// Sends a request head, given as lines, and returns the status.
fn head_through(origin: &Origin, client: &mut Raw, lines: &[&str]) -> u16 {
    let head = format!("{}\r\n\r\n", lines.join("\r\n"));
    let before = origin.seen().len();
    let status = client.send(head).reply().status;
    let after = origin.seen().len();
    assert_eq!(after - before, usize::from(status == 200), "{lines:?}");
    status
}

#[test]
fn hop_by_hop_headers_of_a_request_are_removed() {
    for back in [Back::H1, Back::H2] {
        let (origin, proxy) = hello(back);
        let mut client = Raw::connect(proxy.edge);
        let lines = [
            "GET / HTTP/1.1",
            "Host: a.test",
            "Connection: keep-alive, x-mine",
            "Keep-Alive: timeout=5",
            "Proxy-Connection: keep-alive",
            "TE: trailers, deflate",
            "Upgrade: h2c",
            "X-Mine: gone",
            "X-Yours: stays",
        ];
        assert_eq!(head_through(&origin, &mut client, &lines), 200);
        let seen = origin.only();
        for gone in [
            "connection",
            "keep-alive",
            "proxy-connection",
            "upgrade",
            "x-mine",
        ] {
            assert_eq!(seen.header(gone), None, "{gone}");
        }
        assert_eq!(seen.header("te"), Some("trailers"));
        assert_eq!(seen.header("x-yours"), Some("stays"));
    }
}

#[test]
fn malformed_chunk_gets_the_reply_of_envoy() {
    let origin = Origin::start(Back::H1, |request| async move {
        let _ = request.into_body().collect().await;
        hyper::Response::new(empty())
    });
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let ask = |kind: &str| {
        let head = "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n";
        let request = format!("{head}Content-Type: {kind}\r\n\r\n1\r\na\r\nzz\r\n\r\n");
        Raw::connect(proxy.edge).send(request).reply()
    };
    let reply = ask("text/plain");
    assert_eq!((reply.status, &*reply.body), (400, &b"Bad Request"[..]));
    assert!(reply.has("content-type: text/plain"), "{reply:?}");
    let reply = ask("application/grpc");
    let fields = ["grpc-status: 13", "grpc-message: Bad Request"];
    assert!(
        reply.status == 200 && fields.iter().all(|field| reply.has(field)),
        "{reply:?}"
    );
}

#[test]
fn connection_header_with_protected_or_too_many_names_is_rejected() {
    let (origin, proxy) = hello(Back::H1);
    let many: Vec<_> = (0..10).map(|number| format!("x-{number}")).collect();
    let many = format!("Connection: {}", many.join(", "));
    for connection in ["Connection: x-forwarded-for", &many] {
        let mut client = Raw::connect(proxy.edge);
        let lines = ["GET / HTTP/1.1", "Host: a.test", connection];
        assert_eq!(head_through(&origin, &mut client, &lines), 400);
    }
}

#[tokio::test]
async fn hop_by_hop_headers_of_a_response_are_removed() {
    let origin = RawOrigin::start(|_, mut stream| {
        while !read_head(&mut stream).is_empty() {
            let response = "HTTP/1.1 200 OK\r\nConnection: keep-alive, x-mine\r\nKeep-Alive: timeout=5\r\n\
                            X-Mine: gone\r\nX-Yours: stays\r\nTransfer-Encoding: chunked\r\n\r\n\
                            2\r\nok\r\n0\r\n\r\n";
            std::io::Write::write_all(&mut stream, response.as_bytes()).unwrap();
        }
    });
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, origin.address));
    for front in [Front::H1, Front::H2] {
        let answer = Client::connect(front, proxy.edge).await.get("/").await;
        assert_eq!((answer.status, answer.text()), (200, "ok"));
        for gone in ["connection", "keep-alive", "x-mine"] {
            assert_eq!(answer.header(gone), None, "{front:?} {gone}");
        }
        assert_eq!(answer.header("x-yours"), Some("stays"));
        let chunked = (front == Front::H1).then_some("chunked");
        assert_eq!(answer.header("transfer-encoding"), chunked);
    }
}

#[tokio::test]
async fn upstream_request_has_the_forwarded_headers() {
    let (origin, proxy) = hello(Back::H1);
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let mut request = get("/");
    let headers = request.headers_mut();
    headers.insert("x-forwarded-proto", "https".parse().unwrap());
    client.call(request).await;
    let seen = origin.only();
    assert_eq!(seen.header("x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(seen.header("x-forwarded-proto"), Some("http"));
    assert_eq!(seen.header("x-envoy-internal"), None);
    assert_eq!(seen.header("x-envoy-external-address"), Some("127.0.0.1"));
    assert_eq!(seen.header("x-envoy-attempt-count"), Some("1"));
    assert_eq!(seen.header("x-request-id").unwrap().len(), 36);

    let mut request = get("/");
    let headers = request.headers_mut();
    headers.append("x-forwarded-for", "192.0.2.1".parse().unwrap());
    headers.append("x-forwarded-for", "192.0.2.2, 192.0.2.3".parse().unwrap());
    headers.insert("x-request-id", "mine".parse().unwrap());
    client.call(request).await;
    let seen = origin.seen().pop().unwrap();
    let chain = seen.header("x-forwarded-for").unwrap().replace(' ', "");
    assert_eq!(chain, "192.0.2.1,192.0.2.2,192.0.2.3,127.0.0.1");
    assert_eq!(seen.header("x-envoy-internal"), None);
    assert_ne!(seen.header("x-request-id"), Some("mine"));
}

#[tokio::test]
async fn control_headers_are_kept_from_internal_clients_only() {
    let origin = Origin::named(Back::H1, "hello");
    let internal = ["--internal-addresses", "127.0.0.1/32"];
    let proxy = Proxy::with_args(&internal, |edge| everything_to(edge, &origin));
    let controls = |request: &mut Request<_>| {
        let headers: &mut hyper::HeaderMap = request.headers_mut();
        headers.insert("x-envoy-decorator-operation", "mine".parse().unwrap());
        headers.insert("x-envoy-internal", "true".parse().unwrap());
        headers.insert("x-envoy-external-address", "192.0.2.9".parse().unwrap());
        headers.insert("x-request-id", "mine".parse().unwrap());
        headers.insert("x-other", "stays".parse().unwrap());
    };
    let mut internal = Client::connect(Front::H1, proxy.edge).await;
    let mut request = get("/");
    controls(&mut request);
    internal.call(request).await;
    let seen = origin.only();
    assert_eq!(seen.header("x-envoy-decorator-operation"), Some("mine"));
    assert_eq!(seen.header("x-envoy-external-address"), None);
    assert_eq!(seen.header("x-request-id"), Some("mine"));

    // An address of the loopback network that is not listed.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    let from = Ipv4Addr::new(127, 99, 0, 1);
    socket.bind(SocketAddr::from((from, 0))).unwrap();
    let stream = socket.connect(proxy.edge).await.unwrap();
    let mut external = Client::over(Front::H1, stream).await.unwrap();
    let mut request = get("/");
    controls(&mut request);
    external.call(request).await;
    let seen = origin.seen().pop().unwrap();
    assert_eq!(seen.header("x-envoy-decorator-operation"), None);
    assert_eq!(seen.header("x-envoy-internal"), None);
    let from = from.to_string();
    assert_eq!(seen.header("x-envoy-external-address"), Some(&*from));
    assert_ne!(seen.header("x-request-id"), Some("mine"));
    assert_eq!(seen.header("x-other"), Some("stays"));
}

#[tokio::test]
async fn host_header_is_forwarded_unchanged() {
    for back in [Back::H1, Back::H2] {
        let (origin, proxy) = hello(back);
        for front in [Front::H1, Front::H2] {
            let mut client = Client::connect(front, proxy.edge).await;
            for host in ["a.test", "a.test:8080", "A.Test", "127.0.0.1:1"] {
                let request = Request::get(format!("http://{host}/x?y=%20z"));
                let answer = client.call(request.body(empty()).unwrap()).await;
                assert_eq!(answer.status, 200);
                let seen = origin.seen().pop().unwrap();
                assert_eq!(seen.host(), host);
                assert_eq!(seen.path(), "/x?y=%20z");
                assert_eq!(seen.headers.contains_key("host"), back == Back::H1);
            }
        }
    }
}

#[test]
fn host_of_an_absolute_request_target_replaces_the_host_header() {
    let origin = Origin::named(Back::H1, "hello");
    let proxy = Proxy::with(|edge| {
        documents([
            gateway(&[edge]),
            service("web", Back::H1, &[(origin.address, "v1")]),
            routes(
                "named",
                "[target.test]",
                "- {route: [{destination: {host: web.test}}]}",
            ),
        ])
    });
    let mut client = Raw::connect(proxy.edge);
    for (host, status) in [("target.test", 200), ("other.test", 200), ("a, b", 400)] {
        let lines = [
            "GET http://target.test:81/x?y HTTP/1.1",
            &format!("Host: {host}"),
        ];
        assert_eq!(head_through(&origin, &mut client, &lines), status, "{host}");
    }
    for seen in origin.seen() {
        assert_eq!(seen.header("host"), Some("target.test:81"));
        assert_eq!(seen.uri, "/x?y");
    }
    let mut client = Raw::connect(proxy.edge);
    let lines = ["GET http://other.test/ HTTP/1.1", "Host: target.test"];
    assert_eq!(head_through(&origin, &mut client, &lines), 404);
}

#[tokio::test]
async fn http2_cookie_fields_are_joined_for_http1() {
    let (origin, proxy) = hello(Back::H1);
    let mut client = Client::connect(Front::H2, proxy.edge).await;
    let mut request = get("/");
    for crumb in ["a=1", "b=2", "c=3"] {
        let headers = request.headers_mut();
        headers.append("cookie", crumb.parse().unwrap());
    }
    client.call(request).await;
    assert_eq!(origin.only().header("cookie"), Some("a=1; b=2; c=3"));
}

#[tokio::test]
async fn repeated_headers_stay_separate() {
    let origin = Origin::start(Back::H1, |_| async {
        let mut response = Response::new(full(""));
        for cookie in ["a=1; Path=/", "b=2; Path=/"] {
            let headers = response.headers_mut();
            headers.append("set-cookie", cookie.parse().unwrap());
        }
        response
    });
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    for front in [Front::H1, Front::H2] {
        let answer = Client::connect(front, proxy.edge).await.get("/").await;
        let cookies: Vec<_> = answer.headers.get_all("set-cookie").iter().collect();
        assert_eq!(cookies, ["a=1; Path=/", "b=2; Path=/"]);
    }
}

#[test]
fn http10_clients_are_served() {
    let (origin, proxy) = hello(Back::H1);
    let mut client = Raw::connect(proxy.edge);
    let reply = client
        .send("GET /old HTTP/1.0\r\nHost: a.test\r\n\r\n")
        .reply();
    assert_eq!((reply.status, &reply.body[..]), (200, &b"hello"[..]));
    assert!(client.is_closed());
    let seen = origin.only();
    assert_eq!(seen.version, hyper::Version::HTTP_11);
    assert_eq!(seen.path(), "/old");
    assert_eq!(proxy.logged("/old")["protocol"], "HTTP/1.0");
}

#[test]
fn http10_clients_get_no_chunked_encoding() {
    let origin = RawOrigin::start(|_, mut stream| {
        read_head(&mut stream);
        let response = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
        std::io::Write::write_all(&mut stream, response.as_bytes()).unwrap();
    });
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, origin.address));
    let mut client = Raw::connect(proxy.edge);
    client.send("GET / HTTP/1.0\r\nHost: a.test\r\nConnection: keep-alive\r\n\r\n");
    let reply = client.reply();
    assert_eq!(reply.status, 200);
    assert!(!reply.has("transfer-encoding: chunked"), "{reply:?}");
    assert_eq!(client.read(2), b"ok");
    assert!(client.is_closed());
}

#[test]
fn path_is_normalized_before_matching_and_forwarding() {
    let (origin, proxy) = hello(Back::H1);
    for (sent, arrives) in [
        ("/a/../b", "/b"),
        ("/a/./b", "/a/b"),
        ("/a/%7euser", "/a/~user"),
    ] {
        let mut client = Raw::connect(proxy.edge);
        let line = format!("GET {sent} HTTP/1.1");
        assert_eq!(
            head_through(&origin, &mut client, &[&line, "Host: a.test"]),
            200
        );
        assert_eq!(origin.seen().pop().unwrap().path(), arrives, "{sent}");
    }
}
