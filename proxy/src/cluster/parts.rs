//! What a cluster is built from.

use std::sync::Arc;
use std::time::Duration;

use super::{
    Absence, Dialed, Endpoint, Federation, HealthCheck, OutlierPolicy, Plan, Pods, RetryLimit,
    Spread, Warmup,
};
use crate::balance::{HashKey, Policy};
use crate::pool::PoolSettings;
use crate::provenance::Sources;
use crate::registry::ClusterState;
use crate::telemetry::RequestStats;
use crate::upstream::Protocol;

/// Everything that a cluster is built from, as `compile` found it.
#[derive(Debug)]
pub struct Parts {
    /// What workers share about this cluster; holds its number and its name.
    pub state: Arc<ClusterState>,
    /// Host name of the service.
    pub host: Arc<str>,
    /// What its connections speak.
    pub protocol: Protocol,
    /// How endpoints are picked.
    pub balance: Balance,
    /// The endpoints.
    pub endpoints: Box<[Endpoint]>,
    /// How the address that a client dialed becomes the endpoint; none where endpoints are picked.
    pub dialed: Option<Dialed>,
    /// Names of pods, where clients choose an endpoint: of a headless service at a sidecar.
    pub pods: Option<Pods>,
    /// Endpoints by priority and group; none where the client's address is dialled.
    pub plan: Plan,
    /// DNS names of endpoints, with ports, whose addresses are not known yet.
    pub unresolved: Box<[Box<str>]>,
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
    pub sources: Sources,
    /// Resource whose change rebuilt it; none for a new cluster.
    pub cause: Option<Arc<str>>,
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

impl Balance {
    /// The part of requests that is hashed, if any is.
    pub fn hash_key(&self) -> Option<&HashKey> {
        match &self.policy {
            Policy::Hash(policy) => Some(&policy.key),
            Policy::Simple(_) | Policy::Passthrough => None,
        }
    }

    /// The fewest endpoints for which zones, which then are the groups, matter; none where groups have weights.
    pub(super) fn zones_from(&self) -> Option<u32> {
        match self.spread {
            Spread::ZoneAware { size_min, .. } => Some(size_min),
            Spread::Distribute(_) | Spread::Failover { .. } | Spread::Flat => None,
        }
    }
}
