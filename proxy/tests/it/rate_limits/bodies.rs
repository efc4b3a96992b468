//! Limits on bodies of requests.

use super::{ALL, Edge, policy};
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
    use std::io::{Read as _, Write as _};

    let origin = crate::support::origin::RawOrigin::start(|_, mut stream| {
        let _ = crate::support::origin::read_head(&mut stream);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nbegun");
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let edge = Edge::start(&[]);
    let mesh = crate::support::mesh::everything_to_address(
        edge.proxy.edge,
        crate::support::origin::Back::H1,
        origin.address,
    );
    edge.proxy.write("mesh.yaml", mesh);
    limited(&edge, "10");
    let mut client = Raw::connect(edge.proxy.edge);
    let head =
        "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n";
    client.send(head);
    let begun = String::from_utf8(client.read("HTTP/1.1 200 OK".len())).unwrap();
    assert_eq!(begun, "HTTP/1.1 200 OK");
    client.send("6\r\n567890\r\n");
    let ended = client.stream().read_to_end(&mut Vec::new());
    let is_late = |error: std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
    assert!(
        !ended.is_err_and(is_late),
        "the rest of the response is waited for"
    );
    let line = edge.proxy.logged("/");
    assert_eq!(line["response_code_details"], "request_payload_too_large");
}
