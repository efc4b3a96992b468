//! One proxy of a simulation: its registry, snapshots, workers and monitors, as in a process, without sockets.

use std::collections::BTreeMap;
use std::sync::Arc;

use config_loader::ResourceSet;
use rand::Rng;
use tokio::time::Instant;

use super::pools::EndpointPool;
use super::queue::{Event, Queue};
use super::world::{BackendKey, World};
use crate::compile::Survey;
use crate::compile::certificates::Scope;
use crate::control::certificates::{self, Delivered};
use crate::control::health;
use crate::control::monitor::Monitor;
use crate::control::publish::Publisher;
use crate::exchange::select::find_route::Found;
use crate::exchange::settings::ExchangeSettings;
use crate::exchange::trace_parts::TraceParts;
use crate::exchange::{Worker, WorkerParts};
use crate::explain::answer::Outcome;
use crate::explain::{Question, explain, rule};
use crate::identity::{Identity, Mode};
use crate::runtime::latest::{Slot, slot};
use crate::snapshot::{Direction, Snapshot, SnapshotSlot};
use crate::telemetry::{AccessLogger, BuildInfo, RequestLabels, Taps, Telemetry, WorkerId};
use crate::tls::Store;
use traffic::balance::EndpointIdx;
use traffic::cluster::{Cluster, HealthCheck, Split};
use traffic::registry::{Event as JournalEvent, Journal, Registry};

/// Outcome of the requests of a simulation, as far as the configuration decides it.
pub(super) enum Ruling {
    /// A rule forwards them.
    Forward(Found),
    /// The proxy answers with this status; whether it refuses them.
    Reply { is_failed: bool, words: String },
}

/// A worker, and its connections by the number of the endpoint.
pub(super) struct SimulatedWorker {
    pub(super) worker: Worker,
    pub(super) pools: Vec<EndpointPool>,
}

impl SimulatedWorker {
    /// Connections to an endpoint.
    pub(super) fn pool(&mut self, endpoint: u64) -> &mut EndpointPool {
        let at = endpoint as usize;
        if self.pools.len() <= at {
            self.pools.resize_with(at + 1, EndpointPool::default);
        }
        &mut self.pools[at]
    }
}

/// Parts that the workers of a proxy share.
struct SharedParts<'a> {
    slot: &'a SnapshotSlot,
    telemetry: &'a Arc<Telemetry>,
    registry: &'a Arc<Registry>,
    settings: &'a Slot<ExchangeSettings>,
}

impl SharedParts<'_> {
    fn worker(&self, number: u16, seed: u64) -> SimulatedWorker {
        let parts = WorkerParts {
            id: WorkerId(number),
            snapshot: Arc::clone(self.slot),
            telemetry: Arc::clone(self.telemetry),
            unrouted: self.telemetry.stats.request_stats(&RequestLabels {
                reporter: Direction::Gateway.reporter(),
                source: Arc::default(),
                destination: Arc::default(),
                service: Arc::default(),
            }),
            access_log: AccessLogger::off(),
            traces: TraceParts::default(),
            taps: Taps::default(),
            registry: Arc::clone(self.registry),
            settings: Arc::clone(self.settings),
            resolve: None,
            private: Arc::default(),
            seed: seed.wrapping_add(u64::from(number)),
        };
        SimulatedWorker {
            worker: Worker::new(parts),
            pools: Vec::new(),
        }
    }
}

/// Endpoint whose health is checked.
struct Followed {
    cluster: Arc<Cluster>,
    index: EndpointIdx,
    check: Arc<HealthCheck>,
    serial: u32,
    is_first: bool,
}

/// A proxy.
pub(super) struct SimulatedProxy {
    number: u16,
    identity: Identity,
    settings: ExchangeSettings,
    publisher: Publisher,
    certificates: Arc<Store>,
    pub(super) journal: Arc<Journal>,
    pub(super) workers: Vec<SimulatedWorker>,
    monitor: Monitor,
    /// Number of the next event of the journal.
    told: u64,
    pub(super) ruling: Ruling,
    /// Positions of endpoints in the world, by their number.
    backends: Vec<u32>,
    /// Clusters that the rule leads to.
    clusters: Vec<Arc<Cluster>>,
    checked: BTreeMap<u64, Followed>,
    serial: u32,
}

impl SimulatedProxy {
    /// Makes a proxy without a configuration.
    pub(super) fn new(
        number: u16,
        workers: u16,
        identity: &Identity,
        seed: u64,
        start: Instant,
    ) -> Self {
        // rotations of proxies begin at different members, as those of processes do
        let registry = Arc::new(Registry::seeded(seed | 1));
        let telemetry = Telemetry::new(usize::from(workers), BuildInfo::default());
        let settings = ExchangeSettings {
            is_sidecar: identity.mode == Mode::Sidecar,
            ..ExchangeSettings::default()
        };
        let shared = slot(settings.clone());
        let slot: SnapshotSlot = slot(Snapshot::default());
        let certificates = Arc::<Store>::default();
        let journal = Arc::clone(registry.journal());
        journal.at(start);
        let shared = SharedParts {
            slot: &slot,
            telemetry: &telemetry,
            registry: &registry,
            settings: &shared,
        };
        let make = |number| shared.worker(number, seed);
        let workers = (0..workers).map(make).collect();
        Self {
            number,
            publisher: Publisher::new(
                identity.clone(),
                registry,
                Arc::clone(&certificates),
                telemetry,
                slot,
            ),
            identity: identity.clone(),
            settings,
            certificates,
            journal,
            workers,
            monitor: Monitor::default(),
            told: 0,
            ruling: Ruling::Reply {
                is_failed: true,
                words: String::new(),
            },
            backends: Vec::new(),
            clusters: Vec::new(),
            checked: BTreeMap::new(),
            serial: 0,
        }
    }

    /// Puts a configuration into effect, and finds the rule for the requests.
    pub(super) fn apply(
        &mut self,
        resources: &Arc<ResourceSet>,
        question: &Question,
        now: (u64, Instant),
        (world, queue): (&mut World, &mut Queue),
    ) {
        let scope = Scope::Proxy(&self.identity);
        let time = certificates::now();
        certificates::look(
            &self.certificates,
            resources,
            &Delivered::default(),
            scope,
            time,
        );
        let snapshot = self.publisher.publish(Arc::clone(resources));
        let moment = self.journal.at(now.1);
        self.monitor.follow(Arc::clone(&snapshot), moment);
        self.ruling = self.rule(resources, question, &snapshot);
        self.clusters = reached(&self.ruling, &snapshot);
        let own = match self.identity.cluster.as_str() {
            "" => "local".into(),
            own => Arc::<str>::from(own),
        };
        for cluster in &self.clusters {
            for endpoint in cluster.endpoints() {
                let locality = endpoint.locality.to_string();
                let at = world.backend(BackendKey {
                    cluster: endpoint.member.as_ref().unwrap_or(&own),
                    zone: locality.split('/').nth(1).unwrap_or_default(),
                    address: endpoint.address.to_string(),
                    host: &cluster.host,
                });
                let id = endpoint.state.id as usize;
                if self.backends.len() <= id {
                    self.backends.resize(id + 1, u32::MAX);
                }
                self.backends[id] = at;
            }
        }
        self.follow_checks(&snapshot, now.0, queue);
    }

    fn rule(
        &self,
        resources: &ResourceSet,
        question: &Question,
        snapshot: &Arc<Snapshot>,
    ) -> Ruling {
        let survey = Survey::new(resources, &self.identity);
        let answer = explain(question, snapshot, &self.settings, &survey);
        let words = match &answer.outcome {
            Outcome::Forwarded { .. } | Outcome::Unavailable { .. } => {
                let found = rule(question, snapshot, &self.settings, survey.gateways());
                match found.filter(|found| found.route().split.is_some()) {
                    Some(found) => return Ruling::Forward(found),
                    None => "no rule forwards the request".to_owned(),
                }
            }
            Outcome::DirectResponse { status } => format!("the proxy answers with {status}"),
            Outcome::Redirected { status, .. } => format!("the proxy redirects with {status}"),
            Outcome::Rejected { status, reason, .. } => match status {
                Some(status) => format!("the proxy answers with {status}: {reason}"),
                None => format!("the proxy closes the connection: {reason}"),
            },
        };
        Ruling::Reply {
            is_failed: !answer.outcome.is_served(),
            words,
        }
    }

    /// Parts of the rule that a simulation leaves out.
    pub(super) fn left_out(&self) -> Vec<&'static str> {
        let Ruling::Forward(found) = &self.ruling else {
            return Vec::new();
        };
        let route = found.route();
        let early = route.filters.early.as_ref();
        let parts = [
            (early.is_some_and(|early| early.fault.is_some()), "faults"),
            (
                early.is_some_and(|early| early.limits.is_some()),
                "rate limits",
            ),
            (
                early.is_some_and(|early| early.check.is_some()),
                "external authorization",
            ),
            (route.mirrors.is_some(), "mirrors"),
        ];
        let given = parts.into_iter().filter(|(is_given, _)| *is_given);
        given.map(|(_, name)| name).collect()
    }

    /// The position of an endpoint in the world.
    pub(super) fn backend(&self, endpoint: u64) -> u32 {
        self.backends[endpoint as usize]
    }

    /// Closes idle connections to endpoints that have stopped.
    pub(super) fn close_connections(&mut self, broken: &[u32]) {
        let endpoints = self.clusters.iter().flat_map(|cluster| cluster.endpoints());
        for endpoint in endpoints {
            let id = endpoint.state.id;
            if broken.contains(&self.backends[id as usize]) {
                for worker in &mut self.workers {
                    worker.pool(id).close_all();
                }
            }
        }
    }

    /// Lets all workers pass on idle connections of a cluster that requests wait for.
    pub(super) fn answer(&mut self, cluster: &Cluster) {
        for endpoint in cluster.endpoints() {
            for worker in &mut self.workers {
                let pool = worker.pool(endpoint.state.id);
                pool.answer(&cluster.state, endpoint.state.id);
            }
        }
    }

    /// Ends ejections that are over, and rebuilds tables; returns what has happened since the last call.
    pub(super) fn sweep(&mut self, now: Instant) -> Vec<JournalEvent> {
        self.monitor.sweep(self.journal.at(now));
        let events = self.journal.since(self.told);
        self.told = events.last().map_or(self.told, |last| last.number + 1);
        events
    }

    /// Positions of the endpoints that are ejected.
    pub(super) fn ejected(&self) -> impl Iterator<Item = u32> {
        let endpoints = self.clusters.iter().flat_map(|cluster| cluster.endpoints());
        let ejected = endpoints.filter(|endpoint| endpoint.state.health.is_ejected());
        ejected.map(|endpoint| self.backend(endpoint.state.id))
    }

    /// Checks exactly the endpoints that have a check, as `control::health` does.
    fn follow_checks(&mut self, snapshot: &Snapshot, now: u64, queue: &mut Queue) {
        let mut before = std::mem::take(&mut self.checked);
        for cluster in &self.clusters {
            let Some(check) = &cluster.check else {
                continue;
            };
            for (number, endpoint) in (0..).zip(cluster.endpoints()) {
                let (index, id) = (EndpointIdx(number), endpoint.state.id);
                let known = before.remove(&id).filter(|known| known.check == *check);
                let followed = match known {
                    Some(known) => Followed {
                        cluster: Arc::clone(cluster),
                        index,
                        ..known
                    },
                    None => {
                        self.serial += 1;
                        let (proxy, serial) = (self.number, self.serial);
                        queue.push(
                            now,
                            Event::Check {
                                proxy,
                                endpoint: id,
                                serial,
                            },
                        );
                        Followed {
                            cluster: Arc::clone(cluster),
                            index,
                            check: Arc::clone(check),
                            serial,
                            is_first: true,
                        }
                    }
                };
                self.checked.insert(id, followed);
            }
        }
        for gone in before.into_values() {
            health::forget(&gone.cluster, gone.index, snapshot, &self.journal);
        }
    }

    /// The check of an endpoint, if it is still the one with this serial number.
    pub(super) fn check(&self, endpoint: u64, serial: u32) -> Option<&Arc<HealthCheck>> {
        let followed = self.checked.get(&endpoint);
        Some(&followed.filter(|one| one.serial == serial)?.check)
    }

    /// Records the result of a check; returns the time until the next one, in nanoseconds.
    pub(super) fn checked(
        &mut self,
        endpoint: u64,
        (passed, said): (bool, String),
        now: Instant,
        rng: &mut impl Rng,
    ) -> u64 {
        let Some(followed) = self.checked.get_mut(&endpoint) else {
            return u64::MAX;
        };
        let result = traffic::registry::CheckResult {
            passed,
            said: said.into(),
        };
        let moment = self.journal.at(now);
        followed
            .cluster
            .record_check(followed.index, result, moment);
        let is_first = std::mem::take(&mut followed.is_first);
        health::pause(&followed.check, is_first, rng).as_nanos() as u64
    }
}

/// Clusters that a rule leads to, with the pools of federated services.
fn reached(ruling: &Ruling, snapshot: &Snapshot) -> Vec<Arc<Cluster>> {
    let Ruling::Forward(found) = ruling else {
        return Vec::new();
    };
    let mut all: BTreeMap<_, Arc<Cluster>> = BTreeMap::new();
    let split = found.route().split.iter().flat_map(Split::entries);
    let named = split.filter_map(|(_, destination)| snapshot.cluster(destination.cluster));
    for cluster in named {
        let pools = cluster.federation.iter().flat_map(|one| one.pools());
        let pools = pools.filter_map(|pool| snapshot.cluster(pool.cluster));
        for one in pools.chain([cluster]) {
            all.insert(one.id(), Arc::clone(one));
        }
    }
    all.into_values().collect()
}
