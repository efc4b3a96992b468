//! Sidecar under load: no request of the workload fails while certificates are renewed, or while the sidecar drains.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::mutual_tls::{identity, mutual, server};
use super::{Sidecar, answering, captured, get, service};
use crate::support::eventually;
use crate::support::pki::Authority;
use crate::support::proxy::Proxy;

/// Number of client threads with a keep-alive connection, and of client threads with a new connection per request.
const CLIENTS: usize = 3;

/// Number of certificate renewals of each side.
const RENEWALS: usize = 20;

/// Minimum number of requests between two renewals.
const REQUESTS_BETWEEN: usize = 100;

/// Results of the clients.
#[derive(Default)]
struct Seen {
    answered: AtomicUsize,
    failures: Mutex<Vec<String>>,
    over: AtomicBool,
}

impl Seen {
    fn answered(&self) -> usize {
        self.answered.load(Ordering::Relaxed)
    }
}

/// Clients of a workload.
struct Load {
    seen: Arc<Seen>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts clients that send requests through the outbound listener `at`.
    fn start(at: SocketAddr) -> Self {
        let seen = Arc::<Seen>::default();
        let client = |number: usize| {
            let seen = Arc::clone(&seen);
            std::thread::spawn(move || ask(at, number < CLIENTS, &seen))
        };
        let clients = (0..2 * CLIENTS).map(client).collect();
        Self { seen, clients }
    }

    /// Waits for this many more responses.
    fn goes_on(&self, answers: usize) {
        let before = self.seen.answered();
        eventually("requests are answered", || {
            self.seen.answered() >= before + answers
                || !self.seen.failures.lock().unwrap().is_empty()
        });
    }

    /// Stops the clients; returns the number of answered requests.
    #[track_caller]
    fn end(self) -> usize {
        self.seen.over.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().unwrap();
        }
        let failures = self.seen.failures.lock().unwrap();
        assert!(failures.is_empty(), "{failures:?}");
        self.seen.answered()
    }
}

fn ask(at: SocketAddr, stays: bool, seen: &Seen) {
    let request = "GET / HTTP/1.1\r\nHost: api\r\n\r\n";
    let mut connection = captured(at, "10.96.0.1:80");
    while !seen.over.load(Ordering::Relaxed) {
        match connection.send(request).try_reply() {
            Ok(Some(reply)) if reply.status == 200 => {
                seen.answered.fetch_add(1, Ordering::Relaxed);
            }
            other => {
                let status = other.map(|reply| reply.map(|reply| reply.status));
                seen.failures.lock().unwrap().push(format!("{status:?}"));
                return;
            }
        }
        if !stays {
            connection = captured(at, "10.96.0.1:80");
        }
    }
}

/// Returns the serial numbers of the certificates that a proxy uses.
fn serial_numbers(proxy: &Proxy) -> Vec<String> {
    let page: serde_json::Value = serde_json::from_str(&proxy.page("/certs")).unwrap();
    let mut found = Vec::new();
    let mut rest = vec![&page];
    while let Some(value) = rest.pop() {
        match value {
            serde_json::Value::Array(values) => rest.extend(values),
            serde_json::Value::Object(fields) => {
                let number = fields
                    .get("serial_number")
                    .and_then(|number| number.as_str());
                found.extend(number.map(str::to_owned));
                rest.extend(fields.values());
            }
            _ => {}
        }
    }
    found.sort();
    found
}

#[test]
fn no_request_fails_while_certificates_of_both_sides_are_renewed() {
    let directory = tempfile::tempdir().unwrap();
    let ca = Authority::new("mesh");
    let app = answering();
    let flags = identity(directory.path(), &ca, "web");
    let (server, at) = server(&flags, app.address, "STRICT");
    let flags = identity(directory.path(), &ca, "client");
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let resources = [
        service("api", "10.96.0.1", ("http", 80), at),
        mutual("api.default.svc.cluster.local"),
    ];
    let client = Sidecar::start(&flags, resources);
    let load = Load::start(client.outbound);
    load.goes_on(REQUESTS_BETWEEN);
    for _ in 0..RENEWALS {
        for (account, proxy) in [("web", &server), ("client", &client.proxy)] {
            let before = serial_numbers(proxy);
            identity(directory.path(), &ca, account);
            eventually("the new certificate is used", || {
                serial_numbers(proxy) != before
            });
        }
        load.goes_on(REQUESTS_BETWEEN);
    }
    let answered = load.end();
    assert!(answered > RENEWALS * REQUESTS_BETWEEN, "{answered}");
}

#[test]
fn no_request_of_the_workload_fails_while_the_sidecar_drains() {
    let api = answering();
    let mut sidecar = Sidecar::start(
        &[
            "--termination-drain",
            "1h",
            "--termination-drain-minimum",
            "0s",
        ],
        [service("api", "10.96.0.1", ("http", 80), api.address)],
    );
    let load = Load::start(sidecar.outbound);
    load.goes_on(500);
    // as long as it is open, the workload is not done
    let mut open = sidecar.leaves("10.96.0.1:80");
    sidecar.proxy.signal("TERM");
    eventually("inbound refuses", || {
        TcpStream::connect(sidecar.inbound).is_err()
    });
    load.goes_on(1_000);
    let answered = load.end();
    assert!(answered >= 1_500, "{answered}");
    assert_eq!(get(&mut open, "api").status, 200);
    drop(open);
    assert!(sidecar.proxy.wait().success());
}
