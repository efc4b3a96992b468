//! The inputs for building a cluster.

use std::sync::Arc;
use std::time::Duration;

use super::{
    Absence, Dialed, Endpoint, Federation, HealthCheck, OutlierPolicy, Plan, Pods, RetryLimit,
    Spread, Warmup,
};
use crate::balance::{HashKey, Policy};
use crate::connection::PoolSettings;
use crate::connection::Protocol;
use crate::provenance::Sources;
use crate::registry::ClusterState;
use crate::telemetry::RequestStats;

/// Everything that `compile` determines about a cluster.
#[derive(Debug)]
pub struct Parts {
    /// Runtime state shared by workers, with the number and name of the cluster.
    pub state: Arc<ClusterState>,
    /// Host name of the service.
    pub host: Arc<str>,
    /// Protocol of upstream connections.
    pub protocol: Protocol,
    /// Load balancing policy.
    pub balance: Balance,
    /// The endpoints.
    pub endpoints: Box<[Endpoint]>,
    /// Rule for making the address that a client dialed the endpoint; `None` if endpoints are picked.
    pub dialed: Option<Dialed>,
    /// Pod names, for clients that address a pod of a headless service; only at a sidecar.
    pub pods: Option<Pods>,
    /// Endpoints by priority and group; empty if the address that the client dialed is the endpoint.
    pub plan: Plan,
    /// DNS names of endpoints, with ports, that have not been resolved yet.
    pub unresolved: Box<[Box<str>]>,
    /// Metrics of requests that reached no endpoint.
    pub stats: Arc<RequestStats>,
    /// Connection limits and timeouts.
    pub pool: PoolSettings,
    /// Limit of concurrent retries.
    pub retry_limit: RetryLimit,
    /// Active health checks, if configured.
    pub check: Option<Arc<HealthCheck>>,
    /// Pools of a service that several members serve; `endpoints` are then those of the local cluster.
    pub federation: Option<Arc<Federation>>,
    /// The reason why there are no endpoints.
    pub absence: Option<Absence>,
    /// Whether this is the pool of one member of a federation.
    pub is_pool: bool,
    /// The resources that determine the cluster: the service first, then its policy.
    pub sources: Sources,
    /// Resource whose change rebuilt the cluster; `None` for a new cluster.
    pub cause: Option<Arc<str>>,
    /// Hash of all properties; equal for clusters that behave alike.
    pub fingerprint: u64,
}

/// Load balancing policy of a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Balance {
    /// The balancer.
    pub policy: Policy,
    /// Slow start of new endpoints; `None` to give them their whole weight at once.
    pub warmup: Option<Warmup>,
    /// Effect of localities.
    pub spread: Spread,
    /// Outlier detection; `None` to disable it.
    pub outlier: Option<OutlierPolicy>,
    /// Percentage of usable endpoints in a priority below which all of its endpoints are used. Default: 0, never.
    pub panic_percent: u8,
    /// Lifetime of session affinity entries after the client's last request; `None` to choose by hash each time.
    pub remember: Option<Duration>,
}

impl Balance {
    /// The part of a request that is hashed; `None` for policies without a hash.
    pub fn hash_key(&self) -> Option<&HashKey> {
        match &self.policy {
            Policy::Hash(policy) => Some(&policy.key),
            Policy::Simple(_) | Policy::Passthrough => None,
        }
    }

    /// Minimum number of usable endpoints for zones (the groups) to matter; `None` where groups have fixed weights.
    pub(super) fn zones_from(&self) -> Option<u32> {
        match self.spread {
            Spread::ZoneAware { size_min, .. } => Some(size_min),
            Spread::Distribute(_) | Spread::Failover { .. } | Spread::Flat => None,
        }
    }
}
