//! Process behavior: standard error, signals, limits, and other processes.

use std::io::{ErrorKind, PipeReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use hyper::Response;

use crate::support::client::{Client, Front, get};
use crate::support::eventually;
use crate::support::mesh::{documents, everything_to, gateway};
use crate::support::origin::{Back, Origin, full};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::Raw;

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Returns a full pipe from which nothing is read.
fn stalled_pipe() -> (PipeReader, std::io::PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    // as much as a pipe holds by default on Linux
    writer.write_all(&[b'.'; 64 * 1024]).unwrap();
    (reader, writer)
}

#[test]
fn stalled_standard_error_does_not_block_traffic() {
    let origin = Origin::named(Back::H1, "first");
    let other = Origin::named(Back::H1, "second");
    let (unread, stderr) = stalled_pipe();
    let start = Start::new().stderr(stderr);
    let mesh = everything_to(start.edge(), &origin);
    let mut proxy = start.file("mesh.yaml", mesh).start();
    assert_eq!(Raw::connect(proxy.edge).send(GET).reply().body, b"first");
    proxy.write("mesh.yaml", everything_to(proxy.edge, &other));
    eventually("the change is in effect", || {
        Raw::connect(proxy.edge).send(GET).reply().body == b"second"
    });
    assert_eq!(proxy.try_page("GET", "/healthz/live").unwrap().0, 200);
    proxy.signal("TERM");
    assert!(proxy.wait().success());
    drop(unread);
}

#[test]
fn buffered_log_lines_are_written_when_standard_error_is_read() {
    let origin = Origin::named(Back::H1, "first");
    let (mut unread, stderr) = stalled_pipe();
    let start = Start::new().stderr(stderr);
    let mesh = everything_to(start.edge(), &origin);
    let mut proxy = start.file("mesh.yaml", mesh).start();
    unread.read_exact(&mut [0; 64 * 1024]).unwrap();
    proxy.signal("TERM");
    assert!(proxy.wait().success());
    let mut text = String::new();
    unread.read_to_string(&mut text).unwrap();
    for line in ["configuration applied", "strait is serving", "drained"] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn predrain_keeps_serving_but_is_not_ready() {
    let origin = Origin::named(Back::H1, "hello");
    let start = Start::new().args(["--pre-drain", "1h"]);
    let mesh = everything_to(start.edge(), &origin);
    let mut proxy = start.file("mesh.yaml", mesh).start();
    let mut before = Raw::connect(proxy.edge);
    before.send(GET).reply();
    proxy.signal("TERM");
    eventually("readiness fails", || !proxy.is_ready());
    eventually("clients are told", || {
        let reply = Raw::connect(proxy.edge).send(GET).reply();
        assert_eq!(reply.status, 200, "a new connection");
        reply.has("connection: close")
    });
    let reply = before.send(GET).reply();
    assert!(reply.status == 200 && reply.has("connection: close"));
    let (_, why) = proxy.try_page("GET", "/healthz/ready").unwrap();
    assert!(why.contains("draining"), "{why}");
    proxy.signal("TERM");
    assert!(proxy.wait().success(), "a second signal ends it");
}

#[test]
fn drain_starts_after_the_predrain_time() {
    let origin = Origin::named(Back::H1, "hello");
    let start = Start::new().args(["--pre-drain", "100ms"]);
    let mesh = everything_to(start.edge(), &origin);
    let mut proxy = start.file("mesh.yaml", mesh).start();
    proxy.signal("TERM");
    assert!(proxy.wait().success());
    assert!(TcpStream::connect(proxy.edge).is_err());
}

#[test]
fn sighup_reloads_files_and_reopens_the_access_log() {
    let origin = Origin::named(Back::H1, "hello");
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let log = proxy.mesh().parent().unwrap().join("access.log");
    Raw::connect(proxy.edge).send(GET).reply();
    eventually("a line", || !proxy.access_log().is_empty());
    let reloads = proxy.metric("strait_config_reloads_total", &[]);
    let aside = log.with_extension("old");
    std::fs::rename(&log, &aside).unwrap();
    proxy.signal("HUP");
    eventually("the log is reopened", || log.exists());
    Raw::connect(proxy.edge).send(GET).reply();
    eventually("a line in the new log", || !proxy.access_log().is_empty());
    proxy.has_logged("SIGHUP");
    let unchanged = proxy.metric("strait_config_reloads_total", &[]);
    assert_eq!(unchanged, reloads, "nothing had changed");
    let other = Origin::named(Back::H1, "other");
    proxy.write("mesh.yaml", everything_to(proxy.edge, &other));
    proxy.signal("HUP");
    eventually("the change is in effect", || {
        Raw::connect(proxy.edge).send(GET).reply().body == b"other"
    });
}

#[test]
fn sighup_during_startup_does_not_end_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let origin = Origin::named(Back::H1, "hello");
    let start = Start::new().link("access.log", pipe.to_str().unwrap());
    let mesh = everything_to(start.edge(), &origin);
    let proxy = start.file("mesh.yaml", mesh).spawn();
    // the start waits for a reader of the access log
    eventually("SIGHUP is handled", || proxy.handles_hangup());
    proxy.signal("HUP");
    let _reader = std::fs::File::open(&pipe).unwrap();
    eventually("it serves", || proxy.is_ready());
}

#[test]
fn proxy_without_its_ports_is_not_ready_and_reports_the_reason() {
    let origin = Origin::named(Back::H1, "hello");
    let first = Proxy::with(|edge| everything_to(edge, &origin));
    let second = Start::new();
    let mesh = everything_to(first.edge, &origin);
    let second = second.file("mesh.yaml", mesh).spawn();
    let mut why = String::new();
    eventually("the second one has tried", || {
        why = second
            .try_page("GET", "/healthz/ready")
            .map_or_else(|_| String::new(), |page| page.1);
        why.contains("in use")
    });
    assert!(!second.is_ready());
    assert!(why.contains(&first.edge.to_string()), "{why}");
    // the address is free again
    drop(first);
    eventually("it takes over", || second.is_ready());
}

#[test]
fn listener_that_fails_to_open_later_keeps_the_proxy_ready() {
    let origin = Origin::named(Back::H1, "hello");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = Proxy::with(|edge| everything_to(edge, &origin));
    let both = gateway(&[proxy.edge, taken.local_addr().unwrap()]);
    proxy.write(
        "mesh.yaml",
        documents([
            both,
            everything_to(proxy.edge, &origin).replace("name: edge", "name: other"),
        ]),
    );
    eventually("it has tried", || proxy.stderr().contains("cannot listen"));
    assert!(proxy.is_ready());
}

#[test]
fn empty_and_invalid_configurations_are_not_ready_by_default() {
    let is_told = |start: Start, text: &str| {
        let proxy = start.spawn();
        let mut why = String::new();
        eventually("it says why", || {
            why = proxy
                .try_page("GET", "/healthz/ready")
                .map_or_else(|_| String::new(), |page| page.1);
            why.contains(text)
        });
        assert!(!proxy.is_ready());
    };
    is_told(Start::new(), "a Gateway that this proxy serves");
    let broken = "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: edge}\nspec: {servers: 5}\n";
    is_told(Start::new().file("mesh.yaml", broken), "rejected");
    let other = gateway(&[free_address()]).replace("ingressgateway", "another");
    is_told(Start::new().file("mesh.yaml", other), "--labels");
    let wanted = Start::new().args(["--allow-empty"]).start();
    assert!(wanted.is_ready());
}

#[test]
fn health_listener_answers_while_the_admin_server_is_busy() {
    let health = free_address();
    let origin = Origin::named(Back::H1, "hello");
    let start = Start::new().args(["--health", &health.to_string()]);
    let mesh = everything_to(start.edge(), &origin);
    let proxy = start.file("mesh.yaml", mesh).start();
    let _idle: Vec<_> = (0..300)
        .filter_map(|_| TcpStream::connect(proxy.admin).ok())
        .collect();
    let ask = |path: &str| page_at(health, path);
    assert!(ask("/healthz/ready").starts_with("HTTP/1.1 200"));
    assert!(ask("/stats/prometheus").contains("strait_requests_active"));
    assert!(ask("/config_dump").starts_with("HTTP/1.1 404"));
    assert_eq!(
        proxy.try_page("GET", "/healthz/live").unwrap().0,
        200,
        "the admin server as well"
    );
}

/// Returns the response to a GET of a probe or a scraper.
fn page_at(address: SocketAddr, path: &str) -> String {
    let mut client = Raw::connect(address);
    let head = format!("GET {path} HTTP/1.1\r\nHost: probe.example\r\nConnection: close\r\n\r\n");
    let mut text = String::new();
    let mut stream = client.send(head).stream();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn metrics_listener_serves_metrics_alone() {
    let metrics = free_address();
    let start = Start::new().args(["--allow-empty", "--metrics", &metrics.to_string()]);
    let _proxy = start.start();
    assert!(page_at(metrics, "/stats/prometheus").contains("strait_requests_active"));
    for path in ["/healthz/ready", "/config_dump", "/"] {
        assert!(page_at(metrics, path).starts_with("HTTP/1.1 404"), "{path}");
    }
}

#[test]
fn labels_of_the_pod_are_followed() {
    let labels = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(labels.path(), "istio=\"other\"\n").unwrap();
    let origin = Origin::named(Back::H1, "hello");
    let path = labels.path().to_str().unwrap().to_owned();
    let start = Start::new().args(["--allow-empty", "--pod-labels", &path]);
    let edge = start.edge();
    let mesh = everything_to(edge, &origin);
    let _proxy = start.file("mesh.yaml", mesh).start();
    assert!(
        TcpStream::connect(edge).is_err(),
        "its Gateway selects other pods"
    );
    std::fs::write(labels.path(), "istio=\"ingressgateway\"\n").unwrap();
    eventually("the Gateway is served", || is_answered(edge));
}

/// Whether a connection gets a response, as opposed to being closed.
fn is_answered(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return false;
    };
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    // it may be reset at any time
    drop(stream.write_all(GET.as_bytes()));
    let mut byte = [0];
    match stream.read(&mut byte) {
        Ok(length) => length > 0,
        Err(error) => {
            let waits = [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind());
            assert!(!waits, "neither answered nor closed");
            false
        }
    }
}

#[test]
fn connections_over_the_open_file_limit_are_closed_and_counted() {
    let origin = Origin::named(Back::H1, "hello");
    let start = Start::new().open_files(256);
    let mesh = everything_to(start.edge(), &origin);
    let proxy = start.file("mesh.yaml", mesh).start();
    eventually("the limit is logged", || {
        proxy.stderr().contains("allows fewer")
    });
    let mut held: Vec<_> = (0..90).map(|_| Raw::connect(proxy.edge)).collect();
    for client in &mut held {
        assert_eq!(client.send(GET).reply().status, 200);
    }
    let more: Vec<_> = (0..20)
        .map(|_| TcpStream::connect(proxy.edge).unwrap())
        .collect();
    eventually("some are refused", || {
        proxy.metric("strait_downstream_connections_rejected_total", &[]) >= 10.0
    });
    assert!(!is_answered(proxy.edge));
    assert_eq!(
        held[0].send(GET).reply().status,
        200,
        "an accepted connection stays open"
    );
    drop((held, more));
    eventually("there is room again", || is_answered(proxy.edge));
}

#[tokio::test]
async fn without_free_file_descriptors_connections_are_closed() {
    let origin = Origin::start(Back::H1, |request| async move {
        if request.uri().path() == "/hangs" {
            std::future::pending::<()>().await;
        }
        Response::new(full("hello"))
    });
    let start = Start::new().open_files(128);
    let mesh = everything_to(start.edge(), &origin);
    let proxy = start.file("mesh.yaml", mesh).start();
    let client = Client::connect(Front::H2, proxy.edge).await;
    let mut hanging = Vec::new();
    // each needs a connection upstream
    for _ in 0..120 {
        let mut stream = client.http2_handle().unwrap();
        let request = get("/hangs");
        hanging.push(tokio::spawn(async move {
            stream.send_request(request).await.map(drop)
        }));
    }
    let edge = proxy.edge;
    crate::support::until("connections are closed", async || {
        !tokio::task::spawn_blocking(move || is_answered(edge))
            .await
            .unwrap()
    })
    .await;
    hanging.iter().for_each(tokio::task::JoinHandle::abort);
    drop(client);
    crate::support::until("there is room again", async || {
        tokio::task::spawn_blocking(move || is_answered(edge))
            .await
            .unwrap()
    })
    .await;
}

/// Results of clients that open a new connection for each request.
#[derive(Default)]
struct Seen {
    answered: AtomicU32,
    lost: AtomicU32,
    over: AtomicBool,
}

fn connect_and_ask(edge: SocketAddr, seen: &Seen) {
    while !seen.over.load(Ordering::Relaxed) {
        // a refused connection is fine, but an accepted one must be answered
        let Ok(mut stream) = TcpStream::connect_timeout(&edge, Duration::from_millis(100)) else {
            continue;
        };
        let asked = stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let mut text = String::new();
        let read = asked.and_then(|()| stream.read_to_string(&mut text));
        if read.is_ok() && text.starts_with("HTTP/1.1 200") {
            seen.answered.fetch_add(1, Ordering::Relaxed);
        } else {
            seen.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn connections_accepted_before_shutdown_are_answered() {
    let origin = Origin::named(Back::H1, "hello");
    for round in 0..4 {
        let mut proxy = Proxy::with(|edge| everything_to(edge, &origin));
        let seen = Arc::<Seen>::default();
        let clients: Vec<_> = (0..8)
            .map(|_| {
                let (edge, seen) = (proxy.edge, Arc::clone(&seen));
                std::thread::spawn(move || connect_and_ask(edge, &seen))
            })
            .collect();
        eventually("load", || seen.answered.load(Ordering::Relaxed) > 500);
        proxy.signal("TERM");
        assert!(proxy.wait().success());
        seen.over.store(true, Ordering::Relaxed);
        clients
            .into_iter()
            .for_each(|client| client.join().unwrap());
        assert_eq!(seen.lost.load(Ordering::Relaxed), 0, "round {round}");
    }
}
