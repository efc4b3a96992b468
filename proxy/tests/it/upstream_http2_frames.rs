//! Handwritten HTTP/2 endpoints: permitted frames, and frames that are errors; no request is sent twice.

use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use crate::support::client::{Client, Front, get, post};
use crate::support::frames::{
    DATA, END_HEADERS, END_STREAM, Frame, Frames, GET, GOAWAY, HEADERS, PING, PUSH_PROMISE,
    RST_STREAM, SETTINGS, WINDOW_UPDATE,
};
use crate::support::mesh::everything_to_address;
use crate::support::origin::{Back, RawOrigin};
use crate::support::proxy::Proxy;
use crate::support::{DEADLINE, until};

const BOTH: u8 = END_STREAM | END_HEADERS;

/// Header block with only `:status: 200`.
const OK: &[u8] = &[0x88];

/// Header block with `:status: 103` and a link.
const EARLY_HINTS: &[u8] = b"\x08\x03103\x00\x04link\x04</a>";

const PROTOCOL_ERROR: u32 = 1;
const FLOW_CONTROL_ERROR: u32 = 3;
const FRAME_SIZE_ERROR: u32 = 6;
const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;
const COMPRESSION_ERROR: u32 = 9;
const ENHANCE_YOUR_CALM: u32 = 11;

fn proxy_to(origin: &RawOrigin) -> Proxy {
    Proxy::with(|edge| everything_to_address(edge, Back::H2, origin.address))
}

/// Starts an origin that scripts the frames of each of its connections.
fn origin(script: impl Fn(Frames) + Send + Sync + 'static) -> RawOrigin {
    RawOrigin::start(move |_, stream: TcpStream| script(Frames::accept(stream, &[])))
}

/// Returns the error code of the next reset or GOAWAY.
fn complaint(peer: &mut Frames) -> Option<(u8, u32)> {
    loop {
        let frame = peer.next()?;
        match frame.kind {
            RST_STREAM => return Some((RST_STREAM, frame.number(0))),
            GOAWAY => return Some((GOAWAY, frame.number(4))),
            _ => {}
        }
    }
}

#[tokio::test]
async fn interim_responses_and_trailers_reach_the_client() {
    let origin = origin(|mut peer| {
        while let Some(asked) = peer.next_of(HEADERS) {
            peer.send(HEADERS, END_HEADERS, asked.stream, EARLY_HINTS);
            peer.send(HEADERS, END_HEADERS, asked.stream, OK);
            peer.send(DATA, 0, asked.stream, b"body");
            peer.send(HEADERS, BOTH, asked.stream, b"\x00\x01x\x01y");
        }
    });
    let proxy = proxy_to(&origin);
    let edge = proxy.edge;
    let client = tokio::task::spawn_blocking(move || {
        let mut client = Frames::connect(edge);
        client.send(HEADERS, BOTH, 1, GET);
        let heads: Vec<Frame> = (0..3).filter_map(|_| client.next_of(HEADERS)).collect();
        let flags: Vec<u8> = heads.iter().map(|head| head.flags).collect();
        assert_eq!(flags, [END_HEADERS, END_HEADERS, BOTH]);
        // a literal status that begins with 1 is an interim one
        assert_eq!(heads[0].payload[..5], *b"\x08\x03103");
        assert_eq!(heads[1].payload[0], 0x88);
    });
    client.await.unwrap();
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let answer = client.call(get("/")).await;
    assert_eq!((answer.status, answer.text()), (200, "body"));
}

#[tokio::test]
async fn protocol_errors_end_the_stream_or_connection_without_a_second_attempt() {
    let literal = |name: &str, value: &str| {
        let mut field = vec![0, name.len() as u8];
        field.extend_from_slice(name.as_bytes());
        field.push(value.len() as u8);
        field.extend_from_slice(value.as_bytes());
        field
    };
    let bytes = Frame::bytes;
    let promised = [OK, &literal("content-length", "9")].concat();
    let large = [OK, &literal("x", &"y".repeat(100)).repeat(500)].concat();
    let mut too_large = bytes(HEADERS, 0, 1, &large[..16_000]);
    for piece in large[16_000..].chunks(16_000) {
        too_large.extend(bytes(9, 0, 1, piece));
    }
    too_large.extend(bytes(9, END_HEADERS, 1, b""));
    let rows: Vec<(&str, Vec<u8>, u8, u32)> = vec![
        (
            "data before a head",
            bytes(DATA, 0, 1, b"x"),
            RST_STREAM,
            PROTOCOL_ERROR,
        ),
        (
            "an end before its time",
            bytes(HEADERS, BOTH, 1, &promised),
            RST_STREAM,
            PROTOCOL_ERROR,
        ),
        (
            "no status",
            bytes(HEADERS, BOTH, 1, &literal("x", "y")),
            RST_STREAM,
            PROTOCOL_ERROR,
        ),
        (
            "a switch of protocols",
            bytes(HEADERS, END_HEADERS, 1, b"\x08\x03101"),
            RST_STREAM,
            PROTOCOL_ERROR,
        ),
        (
            "too many interim responses",
            bytes(HEADERS, END_HEADERS, 1, EARLY_HINTS).repeat(33),
            RST_STREAM,
            PROTOCOL_ERROR,
        ),
        (
            "a head that is too large",
            too_large,
            RST_STREAM,
            PROTOCOL_ERROR,
        ),
        (
            "a push",
            bytes(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x82]),
            GOAWAY,
            PROTOCOL_ERROR,
        ),
        (
            "another stream",
            bytes(HEADERS, BOTH, 77, OK),
            GOAWAY,
            PROTOCOL_ERROR,
        ),
        (
            "bad compression",
            bytes(HEADERS, BOTH, 1, &[0xff; 4]),
            GOAWAY,
            COMPRESSION_ERROR,
        ),
        (
            "a frame too long",
            vec![0, 0x40, 1, DATA, 0, 0, 0, 0, 1],
            GOAWAY,
            FRAME_SIZE_ERROR,
        ),
        (
            "a window too large",
            bytes(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
            GOAWAY,
            FLOW_CONTROL_ERROR,
        ),
        (
            "a flood",
            bytes(PING, 0, 0, &[0; 8]).repeat(2000),
            GOAWAY,
            ENHANCE_YOUR_CALM,
        ),
    ];
    for (what, answer, kind, reason) in rows {
        let (told, hear) = mpsc::channel();
        let count = Arc::new(AtomicUsize::new(0));
        let heads = Arc::clone(&count);
        let origin = origin(move |mut peer| {
            if peer.next_of(HEADERS).is_some() && heads.fetch_add(1, Ordering::SeqCst) == 0 {
                // the peer may have closed before all of it is written
                let _ = peer.stream().write_all(&answer);
                let _ = told.send(complaint(&mut peer));
            }
        });
        let proxy = proxy_to(&origin);
        let mut client = Client::connect(Front::H2, proxy.edge).await;
        assert_eq!(client.call(post("/", "x")).await.status, 502, "{what}");
        let heard = tokio::task::spawn_blocking(move || hear.recv_timeout(DEADLINE)).await;
        // what is said last may be lost with a connection that is closed while more is coming
        if let Some(complaint) = heard.unwrap().expect("the origin was asked") {
            assert_eq!(complaint, (kind, reason), "{what}");
        }
        assert_eq!(count.load(Ordering::SeqCst), 1, "{what}: sent once");
    }
}

#[tokio::test]
async fn truncated_http2_response_is_not_completed() {
    let refused = REFUSED_STREAM.to_be_bytes();
    for end in [
        Frame::bytes(RST_STREAM, 0, 1, &refused),
        Frame::bytes(DATA, END_STREAM, 1, b"x"),
        Frame::bytes(HEADERS, END_HEADERS, 1, OK),
    ] {
        let count = Arc::new(AtomicUsize::new(0));
        let heads = Arc::clone(&count);
        let origin = origin(move |mut peer| {
            while let Some(asked) = peer.next_of(HEADERS) {
                heads.fetch_add(1, Ordering::SeqCst);
                let head = b"\x88\x0f\x0d\x019";
                peer.send(HEADERS, END_HEADERS, asked.stream, head);
                peer.send(DATA, 0, asked.stream, b"abc");
                peer.stream().write_all(&end).unwrap();
            }
        });
        let proxy = proxy_to(&origin);
        let mut client = Client::connect(Front::H2, proxy.edge).await;
        assert!(client.try_call(get("/")).await.is_err());
        assert_eq!(count.load(Ordering::SeqCst), 1, "it is not sent again");
    }
}

#[tokio::test]
async fn cancelled_request_resets_its_stream_and_keeps_the_connection() {
    let (told, hear) = mpsc::channel();
    let origin = origin(move |mut peer| {
        peer.next_of(HEADERS).unwrap();
        told.send(None).unwrap();
        told.send(complaint(&mut peer)).unwrap();
        // frames for it after the reset are ignored
        peer.send(HEADERS, END_HEADERS, 1, OK);
        peer.send(DATA, END_STREAM, 1, &[0; 10_000]);
        let asked = peer.next_of(HEADERS).unwrap();
        peer.send(HEADERS, BOTH, asked.stream, OK);
        assert!(peer.next_of(GOAWAY).is_none_or(|bye| bye.number(4) == 0));
    });
    let proxy = proxy_to(&origin);
    let edge = proxy.edge;
    let client = tokio::task::spawn_blocking(move || {
        let mut client = Frames::connect(edge);
        client.send(HEADERS, BOTH, 1, GET);
        assert_eq!(hear.recv_timeout(DEADLINE), Ok(None));
        client.send(RST_STREAM, 0, 1, &CANCEL.to_be_bytes());
        let reset = hear.recv_timeout(DEADLINE);
        assert_eq!(reset, Ok(Some((RST_STREAM, CANCEL))));
        client.send(HEADERS, BOTH, 3, GET);
        let head = client.next_of(HEADERS).unwrap();
        assert_eq!((head.stream, head.payload[0]), (3, 0x88));
    });
    client.await.unwrap();
    assert_eq!(
        proxy.metric("strait_upstream_connections_opened_total", &[]),
        1.0
    );
}

#[tokio::test]
async fn request_body_respects_the_windows_of_the_endpoint() {
    const WINDOW: u32 = 1000;
    let window = [&[0, 4][..], &WINDOW.to_be_bytes()].concat();
    let origin = RawOrigin::start(move |_, stream| {
        let mut peer = Frames::accept(stream, &window);
        // data sent before the endpoint knew our settings may exceed the window, which then is negative
        let (mut got, mut granted) = (0, WINDOW as usize);
        let asked = peer.next_of(HEADERS).unwrap();
        loop {
            let data = peer.next_of(DATA).unwrap();
            got += data.payload.len();
            assert!(got <= granted.max(65_535), "{got} of {granted}");
            if data.flags & END_STREAM != 0 {
                break;
            }
            while got >= granted {
                granted += WINDOW as usize;
                peer.send(WINDOW_UPDATE, 0, asked.stream, &WINDOW.to_be_bytes());
                peer.send(WINDOW_UPDATE, 0, 0, &WINDOW.to_be_bytes());
            }
        }
        let text = got.to_string();
        peer.send(HEADERS, END_HEADERS, asked.stream, OK);
        peer.send(DATA, END_STREAM, asked.stream, text.as_bytes());
        peer.next_of(GOAWAY);
    });
    let proxy = proxy_to(&origin);
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let answer = client.call(post("/", vec![7; 200_000])).await;
    assert_eq!((answer.status, answer.text()), (200, "200000"));
}

#[tokio::test]
async fn unread_response_stops_at_the_window_and_resumes() {
    const BYTES: usize = 4 << 20;
    const STREAM_WINDOW: usize = 256 * 1024;
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    let origin = origin(move |mut peer| {
        let asked = peer.next_of(HEADERS).unwrap();
        peer.send(HEADERS, END_HEADERS, asked.stream, OK);
        let mut window = STREAM_WINDOW;
        let mut left = BYTES;
        while left > 0 {
            while window < 16_384.min(left) {
                let more = peer.next_of(WINDOW_UPDATE).unwrap();
                if more.stream == asked.stream {
                    window += more.number(0) as usize;
                }
            }
            let piece = left.min(16_384);
            let end = if piece == left { END_STREAM } else { 0 };
            peer.send(DATA, end, asked.stream, &vec![9; piece]);
            (window, left) = (window - piece, left - piece);
            count.fetch_add(piece, Ordering::SeqCst);
        }
        peer.next_of(GOAWAY);
    });
    let proxy = proxy_to(&origin);
    let edge = proxy.edge;
    let client = tokio::task::spawn_blocking(move || {
        let mut client = Frames::connect(edge);
        client.send(HEADERS, BOTH, 1, GET);
        // its own window, the default one, is full
        let mut got = 0;
        while got < 65_535 {
            got += client.next_of(DATA).unwrap().payload.len();
        }
        assert!(sent.load(Ordering::SeqCst) <= STREAM_WINDOW + 65_535 + 128 * 1024);
        let more = (1_u32 << 30).to_be_bytes();
        client.send(WINDOW_UPDATE, 0, 1, &more);
        client.send(WINDOW_UPDATE, 0, 0, &more);
        while got < BYTES {
            got += client.next_of(DATA).unwrap().payload.len();
        }
        assert_eq!(got, BYTES);
    });
    client.await.unwrap();
}

#[tokio::test]
async fn early_response_ends_the_request_without_an_error() {
    let origin = origin(|mut peer| {
        let asked = peer.next_of(HEADERS).unwrap();
        peer.next_of(DATA).unwrap();
        peer.send(HEADERS, END_HEADERS, asked.stream, OK);
        peer.send(DATA, END_STREAM, asked.stream, b"enough");
        // NO_ERROR: the rest is not wanted (RFC 9113, section 8.1)
        peer.send(RST_STREAM, 0, asked.stream, &[0; 4]);
        peer.next_of(GOAWAY);
    });
    let proxy = proxy_to(&origin);
    let edge = proxy.edge;
    let client = tokio::task::spawn_blocking(move || {
        let mut client = Frames::connect(edge);
        let posts = [&[0x83], &GET[1..]].concat();
        client.send(HEADERS, END_HEADERS, 1, &posts);
        client.send(DATA, 0, 1, &[0; 10_000]);
        assert_eq!(client.next_of(HEADERS).unwrap().payload[0], 0x88);
        let body = client.next_of(DATA).unwrap();
        assert_eq!(body.payload, b"enough");
    });
    client.await.unwrap();
}

#[tokio::test]
async fn connection_error_fails_active_requests_without_a_second_attempt() {
    let count = Arc::new(AtomicUsize::new(0));
    let heads = Arc::clone(&count);
    let limit = [0, 3, 0, 0, 0, 9];
    let origin = RawOrigin::start(move |_, stream| {
        let mut peer = Frames::accept(stream, &limit);
        let mut answered = false;
        let mut open = 0;
        while let Some(asked) = peer.next_of(HEADERS) {
            heads.fetch_add(1, Ordering::SeqCst);
            if !answered {
                answered = true;
                peer.send(HEADERS, BOTH, asked.stream, OK);
                continue;
            }
            open += 1;
            if open == 3 {
                peer.send(PING, 0, 0, &[0; 3]);
            }
        }
    });
    let proxy = proxy_to(&origin);
    let mut client = Client::connect(Front::H2, proxy.edge).await;
    assert_eq!(client.call(post("/", "x")).await.status, 200);
    let mut sender = client.http2_handle().unwrap();
    let mut answers = Vec::new();
    for _ in 0..3 {
        sender.ready().await.unwrap();
        answers.push(sender.send_request(post("/", "x")));
    }
    for answer in answers {
        assert_eq!(answer.await.unwrap().status(), 502);
    }
    assert_eq!(count.load(Ordering::SeqCst), 4);
    // the next one finds a new connection
    until("a new connection is used", async || {
        let mut client = Client::connect(Front::H2, proxy.edge).await;
        client.call(post("/", "x")).await.status == 200
    })
    .await;
}

#[tokio::test]
async fn settings_and_pings_of_the_endpoint_are_acknowledged() {
    let (told, hear) = mpsc::channel();
    let origin = origin(move |mut peer| {
        peer.send(PING, 0, 0, b"12345678");
        let asked = peer.next_of(HEADERS);
        let mut answers = Vec::new();
        while answers.len() < 2 {
            let frame = peer.next().unwrap();
            if frame.flags & 1 != 0 && matches!(frame.kind, PING | SETTINGS) {
                answers.push((frame.kind, frame.payload));
            }
        }
        told.send(answers).unwrap();
        peer.send(HEADERS, BOTH, asked.unwrap().stream, OK);
        peer.next_of(GOAWAY);
    });
    let proxy = proxy_to(&origin);
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.call(get("/")).await.status, 200);
    let mut answers = hear.recv_timeout(DEADLINE).unwrap();
    answers.sort();
    assert_eq!(
        answers,
        [(SETTINGS, Vec::new()), (PING, b"12345678".to_vec())]
    );
}

#[tokio::test]
async fn http2_keep_alive_pings_and_closes_silent_endpoints() {
    let (tell, told) = mpsc::channel();
    let tell = std::sync::Mutex::new(tell);
    let origin = origin(move |mut peer| {
        while let Some(frame) = peer.next() {
            if frame.kind == HEADERS {
                peer.send(HEADERS, BOTH, frame.stream, OK);
            } else if frame.kind == PING && frame.flags == 0 {
                // no answer: the connection has to end by itself
                let closed = peer.is_closed();
                tell.lock().unwrap().send(closed).unwrap();
            }
        }
    });
    let rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: web}\nspec:\n  \
        host: web.test\n  trafficPolicy: {connectionPool: {http: {http2KeepAlive: \
        {interval: 200ms, timeout: 200ms}}}}\n";
    let proxy = Proxy::with(|edge| {
        let mesh = everything_to_address(edge, Back::H2, origin.address);
        crate::support::mesh::documents([mesh.as_str(), rule])
    });
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.call(get("/")).await.status, 200);
    let asked = tokio::task::spawn_blocking(move || told.recv_timeout(DEADLINE));
    assert_eq!(asked.await.unwrap(), Ok(true));
}
