//! Handling of malformed, oversized and slow HTTP/1: a clear reply, a closed connection, a counter.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, StatusCode};
use proxy::codec::check::Http10;
use proxy::exchange::{Connection, DownstreamBody};
use proxy::telemetry::Counter;

use crate::support::downstream::{Downstream, hello, settings};
use crate::support::eventually;
use crate::support::raw::{GET, Raw};

/// Starts a server that reads the whole body and answers 200, or 400 if the body is broken. Counts requests with a
/// complete body.
fn reading(whole: &Arc<AtomicUsize>) -> Downstream {
    let whole = Arc::clone(whole);
    Downstream::start(&settings(), move || {
        let whole = Arc::clone(&whole);
        move |_: Rc<Connection>, request: Request<DownstreamBody>| {
            let whole = Arc::clone(&whole);
            async move {
                let body = request.into_body().collect().await;
                let mut response = Response::new(Full::<Bytes>::default());
                match body {
                    Ok(_) => _ = whole.fetch_add(1, Ordering::Relaxed),
                    Err(_) => *response.status_mut() = StatusCode::BAD_REQUEST,
                }
                response
            }
        }
    })
}

/// Transfer codings that Envoy does not implement either.
const UNKNOWN_CODINGS: [&str; 4] = [
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: x\r\n",
];

#[test]
fn ambiguous_requests_are_rejected_before_routing() {
    let whole = Arc::default();
    let downstream = reading(&whole);
    for request in [
        // Framing
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4, 4\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +4\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -4\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4 4\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
        "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        // Header lines
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n\tb\r\n\r\n",
        "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 4\r\n\r\nabcd",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX y: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nX(: b\r\n\r\n",
        // Request line
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
        "GET /\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.2\r\nHost: a\r\n\r\n",
        "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        "GET / HTTP/0.9\r\nHost: a\r\n\r\n",
        "GET / http/1.1\r\nHost: a\r\n\r\n",
        "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
        "G(T / HTTP/1.1\r\nHost: a\r\n\r\n",
        // Host and target
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\nHost: b, a\r\n\r\n",
        "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET a HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
        "CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        let mut client = Raw::connect(downstream.address());
        let reply = client.send(request).reply();
        let has_unknown_coding = UNKNOWN_CODINGS
            .iter()
            .any(|coding| request.contains(coding));
        let (status, body) = match has_unknown_coding {
            true => (501, "Not Implemented"),
            false => (400, "Bad Request"),
        };
        assert_eq!(reply.status, status, "{request:?}");
        assert!(
            ["", body].contains(&&*String::from_utf8_lossy(&reply.body)),
            "{reply:?}"
        );
        // What follows on the connection is never taken for a request.
        client.send(GET);
        assert!(client.is_closed(), "{request:?}");
    }
    assert_eq!(whole.load(Ordering::Relaxed), 0);
    assert!(downstream.counter(Counter::ProtocolFraming) >= 12);
    assert!(downstream.counter(Counter::ProtocolHeader) >= 10);
    assert!(downstream.counter(Counter::ProtocolHost) >= 7);
    assert!(downstream.counter(Counter::ProtocolTarget) >= 3);
    let reply = Raw::connect(downstream.address()).send(GET).reply();
    assert_eq!(reply.status, 200);
}

#[test]
fn malformed_chunks_get_400() {
    let whole = Arc::default();
    let downstream = reading(&whole);
    for body in [
        "x\r\n\r\n",
        "0x4\r\nabcd\r\n0\r\n\r\n",
        "+4\r\nabcd\r\n0\r\n\r\n",
        "-4\r\nabcd\r\n0\r\n\r\n",
        "4 \r\nabcd\r\n0\r\n\r\n",
        "4\nabcd\r\n0\r\n\r\n",
        "4\r\nabcde\r\n0\r\n\r\n",
        "4\r\nabcd0\r\n\r\n",
        "4\r\nabcd\n0\r\n\r\n",
        "4;x\ny\r\nabcd\r\n0\r\n\r\n",
        "10000000000000000\r\nabcd\r\n0\r\n\r\n",
        "ffffffffffffffff0\r\nabcd\r\n0\r\n\r\n",
        "4\r\nabcd\r\n0\r\nX: a\r\n b\r\n\r\n",
        "4\r\nabcd\r\n0\r\nX: a\nb\r\n\r\n",
    ] {
        let mut client = Raw::connect(downstream.address());
        client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        let reply = client.send(body).reply();
        assert_eq!(reply.status, 400, "{body:?}");
        client.send(GET);
        assert!(client.is_closed(), "{body:?}");
    }
    assert_eq!(whole.load(Ordering::Relaxed), 0);
    eventually("all are counted", || {
        downstream.counter(Counter::ProtocolBody) == 14
    });
}

#[test]
fn pipelined_requests_before_a_malformed_one_are_answered() {
    let downstream = Downstream::hello();
    let mut client = Raw::connect(downstream.address());
    client.send([GET, GET, "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n"].concat());
    assert_eq!(client.reply().status, 200);
    assert_eq!(client.reply().status, 200);
    assert_eq!(client.reply().status, 400);
    assert!(client.is_closed());
}

#[test]
fn valid_bodies_arrive_whole_in_any_segmentation() {
    let downstream = Downstream::start(&settings(), || {
        |_: Rc<Connection>, request: Request<DownstreamBody>| async move {
            let body = request.into_body().collect().await.unwrap();
            Response::new(Full::from(body.to_bytes()))
        }
    });
    let mut client = Raw::connect(downstream.address());
    let request = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n1\r\n!\r\n0\r\nx: y\r\n\r\n\
        POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    for _ in 0..2 {
        for byte in request.as_bytes() {
            client.send([*byte]);
        }
        assert_eq!(client.reply().body, b"hello!");
        assert_eq!(client.reply().body, b"abc");
    }
    client.send(request);
    assert_eq!(client.reply().body, b"hello!");
    assert_eq!(client.reply().body, b"abc");
}

#[test]
fn oversized_heads_get_431() {
    let downstream = Downstream::hello();
    let big = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n",
        "x".repeat(70_000)
    );
    let endless = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(300_000));
    let long_target = format!("GET /{} HTTP/1.1\r\n", "x".repeat(70_000));
    let fields: String = (0..100).map(|number| format!("x{number}: y\r\n")).collect();
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
    let requests = [big, endless, long_target, many];
    for request in &requests {
        let mut client = Raw::connect(downstream.address());
        let reply = client.send(request).reply();
        assert_eq!(reply.status, 431);
        assert!(client.is_closed());
    }
    let refused = downstream.counter(Counter::ProtocolHeaderTooLarge);
    assert_eq!(refused, requests.len() as u64);

    let fields: String = (0..99).map(|number| format!("x{number}: y\r\n")).collect();
    let fits = format!(
        "GET / HTTP/1.1\r\nHost: a\r\nBig: {}\r\n{fields}\r\n",
        "x".repeat(50_000)
    );
    let downstream = Downstream::hello();
    let fits = fits.replacen("x0: y\r\n", "", 1);
    assert_eq!(
        Raw::connect(downstream.address()).send(fits).reply().status,
        200
    );
}

#[test]
fn slow_heads_are_closed_and_counted() {
    let mut settings = settings();
    settings.codec.http1.head_timeout = Duration::from_millis(300);
    let downstream = Downstream::start(&settings, || hello);
    for start in ["G", "GET / HTTP/1.1\r\nHost: a\r\nX: ", "PRI * HTTP"] {
        let mut client = Raw::connect(downstream.address());
        client.send(start);
        let reply = client.try_reply().unwrap();
        if start == "PRI * HTTP" {
            // Not told from HTTP/2 yet, so there is nothing to say.
            assert_eq!(reply, None);
        } else {
            assert_eq!(reply.unwrap().status, 408);
            assert!(client.is_closed());
        }
    }
    assert_eq!(downstream.counter(Counter::ProtocolHeadTimeout), 2);
    // One that is fast enough, after a pause that is longer than the timeout.
    let mut client = Raw::connect(downstream.address());
    client.send(GET).reply();
    let mut slow = Raw::connect(downstream.address());
    slow.send("G").reply();
    assert_eq!(client.send(GET).reply().status, 200);
}

#[test]
fn stalled_bodies_are_closed_and_counted() {
    let mut settings = settings();
    settings.codec.http1.body_timeout = Duration::from_millis(300);
    let downstream = Downstream::start(&settings, || {
        |_: Rc<Connection>, request: Request<DownstreamBody>| async move {
            let _ = request.into_body().collect().await;
            Response::new(Full::from("late"))
        }
    });
    let mut client = Raw::connect(downstream.address());
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc");
    assert_eq!(client.try_reply().unwrap_or(None), None);
    assert_eq!(downstream.counter(Counter::ProtocolBody), 1);
}

#[test]
fn idle_connections_are_closed() {
    let mut settings = settings();
    settings.codec.timeouts.idle = Duration::from_millis(300);
    settings.codec.http1.park_after = Duration::from_millis(100);
    let downstream = Downstream::start(&settings, || hello);
    let mut silent = Raw::connect(downstream.address());
    let mut client = Raw::connect(downstream.address());
    client.send(GET).reply();
    assert!(silent.is_closed());
    assert!(client.is_closed());
}

#[test]
fn http10_is_served_or_rejected_by_its_setting() {
    let downstream = Downstream::hello();
    let mut client = Raw::connect(downstream.address());
    let reply = client.send("GET / HTTP/1.0\r\n\r\n").reply();
    assert_eq!((reply.status, &reply.body[..]), (200, &b"hello"[..]));
    assert!(client.is_closed());
    let mut client = Raw::connect(downstream.address());
    for _ in 0..2 {
        client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
        let reply = client.reply();
        assert!(reply.has("connection: keep-alive"), "{reply:?}");
    }

    let mut settings = settings();
    settings.codec.http1.http10 = Http10::Refuse;
    let downstream = Downstream::start(&settings, || hello);
    let mut client = Raw::connect(downstream.address());
    let reply = client.send("GET / HTTP/1.0\r\nHost: a\r\n\r\n").reply();
    assert_eq!(reply.status, 426);
    assert!(client.is_closed());
    assert_eq!(downstream.counter(Counter::ProtocolVersion), 1);
}

#[test]
fn tls_on_a_plaintext_listener_is_closed_and_counted() {
    let downstream = Downstream::hello();
    let mut client = Raw::connect(downstream.address());
    client.send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03");
    assert!(client.is_closed());
    assert_eq!(downstream.counter(Counter::ProtocolUnknown), 1);
}

#[test]
fn worker_panic_ends_only_its_own_connection() {
    let downstream = Downstream::start(&settings(), || {
        let requests = Rc::new(Cell::new(0));
        move |_: Rc<Connection>, request: Request<DownstreamBody>| {
            requests.set(requests.get() + 1);
            async move {
                assert_ne!(request.uri().path(), "/panic", "asked to");
                Response::new(Full::from("hello"))
            }
        }
    });
    let mut good = Raw::connect(downstream.address());
    good.send(GET).reply();
    let mut bad = Raw::connect(downstream.address());
    bad.send("GET /panic HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(bad.is_closed());
    eventually("it is counted", || {
        downstream.counter(Counter::TaskPanics) == 1
    });
    assert_eq!(good.send(GET).reply().status, 200);
    eventually("its slot is free", || downstream.connections() == 1);
}
