//! A compiled service: its endpoints, splits and picks; pure decisions.
//!
//! A *cluster* is a named group of endpoints that one policy balances; it is not a Kubernetes cluster (code calls
//! that a member). Clusters are replaced as a whole when their endpoints or policy change; what must survive that is
//! in the registry, behind the `Arc`s held here.

pub mod endpoint;

pub mod retry_limit;

pub mod split;

use std::sync::Arc;

use rand::Rng;

pub use endpoint::Endpoint;
pub use retry_limit::{Admission, RetryLimit};
pub use split::Split;

use crate::balance::{Balancer, EndpointIdx, Policy};
use crate::pool::PoolSettings;
use crate::provenance::Provenance;
use crate::registry::{ClusterId, ClusterState};
use crate::telemetry::RequestStats;
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
    pub policy: Policy,
    /// The endpoints.
    pub endpoints: Vec<Endpoint>,
    /// DNS names of endpoints, with ports, whose addresses are not known yet.
    pub unresolved: Vec<Box<str>>,
    /// Where requests are counted that reached no endpoint.
    pub stats: Arc<RequestStats>,
    /// Connection limits and times.
    pub pool: PoolSettings,
    /// How many requests may be tried again at the same time.
    pub retry_limit: RetryLimit,
    /// The resources that had a say: the service first, then its policy.
    pub provenance: Vec<Provenance>,
    /// Hash over everything that the cluster is made of; equal for clusters that behave alike.
    pub fingerprint: u64,
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
    pub policy: Policy,
    /// Connection limits and times.
    pub pool: PoolSettings,
    /// How many requests may be tried again at the same time.
    pub retry_limit: RetryLimit,
    /// The resources that had a say: the service first, then its policy.
    pub provenance: Vec<Provenance>,
    /// DNS names of endpoints, with ports, whose addresses are not known yet.
    pub unresolved: Box<[Box<str>]>,
    /// Where requests are counted that reached no endpoint.
    pub stats: Arc<RequestStats>,
    /// Hash over everything that the cluster is made of; equal for clusters that behave alike.
    pub fingerprint: u64,
    endpoints: Box<[Endpoint]>,
    balancer: Option<Balancer>,
}

impl Cluster {
    /// Builds the balancer's tables for these parts.
    pub fn build(parts: Parts) -> Self {
        let weights: Vec<u32> = parts
            .endpoints
            .iter()
            .map(|endpoint| endpoint.weight)
            .collect();
        Self {
            balancer: Balancer::build(parts.policy, &weights),
            state: parts.state,
            host: parts.host,
            protocol: parts.protocol,
            policy: parts.policy,
            pool: parts.pool,
            retry_limit: parts.retry_limit,
            provenance: parts.provenance,
            unresolved: parts.unresolved.into(),
            stats: parts.stats,
            fingerprint: parts.fingerprint,
            endpoints: parts.endpoints.into_boxed_slice(),
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

    /// The priority of an endpoint, 0 first: all endpoints have the same, as without outlier detection they must.
    pub fn priority(&self, _endpoint: EndpointIdx) -> u32 {
        0
    }

    /// How many priorities there are.
    pub fn priorities(&self) -> usize {
        1
    }

    /// Picks an endpoint for one attempt; `None` when there is none that may be used.
    #[inline]
    pub fn pick(&self, rng: &mut impl Rng) -> Option<EndpointIdx> {
        let balancer = self.balancer.as_ref()?;
        Some(balancer.pick(
            |index| &self.endpoints[index.0 as usize].state,
            &self.state.cursor,
            rng,
        ))
    }

    /// Probability that each endpoint is picked next while all are equally busy, in endpoint order.
    pub fn shares(&self) -> Vec<f64> {
        let weights: Vec<u32> = self
            .endpoints
            .iter()
            .map(|endpoint| endpoint.weight)
            .collect();
        Balancer::shares(&weights)
    }
}
