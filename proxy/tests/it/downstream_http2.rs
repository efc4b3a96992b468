//! Handling of abusive HTTP/2: bounded work, a closed connection, a counter.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use proxy::exchange::{Connection, DownstreamBody};
use proxy::telemetry::Counter;
use tokio::net::TcpStream;

use crate::support::downstream::{Downstream, hello, settings};
use crate::support::eventually;
use crate::support::frames::{
    CONTINUATION, END_HEADERS, END_STREAM, Frames, GET, HEADERS, RST_STREAM,
};
use crate::support::raw;
use crate::support::until;

/// Starts a server that never answers, and counts its requests.
fn silent(asked: &Arc<AtomicUsize>) -> Downstream {
    let asked = Arc::clone(asked);
    Downstream::start(&settings(), move || {
        let asked = Arc::clone(&asked);
        move |_: Rc<Connection>, _: Request<DownstreamBody>| {
            asked.fetch_add(1, Ordering::Relaxed);
            std::future::pending::<Response<Full<Bytes>>>()
        }
    })
}

async fn connect(downstream: &Downstream) -> SendRequest<Empty<Bytes>> {
    let tcp = TcpStream::connect(downstream.address()).await.unwrap();
    let executor = TokioExecutor::new();
    let (sender, connection) = handshake(executor, TokioIo::new(tcp)).await.unwrap();
    tokio::spawn(connection);
    sender
}

fn get() -> hyper::http::request::Builder {
    Request::get("http://a.test/")
}

#[test]
fn rapid_reset_ends_the_connection() {
    let asked = Arc::default();
    let downstream = silent(&asked);
    // Reset at once, so that both come before we look, and after a look, so that we have begun to work.
    for pause in [false, true] {
        // below, no connection means that it was closed
        eventually("the one before is gone", || downstream.connections() == 0);
        let before = asked.load(Ordering::Relaxed);
        let mut client = Frames::connect(downstream.address());
        eventually("it is accepted", || downstream.connections() == 1);
        for number in 0..20_000 {
            let stream = number * 2 + 1;
            if !client.send(HEADERS, END_STREAM | END_HEADERS, stream, GET) {
                break;
            }
            if pause {
                let begun = before + number as usize;
                eventually("it is asked, or closed", || {
                    asked.load(Ordering::Relaxed) > begun || downstream.connections() == 0
                });
            }
            client.send(RST_STREAM, 0, stream, &8_u32.to_be_bytes());
        }
        assert!(client.is_closed());
        let work = asked.load(Ordering::Relaxed) - before;
        assert!(work <= 600, "{work} requests begun");
        eventually("it is counted", || {
            let flood = downstream.counter(Counter::ProtocolFlood);
            flood + downstream.counter(Counter::ProtocolRapidReset) > u64::from(pause)
        });
    }
    eventually("nothing is left", || downstream.connections() == 0);
}

#[test]
fn continuation_flood_ends_the_connection() {
    let downstream = Downstream::hello();
    let mut client = Frames::connect(downstream.address());
    client.send(HEADERS, END_STREAM, 1, GET);
    // A literal header of 100 bytes, over and over, and never the end.
    let mut field = vec![0x00, 1, b'x', 100];
    field.extend([b'y'; 100]);
    let mut sent = 0;
    while client.send(CONTINUATION, 0, 1, &field) && sent < 100_000 {
        sent += 1;
    }
    assert!(client.is_closed());
    assert!(sent < 100_000);
    eventually("it is counted", || {
        downstream.counter(Counter::ProtocolFlood) == 1
    });
    let reply = raw::Raw::connect(downstream.address())
        .send(raw::GET)
        .reply();
    assert_eq!(reply.status, 200);
}

#[test]
fn protocol_violation_ends_the_connection() {
    let downstream = Downstream::hello();
    let mut client = Frames::connect(downstream.address());
    // A stream of the server's side.
    client.send(HEADERS, END_STREAM | END_HEADERS, 2, GET);
    assert!(client.is_closed());
    eventually("it is counted", || {
        downstream.counter(Counter::ProtocolHttp2) == 1
    });
}

#[tokio::test]
async fn header_list_over_the_limit_is_rejected() {
    let downstream = Downstream::hello();
    let mut sender = connect(&downstream).await;
    // Fits into what hyper's client may send; 32 bytes are added per field (RFC 9113, section 6.5.2).
    let mut request = get();
    for number in 0..40 {
        request = request.header(format!("x{number}"), "y".repeat(2_000));
    }
    let refused = sender
        .send_request(request.body(Empty::new()).unwrap())
        .await;
    match refused {
        Ok(response) => assert_eq!(response.status(), 431),
        Err(error) => assert!(!error.is_timeout(), "{error:?}"),
    }
    let mut sender = connect(&downstream).await;
    let fits = get()
        .header("x", "y".repeat(40_000))
        .body(Empty::new())
        .unwrap();
    assert_eq!(sender.send_request(fits).await.unwrap().status(), 200);
}

#[tokio::test]
async fn streams_over_the_limit_do_not_start() {
    let asked = Arc::default();
    let downstream = silent(&asked);
    let sender = connect(&downstream).await;
    let max = usize::try_from(settings().codec.http2.concurrent_streams_max).unwrap();
    let requests: Vec<_> = (0..max + 50)
        .map(|_| {
            let mut sender = sender.clone();
            let request = get().body(Empty::new()).unwrap();
            tokio::spawn(async move { sender.send_request(request).await.map(drop) })
        })
        .collect();
    until("the limit is reached", async || {
        asked.load(Ordering::Relaxed) >= max
    })
    .await;
    assert_eq!(asked.load(Ordering::Relaxed), max);
    for request in requests {
        request.abort();
    }
}

#[tokio::test]
async fn idle_connection_gets_goaway() {
    let mut settings = settings();
    settings.codec.timeouts.idle = Duration::from_millis(300);
    let downstream = Downstream::start(&settings, || hello);
    let mut sender = connect(&downstream).await;
    let request = get().body(Empty::new()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    response.into_body().collect().await.unwrap();
    until("it is closed", async || sender.is_closed()).await;
    until("its slot is free", async || downstream.connections() == 0).await;
    assert_eq!(downstream.counter(Counter::ProtocolHttp2), 0);
}

#[tokio::test]
async fn connection_with_an_open_tunnel_is_not_idle() {
    let mut settings = settings();
    settings.codec.timeouts.idle = Duration::from_millis(300);
    let downstream = Downstream::start(&settings, || {
        |connection: Rc<Connection>, request: Request<DownstreamBody>| async move {
            // What an exchange does when its stream goes on as a tunnel.
            let tunnels = u32::from(request.uri().path() == "/tunnel");
            connection.tunnels.set(tunnels);
            Response::new(Full::<Bytes>::default())
        }
    });
    let mut with_tunnel = connect(&downstream).await;
    let request = Request::get("http://a.test/tunnel").body(Empty::new());
    let answer = with_tunnel.send_request(request.unwrap()).await.unwrap();
    assert_eq!(answer.status(), 200);
    let mut without = connect(&downstream).await;
    let request = get().body(Empty::new()).unwrap();
    assert_eq!(without.send_request(request).await.unwrap().status(), 200);
    until("the idle one ends", async || without.is_closed()).await;
    assert!(!with_tunnel.is_closed());
    let request = get().body(Empty::new()).unwrap();
    let answer = with_tunnel.send_request(request).await.unwrap();
    assert_eq!(answer.status(), 200);
}
