use std::future::{Future, poll_fn};
use std::os::fd::AsFd;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::poll;
use http::Request;
use http_body_util::channel::{Channel, Sender};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::{LocalSet, yield_now};
use tokio::time::Instant;

use super::connection::{READ_BYTES, READ_BYTES_MAX};
use super::exchange::{INTERIM_MAX, REST_TIME_MAX};
use super::*;
use crate::telemetry::{BuildInfo, Telemetry, WorkerId};
use crate::upstream::connect::ConnectTimes;
use crate::upstream::counts::Counted;
use crate::upstream::stream::Stream;
use crate::upstream::{Buffers, ConnectionInfo, Counts};
use traffic::error::{BoxError, Error, Kind};
use traffic::registry::Address;

type TestBody = UnsyncBoxBody<Bytes, BoxError>;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const GET: &str = "GET / HTTP/1.1\r\n\r\n";

/// Returns a connection, and its peer.
fn connection() -> (Box<Connection>, UnixStream) {
    let build = BuildInfo {
        version: String::new(),
        revision: String::new(),
    };
    let counts = Counts::new(Telemetry::new(1, build), WorkerId(0));
    let (ours, peer) = UnixStream::pair().expect("two sockets");
    let ends = Rc::new(ConnectionInfo {
        tls: None,
        local: None,
        remote: Address::Unix(std::path::Path::new("/test").into()),
        opened: ConnectTimes::now(),
    });
    let connection = Connection::new(Stream::Unix(ours), ends, Counted::opened(&counts));
    (connection, peer)
}

fn request(request: http::request::Builder, body: TestBody) -> Option<Message<TestBody>> {
    let (mut parts, body) = request.body(body).expect("a request").into_parts();
    let memory = Rc::new(Buffers::default()).take();
    Some(Message::new(memory, &mut parts, body))
}

fn get() -> Option<Message<TestBody>> {
    let empty = Empty::new().map_err(|never| match never {});
    request(Request::get("/"), empty.boxed_unsync())
}

fn post(body: Bytes) -> Option<Message<TestBody>> {
    let length = body.len();
    let body = Full::new(body).map_err(|never| match never {});
    let builder = Request::post("/").header("content-length", length);
    request(builder, body.boxed_unsync())
}

/// Returns a request whose body the test feeds.
fn upload() -> (Sender<Bytes, BoxError>, Option<Message<TestBody>>) {
    let (sender, body) = Channel::new(4);
    (sender, request(Request::post("/"), body.boxed_unsync()))
}

async fn within(test: impl Future<Output = ()>) {
    LocalSet::new().run_until(test).await;
}

/// Returns the bytes of the body, or its error.
async fn body(incoming: &mut Incoming) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    while let Some(frame) = poll_fn(|cx| incoming.poll_frame(cx)).await {
        if let Ok(data) = frame?.into_data() {
            body.extend_from_slice(&data);
        }
    }
    assert!(incoming.is_end_stream());
    Ok(body)
}

/// Reads until the received bytes end with this text.
async fn hear(peer: &mut UnixStream, end: &str) -> String {
    let mut heard = Vec::new();
    while !heard.ends_with(end.as_bytes()) {
        let read = peer.read_buf(&mut heard).await.expect("to read");
        assert_ne!(read, 0, "after {:?}", String::from_utf8_lossy(&heard));
    }
    String::from_utf8(heard).expect("text")
}

/// Returns a connection that has carried one request, and its peer.
async fn used() -> (Box<Connection>, UnixStream) {
    let (connection, mut peer) = connection();
    assert!(!connection.is_used());
    peer.write_all(OK).await.expect("to write");
    let mut incoming = exchange(connection, &mut get()).await.expect("a response");
    assert_eq!(hear(&mut peer, GET).await, GET);
    assert_eq!(body(&mut incoming).await.expect("a body"), b"ok");
    let free = incoming.take_free().expect("a free connection");
    assert!(free.is_used());
    (free, peer)
}

async fn exchange(
    connection: Box<Connection>,
    message: &mut Option<Message<TestBody>>,
) -> Result<Incoming, Error> {
    Ok(connection.exchange(message).await?.into_body())
}

#[tokio::test]
async fn connection_is_reusable_only_after_complete_exchanges() {
    within(async {
        for (answer, expected, free) in [
            (
                &b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"[..],
                "ok",
                true,
            ),
            (b"HTTP/1.1 204 No Content\r\n\r\n", "", true),
            (
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx: y\r\n\r\n",
                "a",
                true,
            ),
            (
                b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok",
                "ok",
                false,
            ),
            (
                b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
                "ok",
                false,
            ),
            // more than declared
            (
                b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n",
                "ok",
                false,
            ),
            (
                b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n\r\n",
                "",
                false,
            ),
            (b"HTTP/1.1 204 No Content\r\n\r\nbody", "", false),
            (
                b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n0",
                "",
                false,
            ),
        ] {
            let (connection, mut peer) = connection();
            peer.write_all(answer).await.unwrap();
            let mut incoming = exchange(connection, &mut get()).await.unwrap();
            assert_eq!(body(&mut incoming).await.unwrap(), expected.as_bytes());
            let text = String::from_utf8_lossy(answer);
            assert_eq!(incoming.take_free().is_some(), free, "{text:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn close_ends_a_body_until_close_and_truncates_others() {
    within(async {
        for (answer, expected) in [
            ("HTTP/1.1 200 OK\r\n\r\nabc", Some("abc")),
            ("HTTP/1.1 200 OK\r\n\r\n", Some("")),
            ("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nabc", None),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
                None,
            ),
            (
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
                None,
            ),
        ] {
            let (connection, mut peer) = connection();
            peer.write_all(answer.as_bytes()).await.unwrap();
            peer.shutdown().await.unwrap();
            let mut incoming = exchange(connection, &mut get()).await.unwrap();
            match (body(&mut incoming).await, expected) {
                (Ok(body), Some(expected)) => assert_eq!(body, expected.as_bytes()),
                (Err(error), None) => assert_eq!(error.kind(), Kind::UpstreamClosed),
                (got, _) => panic!("{answer:?}: {got:?}"),
            }
            assert!(incoming.take_free().is_none());
        }
    })
    .await;
}

#[tokio::test]
async fn close_before_a_complete_head_is_a_closed_connection() {
    within(async {
        for answer in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 100 Continue\r\n\r\n"] {
            let (connection, mut peer) = connection();
            peer.write_all(answer.as_bytes()).await.unwrap();
            peer.shutdown().await.unwrap();
            let mut message = get();
            let error = exchange(connection, &mut message).await.err().unwrap();
            assert_eq!(error.kind(), Kind::UpstreamClosed, "{answer:?}");
            assert!(message.unwrap().is_begun());
        }
    })
    .await;
}

#[tokio::test]
async fn response_may_start_before_the_request_ends() {
    within(async {
        for finishes_first in [false, true] {
            let (connection, mut peer) = connection();
            let (mut sender, mut message) = upload();
            let mut exchange = pin!(exchange(connection, &mut message));
            sender.send_data(Bytes::from_static(b"abc")).await.unwrap();
            assert!(poll!(&mut exchange).is_pending());
            assert!(poll!(&mut exchange).is_pending());
            let begun = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n";
            assert_eq!(hear(&mut peer, "abc\r\n").await, begun);
            peer.write_all(OK).await.unwrap();
            let mut incoming = exchange.await.unwrap();
            let finish = async {
                sender.send_data(Bytes::from_static(b"de")).await.unwrap();
                drop(sender);
                assert_eq!(hear(&mut peer, "0\r\n\r\n").await, "2\r\nde\r\n0\r\n\r\n");
                yield_now().await;
            };
            if finishes_first {
                finish.await;
                assert_eq!(body(&mut incoming).await.unwrap(), b"ok");
                assert!(incoming.take_free().is_some());
            } else {
                assert_eq!(body(&mut incoming).await.unwrap(), b"ok");
                assert!(incoming.take_free().is_none(), "half a request is on it");
                finish.await;
                assert!(incoming.take_free().is_none());
                drop(incoming);
                assert_eq!(peer.read(&mut [0]).await.unwrap(), 0);
            }
        }
    })
    .await;
}

#[tokio::test]
async fn aborted_request_body_after_the_response_closes_the_connection() {
    within(async {
        let (connection, mut peer) = connection();
        let (mut sender, mut message) = upload();
        sender.send_data(Bytes::from_static(b"abc")).await.unwrap();
        peer.write_all(OK).await.unwrap();
        let mut incoming = exchange(connection, &mut message).await.unwrap();
        sender.abort("gone".into());
        hear(&mut peer, "abc\r\n").await;
        yield_now().await;
        assert_eq!(body(&mut incoming).await.unwrap(), b"ok");
        assert!(incoming.take_free().is_none());
        drop(incoming);
        let mut rest = Vec::new();
        peer.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"", "nothing that looks like an end");
    })
    .await;
}

#[tokio::test]
async fn early_error_response_of_a_peer_that_stops_reading_is_forwarded() {
    within(async {
        let (connection, mut peer) = connection();
        peer.write_all(b"HTTP/1.1 413 Too Long\r\ncontent-length: 2\r\n\r\nno")
            .await
            .unwrap();
        let peer = peer.into_std().unwrap();
        peer.shutdown(std::net::Shutdown::Read).unwrap();
        let mut message = post(Bytes::from(vec![b'x'; 1 << 20]));
        let response = connection.exchange(&mut message).await.unwrap();
        assert_eq!(response.status(), 413);
        let mut incoming = response.into_body();
        assert_eq!(body(&mut incoming).await.unwrap(), b"no");
        assert!(incoming.take_free().is_none());
    })
    .await;
}

#[tokio::test]
async fn small_socket_buffers_keep_messages_intact() {
    within(async {
        let (connection, mut peer) = connection();
        let small = |stream: &dyn AsFd| {
            let socket = socket2::Socket::from(stream.as_fd().try_clone_to_owned().unwrap());
            socket.set_send_buffer_size(1).unwrap();
        };
        match &*connection.wire.stream.borrow() {
            Stream::Unix(stream) => small(stream),
            Stream::Tcp(stream) => small(stream),
            Stream::Tls(_) | Stream::Tunnelled(_) => unreachable!("it is plain"),
        }
        small(&peer);
        let sent: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
        let answer = async {
            let mut heard = Vec::new();
            while !heard.ends_with(&sent[sent.len() - 64..]) {
                assert_ne!(peer.read_buf(&mut heard).await.unwrap(), 0);
            }
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", sent.len());
            peer.write_all(head.as_bytes()).await.unwrap();
            peer.write_all(&sent).await.unwrap();
            heard
        };
        let mut message = post(Bytes::from(sent.clone()));
        let ask = async {
            let mut incoming = exchange(connection, &mut message).await.unwrap();
            (body(&mut incoming).await.unwrap(), incoming.take_free())
        };
        let (heard, (got, free)) = tokio::join!(answer, ask);
        assert!(heard.ends_with(&sent) && heard.len() < sent.len() + 100);
        assert!(got == sent, "the response is what was sent");
        assert!(free.is_some());
    })
    .await;
}

#[tokio::test]
async fn closed_or_unexpectedly_readable_idle_connection_is_stale() {
    within(async {
        let (connection, peer) = used().await;
        yield_now().await;
        assert!(!connection.is_stale());
        drop(peer);
        yield_now().await;
        assert!(connection.is_stale());

        let (connection, mut peer) = used().await;
        peer.write_all(OK).await.unwrap();
        yield_now().await;
        assert!(connection.is_stale());
    })
    .await;
}

#[tokio::test]
async fn bytes_before_the_request_are_not_its_response() {
    within(async {
        for says in [&b"HTTP/1.1 200 OK\r\n\r\n"[..], b""] {
            let (connection, mut peer) = used().await;
            let mut message = get();
            let mut exchange = Box::pin(exchange(connection, &mut message));
            assert!(poll!(&mut exchange).is_pending());
            peer.write_all(says).await.unwrap();
            peer.shutdown().await.unwrap();
            yield_now().await;
            let error = exchange.as_mut().await.err().unwrap();
            drop(exchange);
            assert_eq!(error.kind(), Kind::UpstreamClosed);
            assert!(!message.unwrap().is_begun(), "it can go elsewhere");
            assert_eq!(peer.read(&mut [0]).await.unwrap_or(0), 0);
        }
    })
    .await;
}

#[tokio::test]
async fn idle_connection_uses_little_memory() {
    within(async {
        // a fast body, and a head that arrives in small pieces
        let fast = [
            b"HTTP/1.1 200 OK\r\ncontent-length: 3000000\r\n\r\n".to_vec(),
            vec![b'x'; 3_000_000],
        ]
        .concat();
        let head = format!(
            "HTTP/1.1 204 No Content\r\na: {}\r\n\r\n",
            "b".repeat(50_000)
        );
        for (bytes, piece) in [(fast, 3_000_100), (head.into_bytes(), 1000)] {
            let (connection, mut peer) = connection();
            let answer = async {
                for piece in bytes.chunks(piece) {
                    peer.write_all(piece).await.unwrap();
                    yield_now().await;
                }
            };
            let mut message = get();
            let ask = async {
                let mut incoming = exchange(connection, &mut message).await.unwrap();
                body(&mut incoming).await.unwrap();
                incoming.take_free().unwrap()
            };
            let ((), mut free) = tokio::join!(answer, ask);
            assert!(free.read_bytes > READ_BYTES && free.read_bytes <= READ_BYTES_MAX);
            free.rest();
            assert_eq!(free.read_bytes, READ_BYTES);
            assert_eq!(free.input.capacity(), 0);
        }
    })
    .await;
}

#[tokio::test]
async fn upgraded_connection_starts_with_bytes_after_the_response() {
    within(async {
        let (connection, mut peer) = connection();
        peer.write_all(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\nhello")
            .await
            .unwrap();
        let empty = Empty::new().map_err(|never| match never {});
        let builder = Request::get("/").header("upgrade", "x");
        let mut message = request(builder, empty.boxed_unsync());
        let mut incoming = exchange(connection, &mut message).await.unwrap();
        assert!(incoming.take_free().is_none());
        let mut upgraded = incoming.into_upgraded().unwrap();
        hear(&mut peer, "\r\n\r\n").await;
        let mut heard = [0; 3];
        upgraded.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"hel");
        peer.write_all(b" you").await.unwrap();
        drop(peer.shutdown().await);
        let mut rest = String::new();
        upgraded.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "lo you");
        upgraded.write_all(b"raw").await.unwrap();
        assert_eq!(hear(&mut peer, "raw").await, "raw");
    })
    .await;
}

#[tokio::test]
async fn number_of_interim_responses_is_bounded() {
    let test = async {
        let (connection, mut peer) = connection();
        let mut message = get();
        let mut exchange = Box::pin(connection.exchange(&mut message));
        for sent in 0..=INTERIM_MAX {
            assert!(poll!(exchange.as_mut()).is_pending(), "{sent}");
            let interim = b"HTTP/1.1 102 Processing\r\n\r\n";
            peer.write_all(interim).await.expect("written");
        }
        let error = exchange.await.expect_err("no response");
        assert_eq!(error.kind(), Kind::UpstreamProtocol);
    };
    within(test).await;
}

#[tokio::test(start_paused = true)]
async fn request_body_after_its_response_is_limited() {
    LocalSet::new()
        .run_until(async {
            let (connection, mut peer) = connection();
            let wire = Rc::downgrade(&connection.wire);
            peer.write_all(OK).await.expect("written");
            // more than the buffers of an unread socket hold
            let mut message = post(Bytes::from(vec![0; 8 << 20]));
            let response = connection.exchange(&mut message).await.expect("answered");
            tokio::time::sleep(REST_TIME_MAX * 3).await;
            assert!(wire.upgrade().is_some(), "the response is not over");
            let over = Instant::now();
            drop(response);
            while wire.upgrade().is_some() {
                assert!(over.elapsed() <= REST_TIME_MAX + Duration::from_secs(1));
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            assert!(over.elapsed() >= REST_TIME_MAX);
        })
        .await;
}
