//! Rollouts of a workload with a sidecar: clients on open and on new connections see no failure.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::{Sidecar, answering, captured, service};
use crate::support::eventually;
use crate::support::origin::Origin;
use crate::support::raw::Raw;

const ROLLOUTS: usize = 5;

/// Number of clients with a keep-alive connection, and of clients with a new connection per request.
const CLIENTS: usize = 3;

/// Minimum number of requests of each client between two steps of a rollout. After two, no client still uses a
/// connection or a request from before the step.
const REQUESTS_BETWEEN: usize = 8;

/// Address that a client connects to, and the address of the workload there.
type Endpoint = (SocketAddr, SocketAddr);

/// Workload and its sidecar.
struct Pod {
    workload: Origin,
    sidecar: Sidecar,
}

impl Pod {
    fn start(pre_drain: &str) -> Self {
        let workload = answering();
        let arguments = [
            "--pre-drain",
            pre_drain,
            "--termination-drain",
            "1h",
            "--termination-drain-minimum",
            "0s",
        ];
        let web = service("web", "10.96.0.7", ("http", 80), workload.address);
        let sidecar = Sidecar::start(&arguments, [web]);
        Self { workload, sidecar }
    }

    fn endpoint(&self) -> Endpoint {
        (self.sidecar.inbound, self.workload.address)
    }
}

/// State that the clients share.
#[derive(Default)]
struct Shared {
    endpoints: Mutex<Vec<Endpoint>>,
    /// Number of answered requests by client.
    answered: [AtomicUsize; 2 * CLIENTS],
    failures: Mutex<Vec<String>>,
    over: AtomicBool,
}

impl Shared {
    fn connect(&self, turn: usize) -> Raw {
        let endpoints = self.endpoints.lock().unwrap();
        let (at, dialed) = endpoints[turn % endpoints.len()];
        captured(at, &dialed.to_string())
    }

    fn ask(&self, client: usize) {
        let is_kept = client < CLIENTS;
        let mut kept = None;
        for turn in 0.. {
            if self.over.load(Ordering::Relaxed) {
                return;
            }
            let is_reused = kept.is_some();
            let mut connection = kept.take().unwrap_or_else(|| self.connect(turn));
            connection.send("GET / HTTP/1.1\r\nHost: web\r\n\r\n");
            match connection.try_reply() {
                Ok(Some(reply)) if reply.status == 200 => {
                    self.answered[client].fetch_add(1, Ordering::Relaxed);
                    let stays = is_kept && !reply.has("connection: close");
                    kept = stays.then_some(connection);
                }
                // clients send such a request again, on another connection
                Ok(None) | Err(_) if is_reused => {}
                other => {
                    let status = other.map(|reply| reply.map(|reply| reply.status));
                    let kind = if is_reused { "open" } else { "new" };
                    let failure = format!("{kind} connection: {status:?}");
                    self.failures.lock().unwrap().push(failure);
                }
            }
        }
    }
}

/// Clients, and the pods that they know.
struct Load {
    shared: Arc<Shared>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    fn start(pods: &[Pod]) -> Self {
        let shared = Arc::<Shared>::default();
        let endpoints = pods.iter().map(Pod::endpoint);
        shared.endpoints.lock().unwrap().extend(endpoints);
        let client = |number: usize| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.ask(number))
        };
        let clients = (0..2 * CLIENTS).map(client).collect();
        Self { shared, clients }
    }

    fn goes_on(&self) {
        for answered in &self.shared.answered {
            let enough = answered.load(Ordering::Relaxed) + REQUESTS_BETWEEN;
            eventually("requests are answered", || {
                answered.load(Ordering::Relaxed) >= enough
            });
        }
    }

    fn knows(&self, pod: &Pod, known: bool) {
        let mut endpoints = self.shared.endpoints.lock().unwrap();
        match known {
            true => endpoints.push(pod.endpoint()),
            false => endpoints.retain(|one| *one != pod.endpoint()),
        }
    }

    #[track_caller]
    fn end(self) {
        self.shared.over.store(true, Ordering::Relaxed);
        for client in self.clients {
            client.join().unwrap();
        }
        assert_eq!(*self.shared.failures.lock().unwrap(), [""; 0]);
    }
}

/// Replaces the pods one after the other; `begin` does what Kubernetes does to a sidecar when its pod starts to
/// terminate. The workload ends once clients no longer connect to it.
fn roll(pre_drain: &str, begin: impl Fn(&Pod)) {
    let mut pods = vec![Pod::start(pre_drain), Pod::start(pre_drain)];
    let load = Load::start(&pods);
    load.goes_on();
    for _ in 0..ROLLOUTS {
        let new = Pod::start(pre_drain);
        load.knows(&new, true);
        pods.push(new);
        let old = pods.remove(0);
        begin(&old);
        // clients do not know yet
        load.goes_on();
        load.knows(&old, false);
        load.goes_on();
        let Pod {
            workload,
            mut sidecar,
        } = old;
        drop(workload);
        sidecar.proxy.signal("TERM");
        assert!(sidecar.proxy.wait().success());
        load.goes_on();
    }
    load.end();
}

#[test]
fn rollout_fails_no_request_with_a_sidecar_that_gets_sigterm_with_its_workload() {
    roll("1h", |pod| pod.sidecar.proxy.signal("TERM"));
}

#[test]
fn rollout_fails_no_request_with_a_native_sidecar_that_is_told_by_its_hook() {
    roll("0s", |pod| {
        let (status, _) = (pod.sidecar.proxy)
            .try_page("POST", "/drain?announce")
            .unwrap();
        assert_eq!(status, 200);
    });
}

#[test]
fn rollout_fails_no_request_on_open_connections_of_a_sidecar_that_is_told_nothing() {
    roll("0s", |_| ());
}
