//! GlobalTrafficPolicy, checked.

use super::ClusterKey;
use crate::span::Line;

/// Checked GlobalTrafficPolicy: load distribution between clusters for the service with the same namespace and name.
#[derive(Clone, Debug, Default)]
pub struct GlobalTrafficPolicy {
    /// Load distribution mode.
    pub balancing: ClusterBalancing,
    /// Clusters that the policy names, each once.
    pub targets: Vec<TrafficTarget>,
    /// Whether each backup cluster of a FailOver is a tier of its own, in document order.
    ///
    /// Source: annotation [`GlobalTrafficPolicy::FAILOVER_ORDER`], `ordered`.
    pub is_ordered: bool,
}

impl GlobalTrafficPolicy {
    /// Annotation that makes each backup cluster of a FailOver a tier of its own, in document order.
    pub const FAILOVER_ORDER: &'static str = "multicluster.flomesh.io/failover-order";
}

/// Load distribution of a service between clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterBalancing {
    /// All clusters at once, by weight.
    ActiveActive,
    /// Local cluster while it has healthy endpoints, then the other clusters.
    FailOver,
    /// Local cluster only.
    #[default]
    Locality,
}

/// Cluster that a policy names.
#[derive(Clone, Debug)]
pub struct TrafficTarget {
    /// Full name of the cluster.
    pub cluster: ClusterKey,
    /// Weight relative to the sum of all weights; 0 drains the cluster.
    ///
    /// Default: [`TrafficTarget::WEIGHT_DEFAULT`].
    pub weight: u32,
    /// Source line within the document.
    pub line: Line,
}

impl TrafficTarget {
    /// Default weight of a cluster.
    pub const WEIGHT_DEFAULT: u32 = 100;
}
