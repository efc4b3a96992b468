//! Shutdown of the process: no request in flight is lost.

use std::cell::{Cell, RefCell};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::{Response, header};
use tokio::sync::Semaphore;

use crate::support::client::{Client, Front, get};
use crate::support::mesh::{everything_to, everything_to_address};
use crate::support::origin::{Back, Origin, RawOrigin, full, read_head};
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::Raw;
use crate::support::{eventually, until};

/// Starts an origin that answers when the test permits it, and a proxy in front of it.
fn gated(drain_time: &str) -> (Origin, Arc<Semaphore>, Proxy) {
    let gate = Arc::new(Semaphore::new(0));
    let opened = Arc::clone(&gate);
    let origin = Origin::start(Back::H1, move |_| {
        let gate = Arc::clone(&opened);
        async move {
            gate.acquire().await.unwrap().forget();
            Response::new(full("late"))
        }
    });
    let start = Start::new().args(["--drain-time", drain_time]);
    let mesh = everything_to(start.edge(), &origin);
    let proxy = start.file("mesh.yaml", mesh).start();
    (origin, gate, proxy)
}

#[derive(Default)]
struct Load {
    answered: Cell<usize>,
    failures: RefCell<Vec<String>>,
}

/// Sends requests one after another until the proxy announces the end of the connection.
async fn ask(front: Front, edge: SocketAddr, load: Rc<Load>) {
    let mut client = Client::connect(front, edge).await;
    loop {
        match client.try_call(get("/")).await {
            Ok(answer) if answer.status == 200 => {
                load.answered.set(load.answered.get() + 1);
                if answer.header(header::CONNECTION.as_str()) == Some("close") {
                    return;
                }
            }
            // The request was not sent any more: the connection had been announced to end by GOAWAY.
            Err(error) if front == Front::H2 && is_after_goaway(&error) => return,
            failed => {
                load.failures
                    .borrow_mut()
                    .push(format!("{front:?}: {failed:?}"));
                return;
            }
        }
    }
}

/// Whether a request was not processed because the peer had sent GOAWAY.
fn is_after_goaway(error: &hyper::Error) -> bool {
    if error.is_canceled() || error.is_closed() {
        return true;
    }
    let mut cause = std::error::Error::source(error);
    while let Some(current) = cause {
        if let Some(h2) = current.downcast_ref::<h2::Error>() {
            return h2.is_go_away() && h2.reason() == Some(h2::Reason::NO_ERROR);
        }
        cause = current.source();
    }
    false
}

#[tokio::test]
async fn sigterm_under_load_fails_no_request() {
    let origin = Origin::named(Back::H1, "ok");
    for front in [Front::H1, Front::H2] {
        let mut proxy = Proxy::with(|edge| everything_to(edge, &origin));
        let load = Rc::new(Load::default());
        let local = tokio::task::LocalSet::new();
        local
            .run_until(async {
                let clients: Vec<_> = (0..16)
                    .map(|_| tokio::task::spawn_local(ask(front, proxy.edge, Rc::clone(&load))))
                    .collect();
                until("the load runs", async || load.answered.get() > 1_000).await;
                proxy.signal("TERM");
                for client in clients {
                    client.await.unwrap();
                }
                until("it ends", async || proxy.ended().is_some()).await;
            })
            .await;
        assert_eq!(*load.failures.borrow(), [""; 0]);
        assert!(proxy.wait().success());
        assert!(TcpStream::connect(proxy.edge).is_err());
    }
}

#[test]
fn request_in_flight_completes_and_no_connection_is_accepted() {
    for front in [Front::H1, Front::H2] {
        let (origin, gate, mut proxy) = gated("30s");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let mut client = Client::connect(front, proxy.edge).await;
            let stopped = async {
                until("the request is there", async || origin.seen().len() == 1).await;
                proxy.signal("TERM");
                until("new connections are refused", async || {
                    TcpStream::connect(proxy.edge).is_err()
                })
                .await;
                let (status, _) = proxy.try_page("GET", "/healthz/ready").unwrap();
                assert_eq!(status, 503);
                let (status, _) = proxy.try_page("GET", "/healthz/live").unwrap();
                assert_eq!(status, 200);
                gate.add_permits(1);
            };
            let (answer, ()) = tokio::join!(client.call(get("/")), stopped);
            assert_eq!((answer.status, answer.text()), (200, "late"));
        });
        assert!(proxy.wait().success());
        let lines = proxy.access_log();
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0]["response_code"], 200);
    }
}

#[test]
fn drain_ends_after_drain_time() {
    let (origin, _gate, mut proxy) = gated("200ms");
    let mut client = Raw::connect(proxy.edge);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("the request is there", || origin.seen().len() == 1);
    let asked = Instant::now();
    proxy.signal("TERM");
    assert!(proxy.wait().success());
    assert!(asked.elapsed() >= Duration::from_millis(200));
    assert!(client.is_closed());
    assert_eq!(proxy.access_log()[0]["response_flags"], "DC");
}

#[test]
fn second_signal_ends_the_process_at_once() {
    let (origin, _gate, mut proxy) = gated("10m");
    let mut client = Raw::connect(proxy.edge);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    eventually("the request is there", || origin.seen().len() == 1);
    proxy.signal("TERM");
    eventually("it drains", || TcpStream::connect(proxy.edge).is_err());
    assert_eq!(proxy.ended(), None);
    proxy.signal("INT");
    proxy.wait();
    assert!(client.is_closed());
}

#[test]
fn idle_process_ends_at_once() {
    let origin = Origin::named(Back::H1, "ok");
    for signal in ["TERM", "INT"] {
        let mut proxy = Proxy::with(|edge| everything_to(edge, &origin));
        proxy.signal(signal);
        assert!(proxy.wait().success(), "{signal}");
    }
}

#[test]
fn admin_drains_and_quits() {
    let origin = Origin::named(Back::H1, "ok");
    let mut proxy = Proxy::with(|edge| everything_to(edge, &origin));
    assert_eq!(proxy.try_page("GET", "/quitquitquit").unwrap().0, 405);
    assert_eq!(proxy.try_page("POST", "/drain").unwrap().0, 200);
    eventually("new connections are refused", || {
        TcpStream::connect(proxy.edge).is_err()
    });
    assert!(!proxy.is_ready());
    assert_eq!(proxy.ended(), None);
    assert_eq!(proxy.try_page("POST", "/quitquitquit").unwrap().0, 200);
    assert!(proxy.wait().success());
}

/// Runs `strait drain`, as a preStop hook does.
fn announce(proxy: &Proxy) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
    let told = command.args(["drain", "--admin", &proxy.admin.to_string()]);
    let output = told.output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn clients_are_told_by_the_hook_and_served_until_the_pre_drain_is_over() {
    let origin = Origin::named(Back::H1, "ok");
    let start = Start::new().args(["--pre-drain", "300ms"]);
    let mesh = everything_to(start.edge(), &origin);
    let mut proxy = start.file("mesh.yaml", mesh).start();
    let request = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut kept = Raw::connect(proxy.edge);
    assert!(!kept.send(request).reply().has("connection: close"));
    announce(&proxy);
    assert!(!proxy.is_ready());
    eventually("clients are told", || {
        let reply = Raw::connect(proxy.edge).send(request).reply();
        assert_eq!(reply.status, 200);
        reply.has("connection: close")
    });
    let reply = kept.send(request).reply();
    assert!(reply.status == 200 && reply.has("connection: close"));
    assert!(kept.is_closed());
    let mut late = Raw::connect(proxy.edge);
    assert_eq!(late.send(request).reply().status, 200);
    assert_eq!(proxy.ended(), None, "a hook ends nothing");
    let begun = Instant::now();
    proxy.signal("TERM");
    let reply = Raw::connect(proxy.edge).send(request).reply();
    assert!(reply.status == 200 && reply.has("connection: close"));
    assert!(proxy.wait().success());
    assert!(begun.elapsed() >= Duration::from_millis(300));
    let nobody = Command::new(env!("CARGO_BIN_EXE_strait"))
        .args(["drain", "--admin", &proxy.admin.to_string()])
        .output()
        .unwrap();
    assert_eq!(nobody.status.code(), Some(1), "{nobody:?}");
}

/// The client has its response, the endpoint no longer reads, and the client continues to send.
#[test]
fn unread_upload_after_its_response_does_not_delay_the_drain() {
    let origin = RawOrigin::start(|_, mut stream| {
        read_head(&mut stream);
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            .unwrap();
        std::thread::park();
    });
    let start = Start::new().args(["--drain-time", "60s"]);
    let mesh = everything_to_address(start.edge(), Back::H1, origin.address);
    let mut proxy = start.file("mesh.yaml", mesh).start();
    let mut client = Raw::connect(proxy.edge);
    client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n");
    assert_eq!(client.reply().status, 200);
    let mut body = client.stream();
    body.set_nonblocking(true).unwrap();
    let piece = vec![0; 64 * 1024];
    let mut refused = 0;
    eventually("the proxy reads no more of the body", || {
        match body.write(&piece) {
            Ok(_) => refused = 0,
            Err(_) => refused += 1,
        }
        refused == 50
    });
    let begun = Instant::now();
    proxy.signal("TERM");
    assert!(proxy.wait().success());
    assert!(begun.elapsed() < Duration::from_secs(20));
}

/// Stall that is longer than one turn of the timer wheel of connections.
const STALL: Duration = Duration::from_secs(7);

#[tokio::test]
async fn connections_are_drained_after_the_process_was_stopped_for_a_while() {
    let origin = Origin::named(Back::H1, "ok");
    let mut proxy = Proxy::with_args(&["--drain-time", "10m"], |edge| {
        everything_to(edge, &origin)
    });
    let mut clients = Vec::new();
    for front in [Front::H1, Front::H2].into_iter().cycle().take(24) {
        let mut client = Client::connect(front, proxy.edge).await;
        assert_eq!(client.call(get("/")).await.status, 200);
        clients.push(client);
    }
    proxy.signal("STOP");
    // the stall itself: nothing can be waited for
    tokio::time::sleep(STALL).await;
    proxy.signal("CONT");
    proxy.signal("TERM");
    until("it ends", async || proxy.ended().is_some()).await;
    assert!(proxy.wait().success());
}
