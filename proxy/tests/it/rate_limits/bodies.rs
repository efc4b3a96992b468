//! Limits on bodies of requests.

use std::io::{Read as _, Write as _};

use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::Response;
use hyper::body::Frame;

use super::{ALL, Edge, policy};
use crate::support::mesh::everything_to_address;
use crate::support::origin::{Back, Origin, RawOrigin, read_head};
use crate::support::raw::Raw;

fn limited(edge: &Edge, limit: &str) {
    edge.set(&[policy(
        "own",
        ALL,
        &format!("requestBuffer: {{limit: {limit}}}"),
    )]);
}

fn post(edge: &Edge, headers: &str, body: &str) -> (u16, Vec<u8>) {
    let text = format!("POST / HTTP/1.1\r\nHost: a.test\r\n{headers}\r\n{body}");
    let reply = edge.send(&text);
    (reply.status, reply.body)
}

#[test]
fn bodies_are_limited() {
    let edge = Edge::start(&[]);
    limited(&edge, "10");
    let served = |read| (200, format!("read {read}").into_bytes());
    let refused = (413, b"Payload Too Large".to_vec());
    let chunked = "Transfer-Encoding: chunked\r\n";
    for (headers, body, expected) in [
        ("Content-Length: 11\r\n", "01234567890", &refused),
        ("Content-Length: 10\r\n", "0123456789", &served(10)),
        (chunked, "b\r\n01234567890\r\n0\r\n\r\n", &refused),
        (chunked, "5\r\n01234\r\n6\r\n567890\r\n0\r\n\r\n", &refused),
        (
            chunked,
            "5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n",
            &served(10),
        ),
        ("", "", &served(0)),
    ] {
        assert_eq!(post(&edge, headers, body), *expected, "{headers}{body}");
    }
    // what a client says of its request does not lift the limit of an endpoint that speaks HTTP/1
    let grpc = "Content-Type: application/grpc\r\nContent-Length: 11\r\n";
    assert_eq!(post(&edge, grpc, "01234567890"), (200, Vec::new()));
    let too_large = || {
        edge.proxy
            .metric("strait_request_bodies_too_large_total", &[])
    };
    assert_eq!(too_large(), 4.0);
    limited(&edge, "1Ki");
    let body = "x".repeat(1024);
    assert_eq!(post(&edge, "Content-Length: 1024\r\n", &body), served(1024));
    assert_eq!(post(&edge, "Content-Length: 1025\r\n", ""), refused);
}

#[test]
fn body_is_refused_before_the_client_sends_it() {
    let edge = Edge::start(&[]);
    limited(&edge, "10");
    let head =
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 11\r\nExpect: 100-continue\r\n\r\n";
    assert_eq!(edge.send(head).status, 413);
    assert!(edge.origin.seen().is_empty(), "the endpoint was not asked");
    let line = edge.proxy.logged("/");
    assert_eq!(line["response_code_details"], "request_payload_too_large");
}

#[test]
fn response_that_has_begun_is_broken_off() {
    // responses that their endpoint never ends
    let origin = RawOrigin::start(|_, mut stream| {
        let framing = match read_head(&mut stream).contains(" /length") {
            true => "Content-Length: 100",
            false => "Connection: close",
        };
        let _ = write!(stream, "HTTP/1.1 200 OK\r\n{framing}\r\n\r\nbegun");
        std::thread::park();
    });
    let http2 = Origin::start(Back::H2, |request| async move {
        let begun = stream::once(async { Ok(Frame::data("begun".into())) });
        let held = stream::once(async move {
            let _request = request;
            std::future::pending().await
        });
        Response::new(StreamBody::new(begun.chain(held)).boxed_unsync())
    });
    for (back, address, path) in [
        (Back::H1, origin.address, "/length"),
        (Back::H1, origin.address, "/close"),
        (Back::H2, http2.address, "/http2"),
    ] {
        let edge = Edge::start(&[]);
        let mesh = everything_to_address(edge.proxy.edge, back, address);
        edge.change("mesh.yaml", &mesh);
        limited(&edge, "10");
        let mut client = Raw::connect(edge.proxy.edge);
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n");
        client.send(head).send("5\r\n01234\r\n");
        let begun = String::from_utf8(client.read("HTTP/1.1 200 OK".len())).unwrap();
        assert_eq!(begun, "HTTP/1.1 200 OK");
        client.send("6\r\n567890\r\n");
        let mut rest = Vec::new();
        let ended = client.stream().read_to_end(&mut rest);
        let is_late = |error: &std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
        assert!(!ended.as_ref().is_err_and(is_late), "{path} waits for more");
        assert!(!rest.ends_with(b"0\r\n\r\n"), "{path} looks complete");
        let line = edge.proxy.logged(path);
        assert_eq!(line["response_code_details"], "request_payload_too_large");
    }
}
