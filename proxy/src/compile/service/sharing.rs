//! How Kubernetes clusters share the traffic of a service, and which of them may use it.

use std::sync::Arc;

use config_loader::resource::flomesh::ClusterBalancing;

/// How members share the traffic of a service.
///
/// Source: GlobalTrafficPolicy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::compile) struct Sharing {
    /// In which way.
    pub balancing: ClusterBalancing,
    /// Keys of members with their weights, in the order of the policy.
    pub targets: Vec<(Arc<str>, u32)>,
    /// Whether each backup is a tier of its own, in their order.
    ///
    /// Source: annotation `multicluster.flomesh.io/failover-order: ordered`.
    pub ordered: bool,
    /// Whether it represents a policy that is refused.
    pub is_refused: bool,
}

/// The clusters that a service is exposed to, and whose endpoints may serve it.
///
/// Source: MultiClusterService.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::compile) struct Exposure {
    /// Whether it is for gateways at the edge only.
    pub edge_only: bool,
    /// Ports that are exposed, by number and, if it has one, name; empty for all.
    pub ports: Vec<(u16, Option<Arc<str>>)>,
    /// Keys of the clusters whose endpoints may serve; none for all.
    pub providers: Option<Vec<Arc<str>>>,
    /// Keys of the clusters whose proxies may use endpoints of others; none for all.
    pub consumers: Option<Vec<Arc<str>>>,
}
