//! The labels of Istio's standard metrics that are known when configuration is compiled.
//!
//! Imports nothing. Labels that only a request knows (code, flags, gRPC status, protocol, security) are in `requests`.

use std::sync::Arc;

/// One label set of the request metrics: equal sets share one [`super::RequestStats`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestLabels {
    /// Side of the traffic that reports.
    pub reporter: Reporter,
    /// Workload that sends the requests.
    pub source: Arc<Workload>,
    /// Workload that serves the requests.
    pub destination: Arc<Workload>,
    /// Service that the requests are for.
    pub service: Arc<Service>,
}

/// Label `reporter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reporter {
    /// The receiving side: a sidecar's inbound listener.
    Destination,
    /// The sending side: a gateway, or a sidecar's outbound listener.
    Source,
}

impl Reporter {
    /// The label's value.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Destination => "destination",
            Self::Source => "source",
        }
    }
}

/// Label value for unknown data.
pub const UNKNOWN: &str = "unknown";

/// The eight labels of a source or destination workload; each is `unknown` by default.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Workload {
    /// Name of the Deployment or other controller.
    pub name: Arc<str>,
    /// Namespace.
    pub namespace: Arc<str>,
    /// SPIFFE id.
    pub principal: Arc<str>,
    /// Label `app`.
    pub app: Arc<str>,
    /// Label `version`.
    pub version: Arc<str>,
    /// Kubernetes cluster.
    pub cluster: Arc<str>,
    /// Label `service.istio.io/canonical-name`, else `app`, else the name.
    pub canonical_service: Arc<str>,
    /// Label `service.istio.io/canonical-revision`, else `version`, else `latest`.
    pub canonical_revision: Arc<str>,
}

impl Workload {
    /// Values in the order of [`super::names::label::SOURCE`] and [`super::names::label::DESTINATION`].
    pub fn values(&self) -> [&str; 8] {
        [
            &self.name,
            &self.namespace,
            &self.principal,
            &self.app,
            &self.version,
            &self.cluster,
            &self.canonical_service,
            &self.canonical_revision,
        ]
    }
}

impl Default for Workload {
    fn default() -> Self {
        let unknown: Arc<str> = UNKNOWN.into();
        Self {
            name: unknown.clone(),
            namespace: unknown.clone(),
            principal: unknown.clone(),
            app: unknown.clone(),
            version: unknown.clone(),
            cluster: unknown.clone(),
            canonical_service: unknown.clone(),
            canonical_revision: unknown,
        }
    }
}

/// The three labels of the destination service; each is `unknown` by default, as for a request without a route.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Service {
    /// Label `destination_service`: the host.
    pub host: Arc<str>,
    /// Label `destination_service_name`.
    pub name: Arc<str>,
    /// Label `destination_service_namespace`.
    pub namespace: Arc<str>,
}

impl Default for Service {
    fn default() -> Self {
        let unknown: Arc<str> = UNKNOWN.into();
        Self {
            host: unknown.clone(),
            name: unknown.clone(),
            namespace: unknown,
        }
    }
}
