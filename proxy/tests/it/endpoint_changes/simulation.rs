//! Simulation of requests, their mirrors, and raw TCP connections while endpoints are added and removed: no attempt
//! begins at an endpoint that the newest snapshot lacks, every request ends, and no endpoint keeps a request that has
//! ended.
//!
//! One thread runs the exchange, the endpoints and the publisher of snapshots, with a paused clock. Each endpoint
//! counts the attempts that begin at it, so the count of a removed endpoint must not change.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use config_loader::{Diagnostics, Severity, load_bytes};
use http_body_util::BodyExt;
use hyper::Request;
use proxy::control::ejection_sweep::EjectionSweep;
use proxy::control::publish::Publisher;
use proxy::exchange::downstream::connection::DownstreamProtocol;
use proxy::exchange::select::watch;
use proxy::exchange::settings::ExchangeSettings;
use proxy::exchange::tcp::{self, DownstreamTcp};
use proxy::exchange::trace_parts::TraceParts;
use proxy::exchange::{self, Connection, DownstreamBody, Worker, WorkerParts};
use proxy::identity::Identity;
use proxy::runtime::latest;
use proxy::snapshot::{Direction, ListenerKey, Service, SnapshotSlot};
use proxy::telemetry::{
    AccessLogger, BuildInfo, Counter, RequestLabels, ResponseFlags, Taps, Telemetry, WorkerId,
};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{sleep, timeout};
use traffic::registry::{EndpointState, Registry};

use crate::support::mesh::{documents, gateway, routes};
use crate::support::origin::Unreachable;
use crate::support::proxy::free_address;

/// Seeds of a default run. `STRAIT_SEED=N` runs one seed, `STRAIT_SEED=N..M` a range.
const SEEDS: Range<u64> = 0..48;

const STEPS: usize = 60;

/// Maximum time until all requests have ended after the last change, by the paused clock.
const END: Duration = Duration::from_secs(300);

/// Behavior of an endpoint for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Conduct {
    Answer,
    Close,
    Fail,
    /// Never accepts a connection.
    Silent,
    Refuse,
}

/// Endpoint of the local cluster or of a remote one.
struct Site {
    address: SocketAddr,
    conduct: Conduct,
    is_remote: bool,
}

/// Addresses of the gateway, without listeners: the test creates the connections itself.
const HTTP: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8080);
const TCP: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9090);

/// Totals over the runs of all seeds.
#[derive(Debug, Default)]
struct Totals {
    answered: u64,
    failed: u64,
    moved: u64,
    retried: u64,
}

struct World {
    rng: SmallRng,
    sites: Vec<Site>,
    publisher: Publisher,
    telemetry: Arc<Telemetry>,
    worker: Rc<Worker>,
    /// Endpoints of all snapshots so far.
    states: BTreeMap<u64, (String, Arc<EndpointState>)>,
    /// Number of attempts at each removed endpoint at the time of its removal.
    left: BTreeMap<u64, u64>,
    requests: JoinSet<()>,
    answered: Rc<Cell<u64>>,
    failed: Rc<Cell<u64>>,
}

impl World {
    /// Creates a world; must run within a local set.
    async fn new(seed: u64, silent: &[Unreachable]) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let mut sites = Vec::new();
        for unreachable in silent {
            sites.push(Site {
                address: unreachable.address,
                conduct: Conduct::Silent,
                is_remote: sites.len().is_multiple_of(2),
            });
        }
        for number in 0..8 {
            let conducts = [
                Conduct::Answer,
                Conduct::Close,
                Conduct::Fail,
                Conduct::Refuse,
            ];
            let conduct = conducts[number % conducts.len()];
            let address = match conduct {
                Conduct::Refuse => free_address(),
                _ => serve(conduct, rng.random_range(0..400)).await,
            };
            sites.push(Site {
                address,
                conduct,
                is_remote: rng.random_bool(0.4),
            });
        }
        let build = BuildInfo::default();
        let telemetry = Telemetry::new(1, build);
        let registry = Arc::new(Registry::default());
        let slot: SnapshotSlot = Arc::new(ArcSwap::default());
        let identity = Identity {
            cluster: "default/default/default/c1".to_owned(),
            labels: [("istio".to_owned(), "ingressgateway".to_owned())].into(),
            ..Identity::default()
        };
        let publisher = Publisher::new(
            identity,
            Arc::clone(&registry),
            Arc::default(),
            Arc::clone(&telemetry),
            Arc::clone(&slot),
        );
        let sweep = EjectionSweep {
            slot: Arc::clone(&slot),
            generations: publisher.generations(),
            journal: Arc::clone(registry.journal()),
            telemetry: Arc::clone(&telemetry),
        };
        tokio::task::spawn_local(sweep.run());
        let worker = worker(seed, &registry, &telemetry, &slot);
        let changes = registry.journal().changes();
        tokio::task::spawn_local(watch::follow(Rc::downgrade(&worker), changes));
        Self {
            rng,
            sites,
            publisher,
            telemetry,
            worker,
            states: BTreeMap::new(),
            left: BTreeMap::new(),
            requests: JoinSet::new(),
            answered: Rc::default(),
            failed: Rc::default(),
        }
    }

    /// Publishes a snapshot with these endpoints.
    fn publish(&mut self, chosen: &BTreeSet<usize>, has_service: bool) {
        let chosen: Vec<&Site> = chosen.iter().map(|number| &self.sites[*number]).collect();
        let text = mesh(&chosen, has_service);
        let mut diagnostics = Diagnostics::default();
        let set = load_bytes("mesh.yaml", text.as_bytes(), &mut diagnostics);
        for diagnostic in diagnostics.iter() {
            assert_ne!(
                diagnostic.severity,
                Severity::Error,
                "{diagnostic:?}\n{text}"
            );
        }
        let snapshot = self.publisher.publish(Arc::new(set));
        self.check();
        self.left.clear();
        let mut here = BTreeSet::new();
        for cluster in snapshot.clusters.iter().flatten() {
            for endpoint in cluster.endpoints() {
                here.insert(endpoint.state.id);
                let name = format!("{} of {}", endpoint.address, cluster.name());
                let state = Arc::clone(&endpoint.state);
                self.states.insert(endpoint.state.id, (name, state));
            }
        }
        let gone = self.states.iter().filter(|(id, _)| !here.contains(id));
        self.left = gone
            .map(|(id, (_, state))| (*id, state.requests()))
            .collect();
    }

    /// Checks that no attempt has begun at a removed endpoint.
    fn check(&self) {
        for (id, requests) in &self.left {
            let (name, state) = &self.states[id];
            assert_eq!(
                state.requests(),
                *requests,
                "an attempt began at {name}, which has left"
            );
        }
    }

    fn change(&mut self) {
        let share = self.rng.random_range(0.1..0.7);
        let chosen = (0..self.sites.len()).filter(|_| self.rng.random_bool(share));
        let chosen = chosen.collect();
        let has_service = self.rng.random_bool(0.95);
        self.publish(&chosen, has_service);
    }

    fn request(&mut self) {
        let worker = Rc::clone(&self.worker);
        let (answered, failed) = (Rc::clone(&self.answered), Rc::clone(&self.failed));
        let stays = Duration::from_millis(self.rng.random_range(0..300));
        let path = ["/", "/delayed", "/mirrored", "tcp"][self.rng.random_range(0..4)];
        self.requests.spawn_local(async move {
            let well = match path {
                "tcp" => connect(&worker, stays).await,
                path => ask(&worker, path).await == 200,
            };
            let counter = if well { answered } else { failed };
            counter.set(counter.get() + 1);
        });
    }

    async fn step(&mut self) {
        match self.rng.random_range(0..4) {
            0 => self.change(),
            _ => self.request(),
        }
        let time = self.rng.random_range(0..400_u64);
        sleep(Duration::from_millis(time.saturating_sub(100))).await;
        self.check();
    }

    /// Lets all requests end, with one endpoint that answers.
    async fn end(mut self, totals: &mut Totals) {
        let well = |number: &usize| {
            let site = &self.sites[*number];
            site.conduct == Conduct::Answer
        };
        let chosen = (0..self.sites.len()).filter(well).collect();
        self.publish(&chosen, true);
        let all = async {
            while self
                .requests
                .join_next()
                .await
                .is_some_and(|end| end.is_ok())
            {}
        };
        assert!(timeout(END, all).await.is_ok(), "a request does not end");
        assert!(self.requests.is_empty(), "a request failed by a fault");
        assert_eq!(ask(&self.worker, "/").await, 200);
        // mirrors end on their own
        sleep(END).await;
        self.check();
        for (name, state) in self.states.values() {
            assert_eq!(state.active(), 0, "requests are left at {name}");
        }
        let counter = |counter| self.telemetry.counters.counter(counter);
        totals.answered += self.answered.get();
        totals.failed += self.failed.get();
        totals.moved += counter(Counter::ConnectsMoved);
        totals.retried += counter(Counter::RetryConnectFailure) + counter(Counter::RetryStatus);
    }
}

fn worker(
    seed: u64,
    registry: &Arc<Registry>,
    telemetry: &Arc<Telemetry>,
    slot: &SnapshotSlot,
) -> Rc<Worker> {
    let unrouted = telemetry.stats.request_stats(&RequestLabels {
        reporter: Direction::Gateway.reporter(),
        source: Arc::default(),
        destination: Arc::default(),
        service: Arc::default(),
    });
    Rc::new(Worker::new(WorkerParts {
        id: WorkerId(0),
        snapshot: Arc::clone(slot),
        telemetry: Arc::clone(telemetry),
        unrouted,
        access_log: AccessLogger::off(),
        traces: TraceParts::default(),
        taps: Taps::default(),
        registry: Arc::clone(registry),
        settings: latest::slot(ExchangeSettings::default()),
        resolve: None,
        private: Arc::from([]),
        seed,
    }))
}

/// Returns a gateway with a rule for each kind of request, and a service with these endpoints.
fn mesh(sites: &[&Site], has_service: bool) -> String {
    let to = "{destination: {host: web.ns1.svc.cluster.local, port: {number: 80}}}";
    let rules = format!(
        "- match: [{{uri: {{exact: /delayed}}}}]\n  fault: {{delay: {{percentage: {{value: 100}}, fixedDelay: 500ms}}}}\n  \
         retries: {{attempts: 2, retryOn: '5xx,connect-failure,reset', backoff: 100ms}}\n  route: [{to}]\n\
         - match: [{{uri: {{exact: /mirrored}}}}]\n  mirror: {{host: web.ns1.svc.cluster.local, port: {{number: 80}}}}\n  \
         retries: {{attempts: 0}}\n  timeout: 5s\n  route: [{to}]\n\
         - retries: {{attempts: 3, retryOn: '5xx,connect-failure,reset', backoff: 100ms}}\n  route: [{to}]\n"
    );
    let (ip, port) = (TCP.ip(), TCP.port());
    let mut all = vec![
        gateway(&[HTTP]),
        routes("web", "['*']", &rules),
        format!(
            "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: tcp}}\nspec:\n  servers:\n  \
             - {{port: {{number: {port}, name: tcp, protocol: TCP}}, bind: {ip}, hosts: ['*']}}\n"
        ),
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: tcp}\nspec:\n  hosts: ['*']\n  \
         gateways: [tcp]\n  tcp:\n  - route: [{destination: {host: web.ns1.svc.cluster.local, port: {number: 80}}}]\n"
            .to_owned(),
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {namespace: ns1, name: web}\n\
         spec: {host: web, trafficPolicy: {connectionPool: {tcp: {connectTimeout: 1s}}, \
         outlierDetection: {consecutive5xxErrors: 2, interval: 1s, baseEjectionTime: 1s, maxEjectionPercent: 60}}}\n"
            .to_owned(),
    ];
    if has_service {
        all.push(
            "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: web}\n\
             spec: {ports: [{name: http, port: 80}]}\n"
                .to_owned(),
        );
        let locals = sites.iter().filter(|site| !site.is_remote);
        all.extend(
            locals
                .enumerate()
                .map(|(number, site)| slice(number, site.address)),
        );
        all.extend(import(sites));
    }
    documents(all)
}

fn slice(number: usize, at: SocketAddr) -> String {
    format!(
        "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{namespace: ns1, name: web-{number}, \
         labels: {{kubernetes.io/service-name: web}}}}\naddressType: IPv4\nports: [{{name: http, port: {}}}]\n\
         endpoints: [{{addresses: [{}], conditions: {{ready: true}}}}]\n",
        at.port(),
        at.ip()
    )
}

/// Returns the endpoints of the remote cluster, used for failover from the local cluster; empty if there are none.
fn import(sites: &[&Site]) -> Vec<String> {
    let remote = sites.iter().filter(|site| site.is_remote);
    let endpoints: Vec<String> = remote
        .map(|site| {
            let (ip, port) = (site.address.ip(), site.address.port());
            format!(
                "{{clusterKey: default/default/default/c2, target: {{host: '', ip: {ip}, port: {port}, path: /c2}}}}"
            )
        })
        .collect();
    if endpoints.is_empty() {
        return Vec::new();
    }
    vec![
        format!(
            "apiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {{namespace: ns1, name: web}}\n\
             spec: {{ports: [{{name: http, port: 80, endpoints: [{}]}}]}}\n",
            endpoints.join(", ")
        ),
        "apiVersion: flomesh.io/v1alpha1\nkind: GlobalTrafficPolicy\nmetadata: {namespace: ns1, name: web}\n\
         spec: {lbType: FailOver, targets: [{clusterKey: default/default/default/c2}]}\n"
            .to_owned(),
    ]
}

/// Starts an endpoint that needs this long for each request.
async fn serve(conduct: Conduct, millis: u64) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::task::spawn_local(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::task::spawn_local(async move {
                let mut head = Vec::new();
                while let Ok(1..) = stream.read_buf(&mut head).await {
                    if !head.ends_with(b"\r\n\r\n") {
                        continue;
                    }
                    head.clear();
                    sleep(Duration::from_millis(millis)).await;
                    let status = match conduct {
                        Conduct::Answer => "200 OK",
                        Conduct::Fail => "503 Service Unavailable",
                        _ => return,
                    };
                    let response = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
                    if stream.write_all(response.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// Sends a request and returns its status.
async fn ask(worker: &Rc<Worker>, path: &str) -> u16 {
    let protocol = DownstreamProtocol::Http1;
    let connection = Connection::new(ListenerKey::from(HTTP), HTTP, HTTP, protocol);
    let request = Request::get(path).header("host", "web.example");
    let request = request.body(DownstreamBody::Empty).unwrap();
    let response = exchange::run(Rc::clone(worker), Rc::new(connection), request).await;
    let status = response.status().as_u16();
    let body = response.into_body().collect().await;
    if body.is_ok() { status } else { 0 }
}

/// Whether a raw TCP connection succeeds, which then stays open for a while.
async fn connect(worker: &Rc<Worker>, stays: Duration) -> bool {
    let snapshot = worker.snapshot();
    let listener = snapshot.listener(&ListenerKey::from(TCP), TCP).unwrap();
    let Service::Opaque(routes) = &listener.service else {
        panic!("a TCP listener");
    };
    let asked = DownstreamTcp {
        listener: Arc::clone(&listener.key),
        remote: TCP,
        local: TCP,
        dialed: None,
        server_name: None,
        tls: None,
        is_undecided: false,
        routes: Some(Arc::clone(routes)),
        connect: None,
        draw: None,
    };
    let Ok(opened) = tcp::open(worker, asked).await else {
        return false;
    };
    sleep(stays).await;
    opened.record.finish(ResponseFlags::NONE, None);
    true
}

fn play(seed: u64, silent: &[Unreachable], totals: &mut Totals) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, async {
        let mut world = World::new(seed, silent).await;
        world.change();
        for _ in 0..STEPS {
            world.step().await;
        }
        world.end(totals).await;
    });
}

#[test]
fn no_attempt_begins_at_an_endpoint_that_has_left() {
    let silent = [(); 4].map(|()| Unreachable::new());
    let seeds = match std::env::var("STRAIT_SEED") {
        Ok(text) => match text.split_once("..") {
            Some((first, end)) => first.parse().unwrap()..end.parse().unwrap(),
            None => {
                let seed = text.parse().unwrap();
                seed..seed + 1
            }
        },
        Err(_) => SEEDS,
    };
    let mut totals = Totals::default();
    for seed in seeds.clone() {
        println!("seed {seed}");
        play(seed, &silent, &mut totals);
    }
    println!("{totals:?}");
    if seeds == SEEDS {
        let Totals {
            answered,
            failed,
            moved,
            retried,
        } = totals;
        assert!(answered > 0 && failed > 0 && moved > 0 && retried > 0);
    }
}
