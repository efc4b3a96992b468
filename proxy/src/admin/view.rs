//! What pages show, as plain data that serialises to JSON.
//!
//! Uses nothing. Field names are part of the admin interface.

use std::collections::BTreeMap;

use serde::Serialize;

/// Whether traffic should be sent to this proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It should.
    Ready,
    /// Not yet.
    Starting {
        /// What it waits for.
        waiting_for: String,
    },
    /// Not any more: running requests finish, new ones should go elsewhere.
    Draining,
}

/// A cluster: a group of endpoints that one policy balances.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClusterView {
    /// Name, as in `outbound|80||a.default.svc.cluster.local`.
    pub name: String,
    /// Balancer, as DestinationRule spells it.
    pub balancer: String,
    /// Resources that it was made from, as `Kind/namespace/name (file:line)`.
    pub sources: Vec<String>,
    /// Its endpoints.
    pub endpoints: Vec<EndpointView>,
}

/// An endpoint of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EndpointView {
    /// Address and port.
    pub address: String,
    /// Share of the traffic relative to the others'.
    pub weight: u32,
    /// Failover tier, 0 first.
    pub priority: u32,
    /// Region, zone and sub-zone, joined by `/`; empty when unknown.
    pub locality: String,
    /// Kubernetes cluster; empty when unknown.
    pub cluster: String,
    /// Whether it takes traffic.
    pub health: EndpointHealth,
    /// Requests that it is working on for this proxy.
    pub active_requests: u64,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// Whether an endpoint takes traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EndpointHealth {
    /// Outlier detection took it out.
    Ejected,
    /// It does.
    #[default]
    Healthy,
    /// Health checks or its source say that it does not.
    Unhealthy,
}

impl EndpointHealth {
    /// As the text page prints it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ejected => "ejected",
            Self::Healthy => "healthy",
            Self::Unhealthy => "unhealthy",
        }
    }
}

/// A listener.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ListenerView {
    /// Name.
    pub name: String,
    /// Address and port.
    pub address: String,
    /// `HTTP`, `HTTP2`, ... as Gateway spells it.
    pub protocol: String,
    /// Whether it accepts.
    pub state: ListenerState,
    /// Why it does not, for a failed one.
    pub error: Option<String>,
    /// Connections that are open.
    pub active_connections: u64,
    /// Hosts that it serves.
    pub hosts: Vec<String>,
    /// Resources that it was made from, as `Kind/namespace/name (file:line)`.
    pub sources: Vec<String>,
}

/// Whether a listener accepts connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ListenerState {
    /// It takes no new connections and finishes the ones it has.
    Draining,
    /// Its port could not be opened.
    Failed,
    /// It does.
    #[default]
    Open,
}

impl ListenerState {
    /// As the text page prints it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draining => "draining",
            Self::Failed => "failed",
            Self::Open => "open",
        }
    }
}

/// A certificate in use; never its key.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CertificateView {
    /// The Secret or file that it came from.
    pub source: String,
    /// Subject alternative names.
    pub names: Vec<String>,
    /// Serial number in hexadecimal.
    pub serial: String,
    /// When it expires, ISO 8601.
    pub expires: String,
}

/// A resource whose newest version was refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QuarantineView {
    /// `Kind/namespace/name`.
    pub object: String,
    /// File and line of the refused version, as `file:line`.
    pub place: String,
    /// What is wrong with it.
    pub errors: Vec<String>,
    /// Whether an earlier version is in force instead; if not, the resource has no effect.
    pub last_good_in_force: bool,
}
