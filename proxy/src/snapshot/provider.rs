//! Services that help to decide about requests.

use std::sync::Arc;

use http::HeaderValue;

use traffic::authz::ExtAuthz;
use traffic::registry::ClusterId;

/// Provider of external authorization.
#[derive(Clone, Debug)]
pub struct Provider {
    /// Settings from the mesh configuration.
    pub settings: Arc<ExtAuthz>,
    /// The service to ask.
    pub service: ServiceCluster,
}

/// Service that the proxy calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceCluster {
    /// Number of its cluster. The snapshot has no cluster with it if the service is unknown.
    pub cluster: ClusterId,
    /// Authority of calls: the host of the service.
    pub authority: HeaderValue,
}
