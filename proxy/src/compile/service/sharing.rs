//! Distribution of a service's traffic among Kubernetes clusters, and limits on the clusters that may use it.

use std::sync::Arc;

use config_loader::resource::flomesh::ClusterBalancing;

/// Distribution of a service's traffic among members.
///
/// Source: GlobalTrafficPolicy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::compile) struct Sharing {
    /// Mode of distribution.
    pub balancing: ClusterBalancing,
    /// Keys of members with their weights, in the order of the policy.
    pub targets: Vec<(Arc<str>, u32)>,
    /// Whether each backup is a tier of its own, in the order of the policy.
    ///
    /// Source: annotation `multicluster.flomesh.io/failover-order: ordered`.
    pub ordered: bool,
    /// Whether the policy was rejected without a last good version.
    pub is_refused: bool,
}

/// Clusters that a service is exposed to, and clusters whose endpoints may serve it.
///
/// Source: MultiClusterService.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::compile) struct Exposure {
    /// Whether only gateways at the edge may use it.
    pub edge_only: bool,
    /// Ports that are exposed, by number and, if it has one, name; empty for all.
    pub ports: Vec<(u16, Option<Arc<str>>)>,
    /// Keys of the clusters whose endpoints may serve; `None` for all.
    pub providers: Option<Vec<Arc<str>>>,
    /// Keys of the clusters whose proxies may use endpoints of others; `None` for all.
    pub consumers: Option<Vec<Arc<str>>>,
}
