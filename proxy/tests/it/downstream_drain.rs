//! Drain of downstream connections: no new requests, no lost requests, and a bounded duration.

use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Empty, Full};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use proxy::exchange::downstream::connection::Unreached;
use proxy::exchange::{Connection, DownstreamBody};
use proxy::runtime::drain::Stage;
use proxy::snapshot::ListenerKey;
use tokio::sync::Semaphore;

use crate::support::downstream::{ANY, Downstream, hello, settings};
use crate::support::eventually;
use crate::support::raw::{GET, Raw};

/// Starts a server that answers `hello` when the test permits it.
fn gated() -> (Downstream, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let downstream = Downstream::start(&settings(), move || {
        let gate = Arc::clone(&gate);
        move |_: Rc<Connection>, _: Request<DownstreamBody>| {
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                Response::new(Full::<bytes::Bytes>::from("hello"))
            }
        }
    });
    (downstream, opened)
}

#[test]
fn idle_workers_stop_at_once() {
    let downstream = Downstream::hello();
    downstream.drain.drain();
    downstream.join();
}

#[test]
fn request_in_flight_is_answered_with_connection_close() {
    let (downstream, gate) = gated();
    let address = downstream.address();
    let mut client = Raw::connect(address);
    client.send(GET);
    eventually("it is accepted", || downstream.connections() == 1);
    downstream.drain.drain();
    eventually("no new connections", || {
        TcpStream::connect(address).is_err()
    });
    gate.add_permits(1);
    let reply = client.reply();
    assert_eq!((reply.status, &reply.body[..]), (200, &b"hello"[..]));
    assert!(reply.has("connection: close"), "{reply:?}");
    assert!(client.is_closed());
    downstream.join();
}

#[test]
fn idle_connection_is_served_once_more_during_drain() {
    let mut settings = settings();
    settings.codec.timeouts.drain_idle = Duration::from_secs(5);
    settings.codec.http1.park_after = Duration::from_millis(1);
    let downstream = Downstream::start(&settings, || hello);
    let address = downstream.address();
    let mut used = Raw::connect(address);
    used.send(GET).reply();
    let mut fresh = Raw::connect(address);
    eventually("both are accepted", || downstream.connections() == 2);
    downstream.drain.drain();
    eventually("no new connections", || {
        TcpStream::connect(address).is_err()
    });
    for client in [&mut used, &mut fresh] {
        let reply = client.send(GET).reply();
        assert_eq!(reply.status, 200);
        assert!(reply.has("connection: close"), "{reply:?}");
        assert!(client.is_closed());
    }
    downstream.join();
}

#[test]
fn silent_connections_do_not_delay_the_drain() {
    let mut settings = settings();
    settings.codec.timeouts.drain_idle = Duration::from_millis(200);
    let downstream = Downstream::start(&settings, || hello);
    let mut silent = Raw::connect(downstream.address());
    let mut used = Raw::connect(downstream.address());
    used.send(GET).reply();
    eventually("both are accepted", || downstream.connections() == 2);
    downstream.drain.drain();
    assert!(silent.is_closed());
    assert!(used.is_closed());
    downstream.join();
}

#[test]
fn hard_stage_ends_remaining_requests() {
    let (downstream, _gate) = gated();
    let mut client = Raw::connect(downstream.address());
    client.send(GET);
    eventually("it is accepted", || downstream.connections() == 1);
    downstream.drain.drain();
    downstream.drain.stop();
    downstream.join();
    assert!(client.is_closed());
}

#[test]
fn closing_a_listener_drains_its_connections_only() {
    let downstream = Downstream::hello();
    let second = ListenerKey::from("127.0.0.2:0".parse::<std::net::SocketAddr>().unwrap());
    downstream.want([ANY, second.clone()]);
    eventually("second opens", || {
        downstream.status_table.address(&second).is_some()
    });
    let mut kept = Raw::connect(downstream.address());
    kept.send(GET).reply();
    let mut drained = Raw::connect(downstream.status_table.address(&second).unwrap());
    drained.send(GET).reply();
    downstream.want([ANY]);
    eventually("second closes", || {
        downstream.status_table.listeners().len() == 1
    });
    let reply = drained.send(GET).reply();
    assert!(reply.has("connection: close"), "{reply:?}");
    let reply = kept.send(GET).reply();
    assert!(!reply.has("connection: close"), "{reply:?}");
}

#[test]
fn drain_loses_no_http1_request() {
    let downstream = Downstream::hello();
    let address = downstream.address();
    let stop = Arc::new(AtomicBool::new(false));
    let done = Arc::new(AtomicUsize::new(0));
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let (stop, done) = (Arc::clone(&stop), Arc::clone(&done));
            std::thread::spawn(move || {
                // Keep-alive until told to close; then no other connection can be had.
                let mut client = Raw::connect(address);
                loop {
                    let reply = client.send(GET).reply();
                    assert_eq!(reply.status, 200);
                    done.fetch_add(1, Ordering::Relaxed);
                    if reply.has("connection: close") {
                        return;
                    }
                    assert!(!stop.load(Ordering::Relaxed), "never told to close");
                }
            })
        })
        .collect();
    eventually("load is in progress", || {
        done.load(Ordering::Relaxed) > 2_000
    });
    downstream.drain.drain();
    for client in clients {
        client.join().unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    downstream.join();
}

#[tokio::test]
async fn drain_loses_no_accepted_http2_request() {
    let downstream = Downstream::hello();
    let tcp = tokio::net::TcpStream::connect(downstream.address())
        .await
        .unwrap();
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(tcp))
            .await
            .unwrap();
    let connection = tokio::spawn(connection);
    let done = Arc::new(AtomicUsize::new(0));
    let streams: Vec<_> = (0..16)
        .map(|_| {
            let (mut sender, done) = (sender.clone(), Arc::clone(&done));
            tokio::spawn(async move {
                // hyper refuses to send once GOAWAY has come; whatever was sent before must be answered.
                while sender.ready().await.is_ok() {
                    let request = Request::get("http://a.test/");
                    let request = request.body(Empty::<bytes::Bytes>::new()).unwrap();
                    let response = match sender.try_send_request(request).await {
                        Ok(response) => response,
                        Err(mut error) => {
                            assert!(error.take_message().is_some(), "lost: {error:?}");
                            return;
                        }
                    };
                    let body = response.into_body().collect().await.unwrap();
                    assert_eq!(body.to_bytes(), "hello");
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    let start = Instant::now();
    while done.load(Ordering::Relaxed) < 2_000 {
        assert!(start.elapsed() < crate::support::DEADLINE);
        tokio::task::yield_now().await;
    }
    downstream.drain.drain();
    for stream in streams {
        stream.await.unwrap();
    }
    drop(sender);
    connection.await.unwrap().unwrap();
    tokio::task::spawn_blocking(move || downstream.join())
        .await
        .unwrap();
}

#[test]
fn announcement_closes_told_connections_and_serves_new_ones() {
    let mut settings = settings();
    settings.codec.http1.park_after = Duration::from_millis(1);
    let downstream = Downstream::start(&settings, || hello);
    let address = downstream.address();
    let mut used = Raw::connect(address);
    used.send(GET).reply();
    let mut silent = Raw::connect(address);
    eventually("both are accepted", || downstream.connections() == 2);
    downstream.drain.announce();
    eventually("clients are told", || {
        let reply = Raw::connect(address).send(GET).reply();
        assert_eq!(reply.status, 200);
        reply.has("connection: close")
    });
    for client in [&mut used, &mut silent] {
        let reply = client.send(GET).reply();
        assert_eq!((reply.status, &reply.body[..]), (200, &b"hello"[..]));
        assert!(reply.has("connection: close"), "{reply:?}");
        assert!(client.is_closed());
    }
    downstream.drain.drain();
    downstream.join();
}

#[test]
fn idle_connections_end_at_once_when_the_workload_is_gone() {
    let mut settings = settings();
    settings.codec.timeouts.drain_idle = Duration::from_secs(3600);
    settings.codec.http1.park_after = Duration::from_millis(1);
    let downstream = Downstream::start(&settings, || hello);
    let mut clients = [(); 2].map(|()| Raw::connect(downstream.address()));
    clients[0].send(GET).reply();
    eventually("both are accepted", || downstream.connections() == 2);
    downstream.drain.raise(Stage::WorkloadGone);
    // what the reconciler of a sidecar does with inbound listeners
    downstream.want([]);
    for mut client in clients {
        assert!(client.is_closed());
    }
    downstream.drain.drain();
    downstream.join();
}

/// HTTP/2 client, and the task of its connection.
async fn http2(
    address: std::net::SocketAddr,
) -> (
    hyper::client::conn::http2::SendRequest<Empty<bytes::Bytes>>,
    tokio::task::JoinHandle<hyper::Result<()>>,
) {
    let tcp = tokio::net::TcpStream::connect(address).await.unwrap();
    let io = TokioIo::new(tcp);
    let (sender, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io)
        .await
        .unwrap();
    (sender, tokio::spawn(connection))
}

fn http2_get() -> Request<Empty<bytes::Bytes>> {
    Request::get("http://a.test/").body(Empty::new()).unwrap()
}

#[tokio::test]
async fn announcement_says_goaway_to_idle_http2_and_serves_the_first_request_of_new_connections() {
    let downstream = Downstream::hello();
    let (mut idle, idle_ends) = http2(downstream.address()).await;
    assert_eq!(idle.send_request(http2_get()).await.unwrap().status(), 200);
    downstream.drain.announce();
    idle_ends.await.unwrap().unwrap();
    for _ in 0..3 {
        let (mut new, new_ends) = http2(downstream.address()).await;
        assert_eq!(new.send_request(http2_get()).await.unwrap().status(), 200);
        new_ends.await.unwrap().unwrap();
    }
    downstream.drain.drain();
    tokio::task::spawn_blocking(move || downstream.join())
        .await
        .unwrap();
}

/// Replies like a sidecar whose workload accepts no connections.
async fn unreached(_: Rc<Connection>, _: Request<DownstreamBody>) -> Response<Full<bytes::Bytes>> {
    let mut response = Response::new(Full::from("no workload"));
    *response.status_mut() = hyper::StatusCode::SERVICE_UNAVAILABLE;
    response.extensions_mut().insert(Unreached);
    response
}

#[test]
fn request_that_did_not_reach_the_workload_ends_a_used_connection_without_a_reply() {
    let first = Arc::new(AtomicBool::new(true));
    let downstream = Downstream::start(&settings(), move || {
        let first = Arc::clone(&first);
        move |connection: Rc<Connection>, request: Request<DownstreamBody>| {
            let is_first = first.swap(false, Ordering::Relaxed);
            async move {
                match is_first {
                    true => hello(connection, request).await,
                    false => unreached(connection, request).await,
                }
            }
        }
    });
    let mut used = Raw::connect(downstream.address());
    assert_eq!(used.send(GET).reply().status, 200);
    assert!(used.send(GET).is_closed());
    // nobody tries a new connection again
    let mut new = Raw::connect(downstream.address());
    assert_eq!(new.send(GET).reply().status, 503);
}

#[tokio::test]
async fn request_that_did_not_reach_the_workload_is_a_refused_http2_stream() {
    let downstream = Downstream::start(&settings(), || unreached);
    let (mut sender, ends) = http2(downstream.address()).await;
    let error = sender.send_request(http2_get()).await.unwrap_err();
    let source = std::error::Error::source(&error).expect("a reason");
    let reason = source
        .downcast_ref::<h2::Error>()
        .and_then(h2::Error::reason);
    assert_eq!(reason, Some(h2::Reason::REFUSED_STREAM), "{error:?}");
    ends.await.unwrap().unwrap();
}
