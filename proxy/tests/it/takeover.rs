//! Replacement of a process on the same sockets: `--takeover`, and sockets of a service manager.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use crate::support::eventually;
use crate::support::mesh::everything_to;
use crate::support::origin::{Back, Origin};
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::Raw;

const REQUEST: &str = "GET / HTTP/1.1\r\nhost: a.test\r\nconnection: close\r\n\r\n";

/// Clients that open a connection per request, until they are stopped.
struct Load {
    stop: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    threads: Vec<JoinHandle<Vec<String>>>,
}

/// Sends a request on a new connection.
fn ask(edge: SocketAddr) -> std::io::Result<String> {
    let mut client = TcpStream::connect(edge)?;
    client.write_all(REQUEST.as_bytes())?;
    let mut reply = String::new();
    client.read_to_string(&mut reply)?;
    Ok(reply)
}

impl Load {
    fn start(edge: SocketAddr) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let answered = Arc::<AtomicUsize>::default();
        let threads = (0..4).map(|_| {
            let (stop, answered) = (Arc::clone(&stop), Arc::clone(&answered));
            std::thread::spawn(move || {
                let mut failures = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    match ask(edge) {
                        Ok(reply) if reply.starts_with("HTTP/1.1 200 ") => {
                            answered.fetch_add(1, Ordering::Relaxed);
                        }
                        failed => failures.push(format!("{failed:?}")),
                    }
                }
                failures
            })
        });
        Self {
            threads: threads.collect(),
            stop,
            answered,
        }
    }

    /// Waits for further responses.
    fn goes_on(&self) {
        let before = self.answered.load(Ordering::Relaxed);
        eventually("requests are answered", || {
            self.answered.load(Ordering::Relaxed) > before + 100
        });
    }

    /// Stops the clients, and checks that no request has failed.
    fn ends_without_failure(self) {
        self.stop.store(true, Ordering::Relaxed);
        let failures = self.threads.into_iter();
        let failures: Vec<String> = failures.flat_map(|one| one.join().unwrap()).collect();
        assert_eq!(failures, Vec::<String>::new());
    }
}

/// Returns a builder of a proxy with takeover socket `path`, which replaces `other` if there is one.
fn start(origin: &Origin, path: &Path, workers: &str, other: Option<&Proxy>) -> Start {
    let start = match other {
        Some(other) => Start::new().instead_of(other),
        None => Start::new(),
    };
    let path = path.to_str().unwrap();
    let start = start.args(["--takeover", path, "--concurrency", workers]);
    let mesh = everything_to(start.edge(), origin);
    start.file("mesh.yaml", mesh)
}

#[test]
fn takeover_under_load_fails_no_request() {
    let origin = Origin::named(Back::H1, "origin");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("takeover");
    let mut running = start(&origin, &path, "2", None).start();
    let load = Load::start(running.edge);
    load.goes_on();
    // with more workers, and with fewer
    for workers in ["3", "1", "2"] {
        let next = start(&origin, &path, workers, Some(&running)).spawn();
        assert_eq!(running.wait().code(), Some(0), "{}", running.stderr());
        load.goes_on();
        eventually("the next process answers on the admin address", || {
            next.is_ready()
        });
        running = next;
    }
    load.ends_without_failure();
}

#[test]
fn running_process_goes_on_if_the_next_one_fails() {
    let origin = Origin::named(Back::H1, "origin");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("takeover");
    let mut running = start(&origin, &path, "2", None).start();
    let load = Load::start(running.edge);
    load.goes_on();
    let missing = start(&origin, &path, "2", Some(&running)).config("missing");
    assert_eq!(missing.spawn().wait().code(), Some(1));
    load.goes_on();
    // a process that cannot open one of its listeners is not ready
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let other =
        everything_to(taken.local_addr().unwrap(), &origin).replace("name: edge", "name: other");
    let never_ready = start(&origin, &path, "2", Some(&running)).file("other.yaml", other);
    let mut never_ready = never_ready.spawn();
    eventually("it is refused an address", || {
        never_ready.stderr().contains("cannot listen")
    });
    load.goes_on();
    never_ready.signal("TERM");
    assert_eq!(never_ready.wait().code(), Some(0));
    load.goes_on();
    assert!(running.ended().is_none());
    let next = start(&origin, &path, "2", Some(&running)).spawn();
    assert_eq!(running.wait().code(), Some(0), "{}", running.stderr());
    load.goes_on();
    load.ends_without_failure();
    drop(next);
}

#[test]
fn connections_queue_at_a_socket_of_the_service_manager_between_two_processes() {
    let origin = Origin::named(Back::H1, "origin");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let edge = socket.local_addr().unwrap();
    let start = || {
        let start = Start::new().activated(&socket);
        let mesh = everything_to(start.edge(), &origin);
        start.file("mesh.yaml", mesh)
    };
    let mut first = start().start();
    let reply = ask(edge).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200 "), "{reply}");
    first.signal("TERM");
    assert_eq!(first.wait().code(), Some(0));
    let mut queued = Raw::connect(edge);
    queued.send(REQUEST);
    let _second = start().start();
    assert_eq!(queued.reply().status, 200);
}

#[test]
fn service_manager_is_told_when_the_proxy_is_ready_and_when_it_ends() {
    let origin = Origin::named(Back::H1, "origin");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    let start = Start::new().env("NOTIFY_SOCKET", path.to_str().unwrap());
    let mesh = everything_to(start.edge(), &origin);
    let mut proxy = start.file("mesh.yaml", mesh).start();
    let mut bytes = [0; 64];
    let mut told = || {
        let length = manager.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..length].to_vec()).unwrap()
    };
    assert!(told().starts_with("READY=1\nMAINPID="));
    proxy.signal("TERM");
    assert_eq!(told(), "STOPPING=1");
    assert_eq!(proxy.wait().code(), Some(0));
}
