//! Endpoints as they really are: how long they take, whether they fail, and what waits at them.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use config_loader::{EventAction, ScenarioEndpoints, ScenarioEvent, ScenarioTarget};
use rand::{Rng, RngExt};

/// z-value of the 99th percentile of a normal distribution.
const Z99: f64 = 2.326_347_9;

/// An endpoint, whichever proxies and services know it.
#[derive(Clone, Debug)]
pub(super) struct Backend {
    /// Position of its Kubernetes cluster.
    pub(super) cluster: usize,
    cluster_key: Arc<str>,
    zone: String,
    address: String,
    hosts: BTreeSet<Arc<str>>,
    /// Share of requests that get `status`.
    errors: f64,
    status: u16,
    factor: f64,
    /// Whether it refuses connections.
    pub(super) is_stopped: bool,
    /// Whether it never answers.
    pub(super) hangs: bool,
    /// Number of times that its connections have broken.
    pub(super) epoch: u32,
    /// Requests that it serves.
    pub(super) busy: u32,
    /// Requests that wait for it, with their serial numbers.
    pub(super) waiting: VecDeque<(u32, u32)>,
}

/// Identity of an endpoint.
pub(super) struct BackendKey<'a> {
    pub(super) cluster: &'a Arc<str>,
    pub(super) zone: &'a str,
    pub(super) address: String,
    pub(super) host: &'a Arc<str>,
}

impl Backend {
    fn new(key: &BackendKey<'_>, cluster: usize) -> Self {
        Self {
            cluster,
            cluster_key: Arc::clone(key.cluster),
            zone: key.zone.to_owned(),
            address: key.address.clone(),
            hosts: BTreeSet::new(),
            errors: 0.0,
            status: 200,
            factor: 1.0,
            is_stopped: false,
            hangs: false,
            epoch: 0,
            busy: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Whether an event with this target is about it.
    pub(super) fn is_of(&self, target: &ScenarioTarget) -> bool {
        match target {
            ScenarioTarget::All => true,
            ScenarioTarget::Cluster(name) => is_cluster(name, &self.cluster_key),
            ScenarioTarget::Zone(zone) => self.zone == **zone,
            ScenarioTarget::Host(host) => self.hosts.contains(host),
            ScenarioTarget::Endpoint(address) => self.address == **address,
        }
    }

    fn apply(&mut self, action: &EventAction) {
        match action {
            EventAction::Errors { share, status } => (self.errors, self.status) = (*share, *status),
            EventAction::Latency(factor) => self.factor = *factor,
            EventAction::Stop => self.is_stopped = true,
            EventAction::Hang => self.hangs = true,
            EventAction::Restore => {
                (self.errors, self.factor) = (0.0, 1.0);
                (self.is_stopped, self.hangs) = (false, false);
            }
            EventAction::Config(_) | EventAction::Rate(_) => {}
        }
    }

    /// Draws the status of a response.
    pub(super) fn answer(&self, rng: &mut impl Rng) -> u16 {
        let fails = self.errors >= 1.0 || self.errors > 0.0 && rng.random::<f64>() < self.errors;
        if fails { self.status } else { 200 }
    }
}

/// Whether a Kubernetes cluster with this key is meant by a key or name.
pub(super) fn is_cluster(name: &str, key: &str) -> bool {
    key == name || key.rsplit('/').next() == Some(name)
}

/// All endpoints.
#[derive(Debug)]
pub(super) struct World {
    pub(super) backends: Vec<Backend>,
    /// Keys of the Kubernetes clusters, by position.
    pub(super) clusters: Vec<Arc<str>>,
    by_key: HashMap<(Arc<str>, String), u32>,
    /// Events so far, for endpoints that appear later.
    past: Vec<ScenarioEvent>,
    /// Logarithms of the median of the service time, in nanoseconds, and of its spread.
    mu: f64,
    sigma: f64,
    concurrency: u32,
    /// Second number of the last pair of normal numbers.
    spare: Option<f64>,
}

impl World {
    pub(super) fn new(endpoints: &ScenarioEndpoints) -> Self {
        let nanos = |time: Duration| (time.as_nanos().max(1) as f64).ln();
        let (mu, p99) = (nanos(endpoints.p50), nanos(endpoints.p99));
        Self {
            backends: Vec::new(),
            clusters: Vec::new(),
            by_key: HashMap::new(),
            past: Vec::new(),
            mu,
            sigma: ((p99 - mu) / Z99).max(0.0),
            concurrency: endpoints.concurrency.unwrap_or(u32::MAX),
            spare: None,
        }
    }

    /// The position of an endpoint, which is new if no proxy has named it before.
    pub(super) fn backend(&mut self, key: BackendKey<'_>) -> u32 {
        let identity = (Arc::clone(key.cluster), key.address.clone());
        let at = match self.by_key.get(&identity) {
            Some(at) => *at,
            None => {
                let cluster = self.cluster(key.cluster);
                let at = self.backends.len() as u32;
                self.backends.push(Backend::new(&key, cluster));
                self.by_key.insert(identity, at);
                at
            }
        };
        let backend = &mut self.backends[at as usize];
        if backend.hosts.insert(Arc::clone(key.host)) {
            for event in &self.past {
                if backend.is_of(&event.target) {
                    backend.apply(&event.action);
                }
            }
        }
        at
    }

    fn cluster(&mut self, key: &Arc<str>) -> usize {
        let known = self.clusters.iter().position(|one| one == key);
        known.unwrap_or_else(|| {
            self.clusters.push(Arc::clone(key));
            self.clusters.len() - 1
        })
    }

    /// Names that a target of this kind could have.
    pub(super) fn names_like(&self, target: &ScenarioTarget) -> Vec<String> {
        let name = |backend: &Backend| match target {
            ScenarioTarget::All => Vec::new(),
            ScenarioTarget::Cluster(_) => vec![backend.cluster_key.to_string()],
            ScenarioTarget::Zone(_) => vec![backend.zone.clone()],
            ScenarioTarget::Host(_) => backend.hosts.iter().map(ToString::to_string).collect(),
            ScenarioTarget::Endpoint(_) => vec![backend.address.clone()],
        };
        let names: BTreeSet<String> = self.backends.iter().flat_map(name).collect();
        names.into_iter().filter(|name| !name.is_empty()).collect()
    }

    /// Applies an event; returns the endpoints whose connections break.
    pub(super) fn apply(&mut self, event: &ScenarioEvent) -> Vec<u32> {
        self.past.push(event.clone());
        let mut broken = Vec::new();
        for (at, backend) in (0..).zip(&mut self.backends) {
            if !backend.is_of(&event.target) {
                continue;
            }
            backend.apply(&event.action);
            if event.action == EventAction::Stop {
                backend.epoch += 1;
                backend.busy = 0;
                backend.waiting.clear();
                broken.push(at);
            }
        }
        broken
    }

    /// Whether an endpoint serves one more request now.
    pub(super) fn has_room(&self, backend: u32) -> bool {
        let backend = &self.backends[backend as usize];
        backend.busy < self.concurrency && !backend.hangs
    }

    /// Draws a service time, in nanoseconds, from a log-normal distribution.
    pub(super) fn service_time(&mut self, backend: u32, rng: &mut impl Rng) -> u64 {
        let normal = self.spare.take().unwrap_or_else(|| {
            // Box and Muller: two independent numbers at a time
            let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
            let (sin, cos) = (std::f64::consts::TAU * rng.random::<f64>()).sin_cos();
            self.spare = Some(radius * sin);
            radius * cos
        });
        let factor = self.backends[backend as usize].factor;
        (factor * (self.mu + self.sigma * normal).exp()) as u64
    }
}
