//! Ambiguous requests and responses: they end their connection or are rewritten, so that no peer interprets them
//! differently.

use std::io::Write;
use std::net::TcpStream;

use crate::support::mesh::{documents, everything_to, everything_to_address, gateway, routes};
use crate::support::origin::{Back, Origin, RawOrigin, read_head};
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::{GET, Raw};

#[test]
fn refused_connect_ends_its_connection() {
    let origin = Origin::named(Back::H1, "up");
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let connect = "CONNECT a.test:80 HTTP/1.1\r\nHost: a.test:80\r\n\r\n";
    let mut client = Raw::connect(proxy.edge);
    let reply = client.send(format!("{connect}{GET}")).reply();
    assert_eq!(reply.status, 404);
    assert!(reply.has("connection: close"), "{reply:?}");
    assert!(client.is_closed());
    assert!(origin.seen().is_empty());
}

#[test]
fn empty_lines_before_a_request_are_limited_however_they_arrive() {
    let origin = Origin::named(Back::H1, "up");
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let lines = |count: usize| "\r\n".repeat(count);
    let mut other = Raw::connect(proxy.edge);
    for (count, status) in [(500, 200), (31_000, 431)] {
        let whole = Raw::connect(proxy.edge).send(lines(count) + GET).reply();
        assert_eq!(whole.status, status, "{count} at once");
        let mut client = Raw::connect(proxy.edge);
        for _ in 0..50 {
            client.send(lines(count / 50));
            // the proxy has time to read them, and to take the connection for an idle one
            assert_eq!(other.send(GET).reply().status, 200);
        }
        let reply = client.send(GET).try_reply();
        let got = reply.ok().flatten().map_or(431, |reply| reply.status);
        assert_eq!(got, status, "{count} in pieces");
    }
}

#[test]
fn direct_response_205_has_no_body() {
    let rule = "- directResponse: {status: 205, body: {string: abc}}";
    let proxy = Proxy::with(|edge| documents([gateway(&[edge]), routes("all", "['*']", rule)]));
    let mut client = Raw::connect(proxy.edge);
    for _ in 0..2 {
        let reply = client.send(GET).reply();
        assert_eq!((reply.status, reply.body.len()), (205, 0));
        assert!(
            !reply
                .headers
                .iter()
                .any(|line| line.starts_with("content-type"))
        );
    }
}

/// Answers each request with the response that its target names, then with bytes of another protocol.
fn switching(mut stream: TcpStream) {
    let head = read_head(&mut stream);
    let response = match head.split(' ').nth(1) {
        Some("/agreed") => "HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        Some("/without") => "HTTP/1.1 101 S\r\nconnection: upgrade\r\n\r\n",
        Some("/other") => "HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
        Some("/more") => "HTTP/1.1 101 S\r\nconnection: upgrade\r\nupgrade: websocket, h2c\r\n\r\n",
        Some("/old") => "HTTP/1.0 101 S\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        _ => return,
    };
    let _ = stream.write_all(format!("{response}bytes").as_bytes());
    // until the proxy closes
    let _ = std::io::copy(&mut stream, &mut std::io::sink());
}

#[test]
fn switch_of_protocols_that_was_not_agreed_opens_no_tunnel() {
    let origin = RawOrigin::start(|_, stream| switching(stream));
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, origin.address));
    for (path, version, expected) in [
        ("/agreed", "1.1", 101),
        ("/without", "1.1", 502),
        ("/other", "1.1", 502),
        ("/more", "1.1", 502),
        ("/old", "1.1", 502),
        ("/agreed", "1.0", 502),
    ] {
        let mut client = Raw::connect(proxy.edge);
        let reply = client
            .send(format!(
                "GET {path} HTTP/{version}\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n"
            ))
            .reply();
        assert_eq!(reply.status, expected, "{path} HTTP/{version}");
        if expected == 101 {
            assert_eq!(client.read(5), b"bytes");
        }
    }
}

#[test]
fn refused_requests_have_the_body_and_the_server_of_envoy() {
    let origin = Origin::named(Back::H1, "up");
    let start = Start::new();
    let mesh = everything_to(start.edge(), &origin);
    let start = start.file("mesh.yaml", mesh);
    let proxy = start.args(["--http10=refuse"]).start();
    let large = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        "a".repeat(70_000)
    );
    for (request, status, body) in [
        ("GET / HTTP/1.0\r\nHost: a\r\n\r\n", 426, "Upgrade Required"),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nx y: 1\r\n\r\n",
            400,
            "Bad Request",
        ),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400, "Bad Request"),
        ("GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400, "Bad Request"),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
            "Bad Request",
        ),
        (
            "GET / HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\nx y: 1\r\n\r\n",
            400,
            "Bad Request",
        ),
        (&large, 431, "Request Header Fields Too Large"),
        // no mistake of the message, but a request that no route can have
        ("GET / HTTP/1.1\r\n\r\n", 400, ""),
    ] {
        let shown = &request[..request.len().min(60)];
        let mut client = Raw::connect(proxy.edge);
        let reply = client.send(request).reply();
        assert_eq!(reply.status, status, "{shown:?}");
        assert_eq!(String::from_utf8_lossy(&reply.body), body, "{shown:?}");
        let is_text = reply.has("content-type: text/plain");
        assert_eq!(is_text, !body.is_empty(), "{shown:?} {reply:?}");
        assert!(reply.has("server: istio-envoy"), "{shown:?} {reply:?}");
        assert!(reply.has("connection: close"), "{shown:?} {reply:?}");
        assert!(client.is_closed(), "{shown:?}");
    }
    let mut client = Raw::connect(proxy.edge);
    client.send("HEAD / HTTP/1.0\r\nHost: a\r\n\r\n").finish();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut client.stream(), &mut text).unwrap();
    assert!(text.contains("content-length: 16\r\n"), "{text}");
    assert!(text.ends_with("\r\n\r\n"), "HEAD has no body: {text}");
}
