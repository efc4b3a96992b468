//! A compiled service: its endpoints, splits and picks; pure decisions.
//!
//! A *cluster* is a named group of endpoints that one policy balances; it is not a Kubernetes cluster (code calls
//! that a member). Clusters are replaced as a whole when their endpoints or policy change; what must survive that is
//! in the registry, behind the `Arc`s held here.

pub mod affinity;

#[cfg(test)]
mod by_hand;

mod check;
mod ejection;

pub mod endpoint;

pub mod federation;

pub mod live;

pub mod locality;

pub mod outlier;

pub mod priorities;

pub mod retry_limit;

pub mod split;

pub mod warmup;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use rand::Rng;
use smallvec::SmallVec;

pub use affinity::Stay;
pub use check::{HealthCheck, Probe};
pub use endpoint::{Common, Endpoint, EndpointTls, Hop};
pub use federation::{Absence, Federation};
pub use live::{Ask, Avoid, Live};
pub use locality::{Locality, Plan, Spread};
pub use outlier::{Outcome, OutlierPolicy};
pub use retry_limit::{Admission, RetryLimit};
pub use split::Split;
pub use warmup::Warmup;

use self::affinity::AffinitySettings;
use self::live::{Base, Members, Method};
use self::locality::Group;
use crate::balance::hash::Host;
use crate::balance::{EndpointIdx, HashKey, HashTable, Policy};
use crate::error::Kind;
use crate::pool::PoolSettings;
use crate::provenance::Provenance;
use crate::registry::{ClusterId, ClusterState, Moment, Recent};
use crate::telemetry::RequestStats;
use crate::tls::ClientTls;
use crate::upstream::Protocol;

/// Everything that a cluster is built from.
#[derive(Debug)]
pub struct Parts {
    /// What workers share about this cluster.
    pub state: Arc<ClusterState>,
    /// Host name of the service.
    pub host: Arc<str>,
    /// What its connections speak.
    pub protocol: Protocol,
    /// How endpoints are picked.
    pub balance: Balance,
    /// The endpoints.
    pub endpoints: Vec<Endpoint>,
    /// Endpoints by priority and group.
    pub plan: Plan,
    /// DNS names of endpoints, with ports, whose addresses are not known yet.
    pub unresolved: Vec<Box<str>>,
    /// Where requests are counted that reached no endpoint.
    pub stats: Arc<RequestStats>,
    /// Connection limits and times.
    pub pool: PoolSettings,
    /// How many requests may be tried again at the same time.
    pub retry_limit: RetryLimit,
    /// How endpoints are health-checked, if they are.
    pub check: Option<Arc<HealthCheck>>,
    /// Where requests go when several members serve the service; then the endpoints here are those of this proxy's own.
    pub federation: Option<Arc<Federation>>,
    /// Why there is no endpoint at all.
    pub absence: Option<Absence>,
    /// Whether its endpoints are those of one of the members that serve a service together.
    pub is_pool: bool,
    /// The resources that had a say: the service first, then its policy.
    pub provenance: Vec<Provenance>,
    /// Hash over what it follows from, if that can be told without its endpoints.
    pub made_from: Option<u64>,
    /// Hash over everything that the cluster is made of; equal for clusters that behave alike.
    pub fingerprint: u64,
}

/// How a cluster's endpoints are chosen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Balance {
    /// The balancer.
    pub policy: Policy,
    /// How new endpoints begin; at once with their whole weight if there is none.
    pub warmup: Option<Warmup>,
    /// How localities count.
    pub spread: Spread,
    /// When endpoints are taken out; never if there is none.
    pub outlier: Option<OutlierPolicy>,
    /// The part of a priority's endpoints below which all are used, healthy or not, in percent. Default: 0, never.
    pub panic_percent: u8,
    /// How long after its last request a client stays with the endpoint that it was sent to; the hash of its address
    /// decides again each time if there is none.
    pub remember: Option<Duration>,
}

/// A service port (and subset) with its endpoints and the policy that balances them.
#[derive(Debug)]
pub struct Cluster {
    /// What workers share about this cluster; holds its number and its name.
    pub state: Arc<ClusterState>,
    /// Host name of the service.
    pub host: Arc<str>,
    /// What its connections speak.
    pub protocol: Protocol,
    /// How endpoints are picked.
    pub balance: Balance,
    /// Connection limits and times.
    pub pool: PoolSettings,
    /// How many requests may be tried again at the same time.
    pub retry_limit: RetryLimit,
    /// How endpoints are health-checked, if they are.
    pub check: Option<Arc<HealthCheck>>,
    /// Where requests go when several members serve the service; then the endpoints here are those of this proxy's own.
    pub federation: Option<Arc<Federation>>,
    /// Why there is no endpoint at all.
    pub absence: Option<Absence>,
    /// Whether its endpoints are those of one of the members that serve a service together.
    pub is_pool: bool,
    /// The resources that had a say: the service first, then its policy.
    pub provenance: Vec<Provenance>,
    /// DNS names of endpoints, with ports, whose addresses are not known yet.
    pub unresolved: Box<[Box<str>]>,
    /// Where requests are counted that reached no endpoint.
    pub stats: Arc<RequestStats>,
    /// Hash over what it follows from, if that can be told without its endpoints.
    pub made_from: Option<u64>,
    /// Hash over everything that the cluster is made of; equal for clusters that behave alike.
    pub fingerprint: u64,
    /// Attempts that began recently, if the retry limit is a share of them.
    recent: Option<Arc<Recent>>,
    /// Clients that stay with an endpoint, if they do.
    memory: Option<Box<AffinitySettings>>,
    endpoints: Box<[Endpoint]>,
    /// Priority of each endpoint; empty when all have the same.
    priorities: Box<[u8]>,
    base: Base,
    live: ArcSwap<Live>,
    /// Whether an endpoint may be used, as of the tables.
    available: AtomicBool,
}

impl Cluster {
    /// Builds the balancer's tables for these parts, as things are now.
    pub fn build(parts: Parts, now: Moment) -> Self {
        let endpoints = parts.endpoints.into_boxed_slice();
        let priorities = by_endpoint(&parts.plan, endpoints.len());
        let base = base(&parts.balance, parts.plan, &endpoints, parts.is_pool);
        let live = Live::build(&base, &endpoints, now);
        let interval = parts.retry_limit.interval();
        let stands_for_all = parts.federation.is_some() || !parts.is_pool;
        let affinity_table = || stands_for_all.then(|| parts.state.affinity_table());
        let remember = parts.balance.remember;
        Self {
            memory: remember.map(|lifetime| {
                AffinitySettings::build(lifetime, affinity_table(), &base.plan, &endpoints)
            }),
            recent: interval.map(|interval| parts.state.recent(interval)),
            state: parts.state,
            host: parts.host,
            protocol: parts.protocol,
            balance: parts.balance,
            pool: parts.pool,
            retry_limit: parts.retry_limit,
            check: parts.check,
            federation: parts.federation,
            absence: parts.absence,
            is_pool: parts.is_pool,
            provenance: parts.provenance,
            unresolved: parts.unresolved.into(),
            stats: parts.stats,
            made_from: parts.made_from,
            fingerprint: parts.fingerprint,
            endpoints,
            priorities,
            base,
            available: AtomicBool::new(live.is_available()),
            live: ArcSwap::from_pointee(live),
        }
    }

    /// The number under which snapshots hold this cluster.
    pub fn id(&self) -> ClusterId {
        self.state.id
    }

    /// Name of the cluster: `outbound|PORT|SUBSET|HOST`.
    pub fn name(&self) -> &Arc<str> {
        &self.state.name
    }

    /// All endpoints.
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// The endpoint with this number.
    pub fn endpoint(&self, index: EndpointIdx) -> &Endpoint {
        &self.endpoints[index.0 as usize]
    }

    /// The TLS that is spoken to an endpoint; none for plain text.
    pub fn tls<'a>(&'a self, endpoint: &'a Endpoint) -> Option<&'a Arc<ClientTls>> {
        match &endpoint.tls {
            EndpointTls::OfCluster => self.pool.tls.as_ref(),
            EndpointTls::Own(tls) => Some(tls),
            EndpointTls::Plain => None,
        }
    }

    /// Endpoints by priority and group.
    pub fn plan(&self) -> &Plan {
        &self.base.plan
    }

    /// The tables as they are now.
    pub fn live(&self) -> Arc<Live> {
        self.live.load_full()
    }

    /// The priority of an endpoint, 0 first.
    pub fn priority(&self, endpoint: EndpointIdx) -> u32 {
        let priority = self.priorities.get(endpoint.0 as usize);
        u32::from(priority.copied().unwrap_or_default())
    }

    /// Why a pick comes to nothing.
    pub fn why_none(&self) -> Kind {
        match self.balance.policy {
            Policy::Passthrough => Kind::NoOriginalDestination,
            Policy::Hash(_) | Policy::Simple(_) => Kind::NoHealthyUpstream,
        }
    }

    /// The localities of a priority with their weights, where traffic is distributed by locality; none otherwise.
    pub fn localities(&self, priority: usize) -> Vec<(String, u32)> {
        let groups = match self.plan().get(priority).map(Vec::as_slice) {
            None | Some([_]) => &[],
            Some(groups) => groups,
        };
        // it is the same for all endpoints of a group
        let locality = |group: &Group| {
            let endpoint = self.endpoint(EndpointIdx(*group.members.first()?));
            Some((endpoint.locality.to_string(), group.weight))
        };
        groups.iter().filter_map(locality).collect()
    }

    /// How many priorities there are.
    pub fn priorities(&self) -> usize {
        self.base.plan.len().max(1)
    }

    /// Whether no endpoint can ever serve it: no endpoint, no DNS name to resolve, and no other Kubernetes cluster.
    pub fn is_deserted(&self) -> bool {
        let members = self.federation.as_ref();
        self.endpoints.is_empty()
            && self.unresolved.is_empty()
            && members.is_none_or(|federation| federation.pools().is_empty())
    }

    /// Whether an endpoint may be used without panic.
    #[inline]
    pub fn is_available(&self) -> bool {
        self.available.load(Ordering::Relaxed)
    }

    /// What is hashed of requests for this cluster, if anything is.
    pub fn hash_key(&self) -> Option<&HashKey> {
        match &self.balance.policy {
            Policy::Hash(policy) => Some(&policy.key),
            Policy::Simple(_) | Policy::Passthrough => None,
        }
    }

    /// Picks an endpoint for one attempt; `None` when there is none that may be used.
    #[inline]
    pub fn pick(&self, ask: Ask, rng: &mut impl Rng) -> Option<EndpointIdx> {
        self.live.load().pick(&self.members(), ask, rng)
    }

    /// Picks an endpoint for another attempt, which avoids what it may; `None` when there is none that may be used.
    pub fn pick_other(
        &self,
        ask: Ask,
        avoid: &Avoid<'_>,
        rng: &mut impl Rng,
    ) -> Option<EndpointIdx> {
        let live = self.live.load();
        live.pick_other(&self.members(), ask, avoid, rng)
    }

    /// Whether an endpoint other than these may be picked, without panic.
    pub fn has_other(&self, than: &[EndpointIdx]) -> bool {
        self.live.load().has_other(&self.members(), than)
    }

    /// The priorities that another attempt leaves out if it is to widen, after those on these endpoints.
    pub fn left_out(&self, tried: &[EndpointIdx]) -> SmallVec<[u32; 4]> {
        let priorities = tried.iter().map(|endpoint| self.priority(*endpoint));
        let priorities: SmallVec<[u32; 4]> = priorities.collect();
        priorities::left_out(&priorities, &self.live.load().health)
    }

    #[inline]
    fn members(&self) -> Members<'_> {
        Members {
            base: &self.base,
            endpoints: &self.endpoints,
            cursors: &self.state.cursors,
        }
    }

    /// Probability that each endpoint is picked next while all are equally busy, in endpoint order.
    pub fn shares(&self) -> Vec<f64> {
        self.live.load().probabilities(&self.endpoints)
    }

    /// Records the outcome of a request to an endpoint, and ejects the endpoint if it has failed too often.
    #[inline]
    pub fn report(&self, endpoint: EndpointIdx, outcome: Outcome, now: impl FnOnce() -> Moment) {
        let Some(policy) = &self.balance.outlier else {
            return;
        };
        let health = &self.endpoint(endpoint).state.health;
        if let Some(verdict) = policy.count(health, outcome) {
            ejection::decide(self, policy, endpoint, verdict, now());
        }
    }

    /// Looks at who may come back, and at what is stale; to be called every `interval` of the policy, and when the
    /// journal has rung.
    pub fn refresh(&self, now: Moment) {
        let stale = &self.state.ejections.stale;
        let warms = || self.live.load().warms_at.is_some_and(|due| due <= now);
        if stale.swap(false, Ordering::AcqRel) || warms() {
            self.rebuild(now);
        }
    }

    /// Lets ejected endpoints back whose time is over.
    pub fn sweep(&self, now: Moment) {
        if let Some(policy) = &self.balance.outlier {
            ejection::sweep(self, policy, now);
        }
        self.refresh(now);
    }

    /// Rebuilds the tables whatever they show: of a cluster that has just taken effect, something may have happened
    /// since it was compiled. Without outlier detection nobody stays ejected, since nobody would let them back, and
    /// without health checks nobody is out for failing them.
    pub fn adopt(&self, now: Moment) {
        if self.check.is_none() {
            self.pardon_unchecked(now);
        }
        if self.balance.outlier.is_none() {
            ejection::uneject_all(self, now);
        }
        self.rebuild(now);
    }

    /// Endpoints that are ejected.
    pub fn ejected(&self) -> usize {
        let endpoints = self.endpoints.iter();
        endpoints
            .filter(|endpoint| endpoint.state.health.is_ejected())
            .count()
    }

    fn rebuild(&self, now: Moment) {
        let live = Arc::new(Live::build(&self.base, &self.endpoints, now));
        let is_available = live.is_available();
        if self.available.swap(is_available, Ordering::Relaxed) != is_available {
            self.state.flips.note();
        }
        let before = self.live.swap(Arc::clone(&live));
        ejection::tell_shift(self, &before, &live, now);
    }
}

/// What tables are made from.
fn base(balance: &Balance, plan: Plan, endpoints: &[Endpoint], is_pool: bool) -> Base {
    let method = match &balance.policy {
        Policy::Simple(simple) => Method::Simple(*simple),
        Policy::Passthrough => Method::Hash(Box::default()),
        Policy::Hash(policy) => {
            let tables = plan.iter().filter_map(|groups| {
                let keys: Vec<String> = groups
                    .iter()
                    .flat_map(|group| &group.members)
                    .map(|member| endpoints[*member as usize].hash_key())
                    .collect();
                let hosts = hosts(groups, endpoints, &keys);
                HashTable::build(policy.algorithm, &hosts).map(Arc::new)
            });
            Method::Hash(tables.collect())
        }
    };
    Base {
        method,
        plan: match balance.policy {
            // not one of them is dialled
            Policy::Passthrough => Plan::new(),
            _ => plan,
        },
        panic_percent: balance.panic_percent,
        is_pool,
        warmup: balance.warmup,
        zones_from: match balance.spread {
            Spread::ZoneAware { size_min, .. } => Some(size_min),
            Spread::Distribute(_) | Spread::Failover { .. } | Spread::Flat => None,
        },
    }
}

/// The endpoints of one priority as a hash table wants them, with their keys in the order of the groups; weights of
/// groups count where there are several.
fn hosts<'a>(
    groups: &[Group],
    endpoints: &[Endpoint],
    keys: &'a [String],
) -> Vec<(EndpointIdx, Host<'a>)> {
    let mut hosts = Vec::new();
    let mut keys = keys.iter();
    for group in groups {
        let members = || {
            group
                .members
                .iter()
                .map(|member| &endpoints[*member as usize])
        };
        let sum: f64 = members().map(|endpoint| f64::from(endpoint.weight)).sum();
        for ((number, endpoint), key) in group.members.iter().zip(members()).zip(&mut keys) {
            let weight = match groups {
                [_] => f64::from(endpoint.weight),
                _ => f64::from(group.weight) * f64::from(endpoint.weight) / sum,
            };
            hosts.push((EndpointIdx(*number), Host { key, weight }));
        }
    }
    hosts
}

fn by_endpoint(plan: &Plan, endpoints: usize) -> Box<[u8]> {
    if plan.len() < 2 {
        return Box::default();
    }
    let mut priorities = vec![0; endpoints];
    for (priority, groups) in plan.iter().enumerate() {
        for member in groups.iter().flat_map(|group| &group.members) {
            priorities[*member as usize] = priority as u8;
        }
    }
    priorities.into()
}
