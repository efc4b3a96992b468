//! Calls that may have reached the provider, which are not sent again: a service that counts would count twice.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::support::frames::{DATA, END_HEADERS, END_STREAM, Frames, GOAWAY, HEADERS, RST_STREAM};
use crate::support::origin::{RawOrigin, read_head};
use crate::support::raw::GET;
use crate::support::script::literal;

/// End of the second call of a connection.
#[derive(Clone, Copy, Debug)]
enum Second {
    /// The connection is closed.
    Closed,
    /// The connection is closed, and the call was not processed.
    Excluded,
    /// The stream is refused.
    Refused,
}

/// Allows the calls of a connection but the second, and counts all.
fn serve(stream: TcpStream, second: Second, calls: &AtomicUsize) {
    let mut peer = Frames::accept(stream, &[]);
    let mut number = 0;
    while let Some(data) = peer.next_of(DATA) {
        if data.flags & END_STREAM == 0 {
            continue;
        }
        calls.fetch_add(1, Ordering::SeqCst);
        number += 1;
        if number == 2 {
            match second {
                Second::Closed => return,
                Second::Excluded => {
                    peer.send(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]);
                    return;
                }
                Second::Refused => peer.send(RST_STREAM, 0, data.stream, &[0, 0, 0, 7]),
            };
            continue;
        }
        let mut trailers = Vec::new();
        literal(&mut trailers, b"grpc-status", b"0");
        peer.send(HEADERS, END_HEADERS, data.stream, &[0x88]);
        // an empty message allows
        peer.send(DATA, 0, data.stream, &[0; 5]);
        let end = END_HEADERS | END_STREAM;
        peer.send(HEADERS, end, data.stream, &trailers);
    }
}

#[test]
fn call_over_grpc_is_repeated_only_if_it_was_not_processed() {
    for (second, expected, calls_expected) in [
        (Second::Closed, 403, 2),
        (Second::Excluded, 200, 3),
        (Second::Refused, 200, 3),
    ] {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let provider = RawOrigin::start(move |_, stream| serve(stream, second, &counted));
        let edge = Edge::start("envoyExtAuthzGrpc", "", Back::H2, provider.address);
        let mut client = Raw::connect(edge.proxy.edge);
        let statuses = [(); 2].map(|()| client.send(GET).reply().status);
        assert_eq!(statuses, [200, expected], "{second:?}");
        assert_eq!(calls.load(Ordering::SeqCst), calls_expected, "{second:?}");
    }
}

#[test]
fn call_over_http_is_not_repeated() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let provider = RawOrigin::start(move |_, mut stream| {
        // allows the first call of a connection, and closes it at the second
        for number in 1..=2 {
            if read_head(&mut stream).is_empty() {
                return;
            }
            counted.fetch_add(1, Ordering::SeqCst);
            if number == 1 {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
            }
        }
    });
    let edge = Edge::start("envoyExtAuthzHttp", "", Back::H1, provider.address);
    let mut client = Raw::connect(edge.proxy.edge);
    let statuses = [(); 2].map(|()| client.send(GET).reply().status);
    assert_eq!(statuses, [200, 403]);
    assert_eq!(calls.load(Ordering::SeqCst), 2);
}
