//! MultiClusterService, checked.

use std::sync::Arc;

use crate::resource::core::{Condition, Ingress};
use crate::span::Line;

/// A checked MultiClusterService: which clusters may serve and use the service with the same namespace and name.
/// It says nothing about how they share the traffic.
#[derive(Clone, Debug, Default)]
pub struct MultiClusterService {
    /// The clusters that the service is exposed to.
    pub exposure: Exposure,
    /// Where that was written.
    pub exposure_line: Line,
    /// The exposed ports; empty for all.
    pub ports: Vec<ExposurePort>,
    /// The names of the clusters whose endpoints may serve; empty for all.
    pub providers: Vec<NamedCluster>,
    /// The names of the clusters whose proxies may use endpoints of others; empty for all.
    pub consumers: Vec<NamedCluster>,
    /// `status.conditions`
    pub conditions: Vec<Condition>,
    /// `status.loadBalancer.ingress`: entry points from outside.
    pub ingress: Vec<Ingress>,
}

/// A cluster by its bare name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedCluster {
    /// The name.
    pub name: Arc<str>,
    /// The field that it was written in, such as `spec.providerClusters[0].name`.
    pub field: Arc<str>,
    /// Where it was written.
    pub line: Line,
}

/// The clusters that a service is exposed to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exposure {
    /// To the clusters.
    #[default]
    CrossCluster,
    /// To clients outside them, by gateways at the edge.
    LoadBalancer,
}

impl Exposure {
    /// As `types` names it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Exposure::CrossCluster => "CrossCluster",
            Exposure::LoadBalancer => "LoadBalancer",
        }
    }
}

/// A port that is exposed.
#[derive(Clone, Debug)]
pub struct ExposurePort {
    /// The number of the service's port.
    pub port: u16,
    /// Its name, when that must be equal too.
    pub name: Option<Arc<str>>,
    /// Where it was written.
    pub line: Line,
}
