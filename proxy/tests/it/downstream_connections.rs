//! Life cycle of downstream connections: idle connections, upgrades, HTTP/2 next to HTTP/1.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::mpsc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Body, Frame};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use proxy::exchange::downstream::body::Switched;
use proxy::exchange::{Connection, DownstreamBody};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::DEADLINE;
use crate::support::downstream::{Downstream, hello, settings};
use crate::support::raw::{GET, Raw};

#[test]
fn idle_connections_serve_new_requests() {
    let mut settings = settings();
    settings.codec.http1.park_after = Duration::from_millis(1);
    let downstream = Downstream::start(&settings, || hello);
    let mut client = Raw::connect(downstream.address());
    for round in 0..6 {
        let reply = client.send(GET).reply();
        assert_eq!((reply.status, &reply.body[..]), (200, &b"hello"[..]));
        if round % 2 == 0 {
            // In pieces, and several at once.
            client.send(&GET[..9]);
            client.send(&GET[9..]);
            client.send([GET, GET].concat());
            for _ in 0..3 {
                assert_eq!(client.reply().status, 200);
            }
        }
    }
}

#[test]
fn response_before_the_end_of_a_large_upload_is_not_lost() {
    static PIECE: [u8; 64 * 1024] = [0; 64 * 1024];
    const PIECES: usize = 256;
    let downstream = Downstream::start(&settings(), || hello);
    let mut client = std::net::TcpStream::connect(downstream.address()).unwrap();
    let length = PIECE.len() * PIECES;
    write!(
        client,
        "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: {length}\r\n\r\n"
    )
    .unwrap();
    // more than all buffers of the kernel hold: a peer that stops to read would block us, one that closes would reset
    for _ in 0..PIECES {
        client.write_all(&PIECE).unwrap();
    }
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut response = String::new();
    client.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200 OK\r\n"), "{response}");
}

#[test]
fn upgraded_connection_passes_bytes_both_ways() {
    let downstream = Downstream::start(&settings(), || {
        |_: Rc<Connection>, mut request: Request<DownstreamBody>| async move {
            let mut response = Response::new(Full::<bytes::Bytes>::default());
            if request
                .headers()
                .get("upgrade")
                .is_none_or(|value| value == "refused")
            {
                return response;
            }
            let Some(Switched::Connection(connection)) = request.body_mut().take_switched() else {
                panic!("an upgrade by HTTP/1 gets the connection");
            };
            tokio::task::spawn_local(async move {
                let mut io = connection.await.unwrap().connection;
                let mut bytes = [0; 64];
                while let Ok(length @ 1..) = io.read(&mut bytes).await {
                    io.write_all(&bytes[..length].to_ascii_uppercase())
                        .await
                        .unwrap();
                }
            });
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            response
                .headers_mut()
                .insert("connection", "upgrade".parse().unwrap());
            response
                .headers_mut()
                .insert("upgrade", "shout".parse().unwrap());
            response
        }
    });
    let mut client = Raw::connect(downstream.address());
    // The first bytes of the new protocol come with the head, and would be a bad request.
    client.send(
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: shout\r\n\r\nearly\n\n",
    );
    assert_eq!(client.reply().status, 101);
    assert_eq!(client.read(7), b"EARLY\n\n");
    client.send("late\r\n x");
    assert_eq!(client.read(8), b"LATE\r\n X");
    assert_eq!(downstream.connections(), 1);

    // Refused: what follows are requests again.
    let mut client = Raw::connect(downstream.address());
    let refused = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: refused\r\n\r\n";
    client.send([refused, GET].concat());
    assert_eq!(client.reply().status, 200);
    assert_eq!(client.reply().status, 200);
    assert_eq!(client.send(refused).reply().status, 200);
    assert_eq!(client.send(GET).reply().status, 200);
}

#[tokio::test]
async fn http2_is_served_on_the_same_port() {
    let downstream = Downstream::hello();
    let tcp = tokio::net::TcpStream::connect(downstream.address())
        .await
        .unwrap();
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(executor, TokioIo::new(tcp))
            .await
            .unwrap();
    let connection = tokio::spawn(connection);
    for _ in 0..3 {
        let request = Request::get("http://a.test/")
            .body(Empty::<bytes::Bytes>::new())
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), 200);
        let body = response.into_body().collect().await.unwrap();
        assert_eq!(body.to_bytes(), "hello");
    }
    let two_hosts = Request::get("http://a.test/").header("host", "b.test");
    let request = two_hosts.body(Empty::new()).unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), 400);
    drop(sender);
    connection.await.unwrap().unwrap();
    let mut client = Raw::connect(downstream.address());
    assert_eq!(client.send(GET).reply().status, 200);
}

#[derive(Debug, PartialEq, Eq)]
enum Heard {
    Began,
    GivenUp,
}

/// Guard that reports when a request is abandoned.
struct Tell(mpsc::Sender<Heard>);

impl Drop for Tell {
    fn drop(&mut self) {
        // the test may be over
        let _ = self.0.send(Heard::GivenUp);
    }
}

/// Starts a server that never answers; the receiver gets an event for each request that begins or is abandoned. Bodies
/// are read only if the request has `x-read`.
fn silent() -> (Downstream, mpsc::Receiver<Heard>) {
    let (tell, told) = mpsc::channel();
    let downstream = Downstream::start(&settings(), move || {
        let tell = tell.clone();
        move |_: Rc<Connection>, mut request: Request<DownstreamBody>| {
            let tell = Tell(tell.clone());
            async move {
                tell.0.send(Heard::Began).unwrap();
                if request.headers().contains_key("x-read") {
                    while let Some(Ok(_)) = request.body_mut().frame().await {}
                }
                std::future::pending::<Infallible>().await;
                drop(tell);
                Response::new(Full::<bytes::Bytes>::default())
            }
        }
    });
    (downstream, told)
}

/// Closes a client connection, by ending its direction or by a reset.
fn leave(client: Raw, is_reset: bool) {
    if is_reset {
        let linger = Some(Duration::ZERO);
        SockRef::from(&client.stream()).set_linger(linger).unwrap();
    }
    drop(client);
}

const POST: &str = "POST / HTTP/1.1\r\nHost: a.test\r\nx-read: 1\r\nContent-Length: 5\r\n\r\nhello";

#[test]
fn client_disconnect_cancels_its_request() {
    let (downstream, told) = silent();
    // not all of the latter are read
    let (pipelined, more) = (GET.repeat(100), GET.repeat(1000));
    for request in [GET, POST] {
        for behind in [
            "",
            "\r\n",
            "\r",
            "GET / HT",
            GET,
            POST,
            &pipelined,
            &more,
            "no HTTP\n",
        ] {
            for is_reset in [false, true] {
                let mut client = Raw::connect(downstream.address());
                client.send(request);
                client.send(behind);
                assert_eq!(told.recv_timeout(DEADLINE), Ok(Heard::Began));
                leave(client, is_reset);
                let heard = told.recv_timeout(DEADLINE);
                let case = format!("{behind:?} behind {request:?}, reset: {is_reset}");
                assert_eq!(heard, Ok(Heard::GivenUp), "{case}");
            }
        }
    }
}

#[test]
fn client_disconnect_cancels_an_upload_that_nobody_reads() {
    let (downstream, told) = silent();
    let pieces = "5\r\nhello\r\n".repeat(10_000);
    for framing in [
        "content-length: 1000000",
        "content-length: 100000",
        "transfer-encoding: chunked",
    ] {
        for is_reset in [false, true] {
            let mut client = Raw::connect(downstream.address());
            client.send(format!(
                "POST / HTTP/1.1\r\nHost: a.test\r\n{framing}\r\n\r\n{pieces}"
            ));
            assert_eq!(told.recv_timeout(DEADLINE), Ok(Heard::Began));
            leave(client, is_reset);
            let heard = told.recv_timeout(DEADLINE);
            assert_eq!(heard, Ok(Heard::GivenUp), "{framing}, reset: {is_reset}");
        }
    }
}

#[test]
fn client_that_ends_within_its_body_is_cancelled_even_if_nobody_reads_that() {
    let (downstream, told) = silent();
    for body in [
        "content-length: 10\r\n\r\nhello",
        "transfer-encoding: chunked\r\n\r\n5\r\nhel",
        "transfer-encoding: chunked\r\n\r\nmalformed\r\n",
    ] {
        for is_closed in [false, true] {
            let mut client = Raw::connect(downstream.address());
            client.send(format!("POST / HTTP/1.1\r\nHost: a.test\r\n{body}"));
            assert_eq!(told.recv_timeout(DEADLINE), Ok(Heard::Began));
            client.finish();
            let left = (!is_closed).then_some(client);
            let heard = told.recv_timeout(DEADLINE);
            assert_eq!(heard, Ok(Heard::GivenUp), "{body:?}, closed: {is_closed}");
            drop(left);
        }
    }
}

/// Body of a response that begins and never continues.
struct Begun(
    Option<Bytes>,
    #[expect(dead_code, reason = "dropped with it")] Tell,
);

impl Body for Begun {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.0.take() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            None => Poll::Pending,
        }
    }
}

/// Starts a server whose responses begin with "hello" and never continue; the receiver gets an event for each abandoned
/// request.
fn begun() -> (Downstream, mpsc::Receiver<Heard>) {
    let (tell, told) = mpsc::channel();
    let downstream = Downstream::start(&settings(), move || {
        let tell = tell.clone();
        move |_: Rc<Connection>, mut request: Request<DownstreamBody>| {
            let body = Begun(Some(Bytes::from_static(b"hello")), Tell(tell.clone()));
            async move {
                // some of the request is read, and nothing more of it once there is a response
                request.body_mut().frame().await;
                Response::new(body)
            }
        }
    });
    (downstream, told)
}

/// Reads the available part of such a response.
fn read_hello(client: &mut Raw) {
    let mut seen = Vec::new();
    while !seen.ends_with(b"hello") {
        seen.extend(client.read(1));
    }
}

#[test]
fn client_disconnect_cancels_a_response_that_has_begun() {
    let (downstream, told) = begun();
    let length = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 9\r\n\r\nhello";
    let chunked =
        "POST / HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    for request in [GET, POST, length, chunked] {
        for is_reset in [false, true] {
            let mut client = Raw::connect(downstream.address());
            client.send(request);
            read_hello(&mut client);
            client.read(2);
            leave(client, is_reset);
            let heard = told.recv_timeout(DEADLINE);
            assert_eq!(heard, Ok(Heard::GivenUp), "{request:?}, reset: {is_reset}");
        }
    }
}

#[test]
fn cancelled_response_that_ends_with_its_connection_is_not_taken_for_whole() {
    let (downstream, told) = begun();
    let mut client = Raw::connect(downstream.address());
    client.send("GET / HTTP/1.0\r\nHost: a.test\r\n\r\n");
    read_hello(&mut client);
    client.finish();
    assert_eq!(told.recv_timeout(DEADLINE), Ok(Heard::GivenUp));
    let end = client.stream().read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(end, Err(std::io::ErrorKind::ConnectionReset));
}

/// The number of pipelined requests that are buffered is limited, and none of them is lost.
#[test]
fn pipelined_requests_are_served_however_many_they_are() {
    const COUNT: usize = 5_000;
    let downstream = Downstream::hello();
    let mut client = Raw::connect(downstream.address());
    let mut stream = client.stream();
    let sending = std::thread::spawn(move || stream.write_all(GET.repeat(COUNT).as_bytes()));
    for _ in 0..COUNT {
        assert_eq!(client.reply().status, 200);
    }
    sending.join().unwrap().unwrap();
}
