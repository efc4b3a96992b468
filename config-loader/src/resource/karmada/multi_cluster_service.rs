//! MultiClusterService, checked.

use std::sync::Arc;

use crate::resource::core::{Condition, Ingress};
use crate::span::Line;

/// Checked MultiClusterService: the clusters that may serve and use the service with the same namespace and name. It
/// does not configure load distribution.
#[derive(Clone, Debug, Default)]
pub struct MultiClusterService {
    /// Scope in which the service is exposed.
    pub exposure: Exposure,
    /// Source line of the exposure type.
    pub exposure_line: Line,
    /// Exposed ports; empty for all.
    pub ports: Vec<ExposurePort>,
    /// Clusters whose endpoints may serve; empty for all.
    pub providers: Vec<NamedCluster>,
    /// Clusters whose proxies may use endpoints of other clusters; empty for all.
    pub consumers: Vec<NamedCluster>,
    /// Conditions (`status.conditions`).
    pub conditions: Vec<Condition>,
    /// Load balancer addresses for external clients (`status.loadBalancer.ingress`).
    pub ingress: Vec<Ingress>,
}

/// Cluster name without the other parts of its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCluster {
    /// Name of the cluster.
    pub name: Arc<str>,
    /// Path of the field with the name, such as `spec.providerClusters[0].name`.
    pub field: Arc<str>,
    /// Source line within the document.
    pub line: Line,
}

/// Scope in which a service is exposed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exposure {
    /// Exposed to the member clusters.
    #[default]
    CrossCluster,
    /// Exposed to external clients through gateways at the edge.
    LoadBalancer,
}

impl Exposure {
    /// Returns the name as written in `types`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Exposure::CrossCluster => "CrossCluster",
            Exposure::LoadBalancer => "LoadBalancer",
        }
    }
}

/// Exposed port of a service.
#[derive(Clone, Debug)]
pub struct ExposurePort {
    /// Port number of the service.
    pub port: u16,
    /// Port name, if it must also match.
    pub name: Option<Arc<str>>,
    /// Source line within the document.
    pub line: Line,
}
