//! GlobalTrafficPolicy, checked.

use super::ClusterKey;
use crate::span::Line;

/// A checked GlobalTrafficPolicy: how clusters share the traffic of the service with the same namespace and name.
#[derive(Clone, Debug, Default)]
pub struct GlobalTrafficPolicy {
    /// How.
    pub balancing: ClusterBalancing,
    /// The clusters that the policy names, each once.
    pub targets: Vec<TrafficTarget>,
    /// Whether each backup of a FailOver is a tier of its own, in their order.
    ///
    /// Source: annotation [`GlobalTrafficPolicy::FAILOVER_ORDER`], `ordered`.
    pub is_ordered: bool,
}

impl GlobalTrafficPolicy {
    /// The annotation that puts the backups of a FailOver in the order in which they are written.
    pub const FAILOVER_ORDER: &'static str = "multicluster.flomesh.io/failover-order";
}

/// How clusters share the traffic of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterBalancing {
    /// All at once, by weight.
    ActiveActive,
    /// The local cluster while it has healthy endpoints, then the others.
    FailOver,
    /// The local cluster only.
    #[default]
    Locality,
}

/// A cluster that a policy names.
#[derive(Clone, Debug)]
pub struct TrafficTarget {
    /// The cluster.
    pub cluster: ClusterKey,
    /// Its share of the sum of all weights; 0 drains it.
    ///
    /// Default: [`TrafficTarget::WEIGHT_DEFAULT`].
    pub weight: u32,
    /// Where it was written.
    pub line: Line,
}

impl TrafficTarget {
    /// The weight of a cluster that has none.
    pub const WEIGHT_DEFAULT: u32 = 100;
}
