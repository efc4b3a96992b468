//! Protocol violations of HTTP/2 clients: each gets its error code, and other clients are not affected.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::rc::Rc;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response};
use proxy::exchange::{Connection, DownstreamBody};
use proxy::telemetry::Counter;

use crate::support::downstream::{Downstream, hello, settings};
use crate::support::eventually;
use crate::support::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, Frame, Frames, GET, GOAWAY, HEADERS, PADDED, PING,
    PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE,
};
use crate::support::mesh::everything_to_address;
use crate::support::origin::{Back, RawOrigin, read_head};
use crate::support::proxy::Proxy;

/// Header block of the same request as [`GET`], with POST.
const POST: &[u8] = &[0x83, 0x86, 0x84, 0x41, 0x01, b'a'];

const BOTH: u8 = END_STREAM | END_HEADERS;

const PROTOCOL_ERROR: u32 = 1;
const FLOW_CONTROL_ERROR: u32 = 3;
const STREAM_CLOSED: u32 = 5;
const FRAME_SIZE_ERROR: u32 = 6;
const COMPRESSION_ERROR: u32 = 9;
const ENHANCE_YOUR_CALM: u32 = 11;

/// Starts a server that answers with the length of the request body.
fn measuring() -> Downstream {
    Downstream::start(&settings(), || {
        |_: Rc<Connection>, request: Request<DownstreamBody>| async move {
            let body = request.into_body().collect().await;
            let text = match body {
                Ok(body) => body.to_bytes().len().to_string(),
                Err(_) => "broken".to_owned(),
            };
            Response::new(Full::<Bytes>::from(text))
        }
    })
}

/// Returns the error code of the GOAWAY that ends the connection.
fn goodbye(client: &mut Frames) -> Option<u32> {
    let mut reason = None;
    while let Some(frame) = client.next() {
        if frame.kind == GOAWAY {
            reason = Some(frame.number(4));
        }
    }
    reason
}

/// Returns the body of the response on this stream, or the error code if the stream is reset.
fn answer(client: &mut Frames, stream: u32) -> Result<Vec<u8>, u32> {
    let mut body = Vec::new();
    while let Some(frame) = client.next() {
        if frame.stream != stream {
            continue;
        }
        match frame.kind {
            RST_STREAM => return Err(frame.number(0)),
            DATA => body.extend_from_slice(&frame.payload),
            _ => {}
        }
        if matches!(frame.kind, DATA | HEADERS) && frame.flags & END_STREAM != 0 {
            return Ok(body);
        }
    }
    panic!("the connection ended");
}

#[test]
fn connection_errors_send_goaway_and_are_counted() {
    let downstream = Downstream::hello();
    let cases: &[(u8, u8, u32, &[u8], u32)] = &[
        (HEADERS, BOTH, 2, GET, PROTOCOL_ERROR),
        (HEADERS, BOTH, 0, GET, PROTOCOL_ERROR),
        (HEADERS, BOTH, 1, &[0x80], COMPRESSION_ERROR),
        (HEADERS, BOTH | PADDED, 1, &[200, 0x82], PROTOCOL_ERROR),
        (CONTINUATION, END_HEADERS, 1, GET, PROTOCOL_ERROR),
        (DATA, 0, 0, b"x", PROTOCOL_ERROR),
        (DATA, 0, 1, b"x", PROTOCOL_ERROR),
        (DATA, 0, 1, &[0; 20_000], FRAME_SIZE_ERROR),
        (RST_STREAM, 0, 1, &[0; 4], PROTOCOL_ERROR),
        (RST_STREAM, 0, 1, &[0; 3], FRAME_SIZE_ERROR),
        (WINDOW_UPDATE, 0, 0, &[0; 4], PROTOCOL_ERROR),
        (WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1], PROTOCOL_ERROR),
        (
            WINDOW_UPDATE,
            0,
            0,
            &[0x7f, 0xff, 0xff, 0xff],
            FLOW_CONTROL_ERROR,
        ),
        (SETTINGS, 0, 0, &[0; 5], FRAME_SIZE_ERROR),
        (SETTINGS, 0, 0, &[0, 2, 0, 0, 0, 2], PROTOCOL_ERROR),
        (SETTINGS, 0, 0, &[0, 4, 0xff, 0, 0, 0], FLOW_CONTROL_ERROR),
        (PING, 0, 0, &[0; 9], FRAME_SIZE_ERROR),
        (PING, 0, 3, &[0; 8], PROTOCOL_ERROR),
        (PRIORITY, 0, 0, &[0; 5], PROTOCOL_ERROR),
        (5, END_HEADERS, 1, &[0, 0, 0, 2], PROTOCOL_ERROR),
    ];
    for (count, (kind, flags, stream, payload, reason)) in cases.iter().enumerate() {
        let mut client = Frames::connect(downstream.address());
        client.send(*kind, *flags, *stream, payload);
        assert_eq!(
            goodbye(&mut client),
            Some(*reason),
            "{kind} {flags} {stream}"
        );
        eventually("it is counted", || {
            downstream.counter(Counter::ProtocolHttp2) == count as u64 + 1
        });
    }
    eventually("nothing is left", || downstream.connections() == 0);
}

#[test]
fn bytes_that_are_not_http2_get_goaway() {
    let downstream = Downstream::hello();
    let mut client = Frames::connect(downstream.address());
    // the settings were the first frame; these are not
    let mut other = TcpStream::connect(downstream.address()).unwrap();
    other
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\x08\x06\0\0\0\0\x0012345678")
        .unwrap();
    let mut said = Vec::new();
    other.read_to_end(&mut said).unwrap();
    // GOAWAY with PROTOCOL_ERROR
    assert!(said.ends_with(b"\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01"));
    client.send(HEADERS, BOTH, 1, GET);
    assert_eq!(answer(&mut client, 1).unwrap(), b"hello");
}

/// Head, further frames (kind, flags, payload), and the error code of the reset.
type Broken = (Vec<u8>, Vec<(u8, u8, Vec<u8>)>, u32);

#[test]
fn stream_errors_keep_the_connection_open() {
    let downstream = measuring();
    let mut client = Frames::connect(downstream.address());
    let mut stream = 1;
    let with = |fields: &[u8]| [POST, fields].concat();
    let cases: Vec<Broken> = vec![
        // upper case, a second path, connection, te, status, no name
        (with(b"\0\x01X\x01y"), vec![], PROTOCOL_ERROR),
        (with(&[0x84]), vec![], PROTOCOL_ERROR),
        (with(b"\0\x0aconnection\x05close"), vec![], PROTOCOL_ERROR),
        (
            with(b"\0\x11transfer-encoding\x07chunked"),
            vec![],
            PROTOCOL_ERROR,
        ),
        (with(b"\0\x02te\x04gzip"), vec![], PROTOCOL_ERROR),
        (with(&[0x88]), vec![], PROTOCOL_ERROR),
        (with(b"\0\x01x\x03a\rb"), vec![], PROTOCOL_ERROR),
        (with(b"\0\x01x\x03a\nb"), vec![], PROTOCOL_ERROR),
        (with(b"\0\x01x\x03a\0b"), vec![], PROTOCOL_ERROR),
        (vec![0x83, 0x86, 0x84], vec![], u32::MAX),
        (vec![0x83, 0x84, 0x41, 1, b'a'], vec![], PROTOCOL_ERROR),
        (vec![0x86, 0x84, 0x41, 1, b'a'], vec![], PROTOCOL_ERROR),
        (vec![0x83, 0x86, 0x41, 1, b'a'], vec![], PROTOCOL_ERROR),
        // a body that is not as long as it was said to be
        (
            with(b"\x0f\x0d\x012"),
            vec![(DATA, END_STREAM, b"x".to_vec())],
            PROTOCOL_ERROR,
        ),
        (
            with(b"\x0f\x0d\x012"),
            vec![(DATA, 0, b"xyz".to_vec())],
            PROTOCOL_ERROR,
        ),
        // windows
        (
            POST.to_vec(),
            vec![(WINDOW_UPDATE, 0, vec![0; 4])],
            PROTOCOL_ERROR,
        ),
        (
            POST.to_vec(),
            vec![(WINDOW_UPDATE, 0, vec![0x7f, 0xff, 0xff, 0xff])],
            FLOW_CONTROL_ERROR,
        ),
        // trailers that end nothing, or have a path
        (
            POST.to_vec(),
            vec![(HEADERS, END_HEADERS, vec![])],
            PROTOCOL_ERROR,
        ),
        (
            POST.to_vec(),
            vec![(HEADERS, BOTH, vec![0x84])],
            PROTOCOL_ERROR,
        ),
    ];
    for (head, frames, expected) in cases {
        client.send(HEADERS, END_HEADERS, stream, &head);
        for (kind, flags, payload) in &frames {
            client.send(*kind, *flags, stream, payload);
        }
        if expected == u32::MAX {
            // without an authority and a host: a request that is refused, by an answer
            answer(&mut client, stream).unwrap();
        } else {
            assert_eq!(
                answer(&mut client, stream),
                Err(expected),
                "{head:x?} {frames:x?}"
            );
        }
        // the compression is still in step
        client.send(HEADERS, END_HEADERS, stream + 2, POST);
        client.send(DATA, END_STREAM | PADDED, stream + 2, b"\x02four\0\0");
        assert_eq!(answer(&mut client, stream + 2).unwrap(), b"4");
        stream += 4;
    }
}

#[test]
fn floods_end_the_connection_and_are_counted() {
    let downstream = measuring();
    let cases: &[(&str, u8, u32, &[u8])] = &[
        ("ping", PING, 0, &[0; 8]),
        ("settings", SETTINGS, 0, &[]),
        ("unknown", 77, 0, b"?"),
        ("priority", PRIORITY, 7, &[0; 5]),
        ("empty data", DATA, 1, &[]),
        ("small windows", WINDOW_UPDATE, 1, &[0, 0, 0, 1]),
        ("continuation", CONTINUATION, 3, &[]),
    ];
    for (count, (name, kind, stream, payload)) in cases.iter().enumerate() {
        let mut client = Frames::connect(downstream.address());
        client.send(HEADERS, END_HEADERS, 1, POST);
        if *kind == CONTINUATION {
            client.send(HEADERS, 0, 3, POST);
        }
        let mut sent = 0;
        while sent < 1_000_000 && client.send(*kind, 0, *stream, payload) {
            sent += 1;
        }
        assert!(sent < 1_000_000, "{name}");
        client.is_closed();
        eventually("it is counted", || {
            downstream.counter(Counter::ProtocolFlood) == count as u64 + 1
        });
    }
    eventually("nothing is left", || downstream.connections() == 0);
}

#[test]
fn resets_provoked_by_the_client_end_the_connection() {
    let downstream = measuring();
    let mut client = Frames::connect(downstream.address());
    let mut stream = 1;
    // the same work as a rapid reset, by a reset that we send (CVE-2025-8671)
    while stream < 2_000_000
        && client.send(HEADERS, END_HEADERS, stream, POST)
        && client.send(WINDOW_UPDATE, 0, stream, &[0; 4])
    {
        stream += 2;
    }
    assert!(stream < 2_000_000);
    client.is_closed();
    eventually("it is counted", || {
        let flood = downstream.counter(Counter::ProtocolFlood);
        flood + downstream.counter(Counter::ProtocolRapidReset) == 1
    });
}

#[test]
fn data_on_closed_streams_is_a_stream_error_and_reused_ids_end_the_connection() {
    let downstream = Downstream::hello();
    let mut client = Frames::connect(downstream.address());
    client.send(HEADERS, BOTH, 1, GET);
    assert_eq!(answer(&mut client, 1).unwrap(), b"hello");
    client.send(DATA, 0, 1, b"more");
    assert_eq!(answer(&mut client, 1), Err(STREAM_CLOSED));
    // frames that may have crossed with the end of the stream
    client.send(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]);
    client.send(RST_STREAM, 0, 1, &[0; 4]);
    client.send(PRIORITY, 0, 1, &[0; 5]);
    client.send(HEADERS, BOTH, 3, GET);
    assert_eq!(answer(&mut client, 3).unwrap(), b"hello");
    // a request on a number that was used
    client.send(HEADERS, BOTH, 5, GET);
    assert_eq!(answer(&mut client, 5).unwrap(), b"hello");
    client.send(HEADERS, BOTH, 3, GET);
    assert_eq!(goodbye(&mut client), Some(STREAM_CLOSED));
}

#[test]
fn unread_body_does_not_use_up_the_connection_window() {
    let downstream = Downstream::start(&settings(), || hello);
    let mut client = Frames::connect(downstream.address());
    // several times the connection's window, on streams whose requests are answered unread
    for number in 0..60 {
        let stream = 2 * number + 1;
        client.send(HEADERS, END_HEADERS, stream, POST);
        for _ in 0..6 {
            client.send(DATA, 0, stream, &[0; 16_384]);
        }
        assert_eq!(answer(&mut client, stream).unwrap(), b"hello");
    }
}

#[test]
fn body_beyond_the_windows_is_a_flow_control_error() {
    let downstream = Downstream::start(&settings(), || {
        |_: Rc<Connection>, request: Request<DownstreamBody>| async move {
            let _held = request;
            std::future::pending::<Response<Full<Bytes>>>().await
        }
    });
    let mut client = Frames::connect(downstream.address());
    client.send(HEADERS, END_HEADERS, 1, POST);
    // 256 KiB and one frame more
    for _ in 0..17 {
        client.send(DATA, 0, 1, &[0; 16_384]);
    }
    assert_eq!(answer(&mut client, 1), Err(FLOW_CONTROL_ERROR));
}

#[test]
fn too_large_headers_are_rejected_and_counted() {
    let downstream = Downstream::hello();
    let mut client = Frames::connect(downstream.address());
    let field = [b"\0\x01x\x7f\x49".as_slice(), &[b'y'; 200]].concat();
    let block = [GET, &field.repeat(300)].concat();
    let mut pieces = block.chunks(16_000).peekable();
    client.send(HEADERS, END_STREAM, 1, pieces.next().unwrap());
    while let Some(piece) = pieces.next() {
        let last = pieces.peek().is_none();
        client.send(CONTINUATION, if last { END_HEADERS } else { 0 }, 1, piece);
    }
    assert_eq!(answer(&mut client, 1).unwrap(), b"");
    // an entry of the table, over and over: few bytes that represent many
    let large = [b"\x40\x01z\x7f\xa1\x1e".as_slice(), &[b'z'; 4000]].concat();
    let bomb = [GET, &large, &[0xbe; 10_000]].concat();
    client.send(HEADERS, BOTH, 3, &bomb);
    assert_eq!(answer(&mut client, 3).unwrap(), b"");
    assert_eq!(downstream.counter(Counter::ProtocolHeaderTooLarge), 1 + 1);
    client.send(HEADERS, BOTH, 5, GET);
    assert_eq!(answer(&mut client, 5).unwrap(), b"hello");
}

#[test]
fn flood_of_resets_before_dispatch_ends_the_connection() {
    let downstream = Downstream::hello();
    let mut client = Frames::connect(downstream.address());
    let mut all = Vec::new();
    for number in 0..200 {
        let stream = 2 * number + 1;
        all.extend(Frame::bytes(HEADERS, BOTH, stream, GET));
        all.extend(Frame::bytes(RST_STREAM, 0, stream, &[0; 4]));
    }
    client.stream().write_all(&all).unwrap();
    assert_eq!(goodbye(&mut client), Some(ENHANCE_YOUR_CALM));
    eventually("it is counted", || {
        downstream.counter(Counter::ProtocolFlood) == 1
    });
}

#[test]
fn client_that_stops_reading_is_closed() {
    let mut settings = settings();
    settings.codec.http2.stall_timeout = Duration::from_millis(300);
    let downstream = Downstream::start(&settings, || {
        |_: Rc<Connection>, _: Request<DownstreamBody>| async move {
            Response::new(Full::<Bytes>::from(vec![0; 100_000]))
        }
    });
    // its windows let 65,535 bytes through, and it opens none
    let mut client = Frames::connect(downstream.address());
    client.send(HEADERS, BOTH, 1, GET);
    let mut bytes = 0;
    while let Some(frame) = client.next() {
        if frame.kind == DATA {
            bytes += frame.payload.len();
        }
    }
    assert_eq!(bytes, 65_535);
    eventually("nothing is left", || downstream.connections() == 0);
}

#[test]
fn incomplete_head_times_out() {
    let mut settings = settings();
    settings.codec.http1.head_timeout = Duration::from_millis(300);
    let downstream = Downstream::start(&settings, || hello);
    let mut in_block = Frames::connect(downstream.address());
    in_block.send(HEADERS, END_STREAM, 1, GET);
    let mut in_frame = Frames::connect(downstream.address());
    let frame = Frame::bytes(HEADERS, BOTH, 1, GET);
    in_frame.stream().write_all(&frame[..12]).unwrap();
    assert!(in_block.is_closed() && in_frame.is_closed());
    eventually("both are counted", || {
        downstream.counter(Counter::ProtocolHeadTimeout) == 2
    });
}

#[test]
fn silent_client_gets_a_keepalive_ping() {
    let mut settings = settings();
    settings.codec.http2.keep_alive = Some(Duration::from_millis(200));
    let downstream = Downstream::start(&settings, || hello);
    let mut client = Frames::connect(downstream.address());
    let asked = std::iter::from_fn(|| client.next()).find(|frame| frame.kind == PING);
    assert_eq!(asked.unwrap().flags, 0);
    client.send(HEADERS, BOTH, 1, GET);
    assert_eq!(answer(&mut client, 1).unwrap(), b"hello");
}

#[test]
fn expect_100_continue_is_answered_when_the_body_is_read() {
    let downstream = measuring();
    let mut client = Frames::connect(downstream.address());
    let head = [POST, b"\0\x06expect\x0c100-continue"].concat();
    client.send(HEADERS, END_HEADERS, 1, &head);
    let told = std::iter::from_fn(|| client.next()).find(|frame| frame.kind == HEADERS);
    // `:status: 100`, and no end
    let told = told.unwrap();
    assert_eq!(
        (told.flags, &told.payload[..]),
        (END_HEADERS, &b"\x08\x03100"[..])
    );
    client.send(DATA, END_STREAM, 1, b"four");
    assert_eq!(answer(&mut client, 1).unwrap(), b"4");
}

#[test]
fn interim_responses_reach_http2_clients_before_the_final_one() {
    let (tell, told) = mpsc::channel();
    let told = Arc::new(Mutex::new(told));
    let origin = RawOrigin::start(move |_, mut stream| {
        while !read_head(&mut stream).is_empty() {
            let hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x\r\n\r\n";
            stream.write_all(hints).unwrap();
            told.lock().unwrap().recv().unwrap();
            let last = b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n";
            stream.write_all(last).unwrap();
        }
    });
    let proxy = Proxy::with(|edge| everything_to_address(edge, Back::H1, origin.address));
    let mut client = Frames::connect(proxy.edge);
    for stream in [1, 3] {
        client.send(HEADERS, BOTH, stream, GET);
        let mut head = || {
            let head = std::iter::from_fn(|| client.next()).find(|frame| frame.kind == HEADERS);
            head.unwrap()
        };
        // a literal status that begins with 1 is an interim one
        assert_eq!(head().flags & END_STREAM, 0);
        tell.send(()).unwrap();
        assert_eq!(head().flags & END_STREAM, 0);
        assert_eq!(head().flags & END_STREAM, END_STREAM);
    }
}
