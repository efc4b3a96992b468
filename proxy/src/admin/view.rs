//! Data that the pages show, as plain structures that serialize to JSON.
//!
//! Uses nothing. Field names are part of the admin interface.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Readiness for traffic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The proxy accepts traffic.
    Ready,
    /// The proxy is not ready yet.
    Starting {
        /// Condition that the proxy waits for.
        waiting_for: String,
    },
    /// The proxy drains: requests in flight finish, new ones should go elsewhere.
    Draining,
}

/// Certificates of one source: a server certificate with its chain, or the authorities that verify clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CertificateView {
    /// File or Secret of the certificates.
    pub source: String,
    /// Authorities in use.
    pub ca_cert: Vec<CertificateFacts>,
    /// Certificate chain in effect.
    pub cert_chain: Vec<CertificateFacts>,
    /// Whether the newest version is rejected and the last good version is used.
    pub last_good_version_in_use: bool,
    /// Errors of the newest version.
    pub errors: Vec<String>,
}

/// Fields of a certificate. Never includes a key.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CertificateFacts {
    /// File or Secret of the certificate.
    pub path: String,
    /// Serial number in hexadecimal digits.
    pub serial_number: String,
    /// Subject of the certificate.
    pub subject: String,
    /// Issuer of the certificate.
    pub issuer: String,
    /// Names that the certificate is valid for.
    pub subject_alt_names: Vec<SubjectAltName>,
    /// Whole days until expiration; 0 once the certificate has expired.
    pub days_until_expiration: String,
    /// Start of the validity period.
    pub valid_from: String,
    /// End of the validity period.
    pub expiration_time: String,
}

/// Subject alternative name, under the key that names its type.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SubjectAltName {
    /// A DNS name.
    Dns(String),
    /// A mail address.
    Email(String),
    /// An IP address.
    IpAddress(String),
    /// A URI.
    Uri(String),
}

/// A cluster: a group of endpoints that one policy balances.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ClusterView {
    /// Name, as in `outbound|80||a.default.svc.cluster.local`.
    pub name: String,
    /// Load balancer, as DestinationRule spells it.
    pub load_balancer: String,
    /// Resources that the cluster was made from, as `Kind/namespace/name (file:line)`.
    pub sources: Vec<String>,
    /// Protocol of the connections to its endpoints.
    pub protocol: String,
    /// Active health check of its endpoints, if they have one.
    pub health_check: Option<String>,
    /// Limits on connections, requests, retries and session affinity entries, with their current values.
    pub limits: Vec<LimitView>,
    /// TLS to its endpoints: the mode, the SNI, and what is verified.
    pub tls: Option<String>,
    /// Priorities, first to last.
    pub priorities: Vec<PriorityView>,
    /// Kubernetes clusters that serve the service, where a policy distributes its traffic among several.
    pub member_clusters: Vec<MemberView>,
    /// Reason why no Kubernetes cluster serves the service, if none does.
    pub no_cluster_reason: Option<String>,
    /// Resource whose change made the proxy rebuild the cluster.
    pub rebuilt_because: Option<String>,
    /// Endpoints; where several Kubernetes clusters serve the service, those of the local cluster.
    pub endpoints: Vec<EndpointView>,
    /// DNS names of endpoints, with ports, that are not resolved yet.
    pub unresolved_hosts: Vec<String>,
}

/// Limit and its current value.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LimitView {
    /// `connections`, `pending_requests`, `requests`, `retries` or `session_affinity_entries`.
    pub name: String,
    /// Current value, over all workers.
    pub active: u64,
    /// Limit; `None` for no limit.
    pub max: Option<u32>,
}

/// Kubernetes cluster that serves a service.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MemberView {
    /// Key of the Kubernetes cluster: `region/zone/group/cluster`.
    pub cluster_key: String,
    /// Name of the upstream cluster with its endpoints.
    pub upstream_cluster: String,
    /// Failover tier, 0 first.
    pub tier: u8,
    /// Weight relative to the sum over its tier.
    pub weight: u32,
    /// Share of the traffic that the cluster gets now.
    pub share: f64,
    /// Whether the cluster has an available endpoint.
    pub available: bool,
}

/// Priority of a cluster's endpoints.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PriorityView {
    /// Share of the traffic, in percent.
    pub load: u8,
    /// Number of available endpoints.
    pub healthy: u32,
    /// Number of endpoints.
    pub total: u32,
    /// Whether the priority is in panic mode: all endpoints are used, healthy or not.
    pub panic_mode: bool,
    /// Localities with their weights, where traffic is distributed by locality.
    pub localities: Vec<(String, u32)>,
}

/// Endpoint of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EndpointView {
    /// Address and port.
    pub address: String,
    /// Weight relative to the other endpoints.
    pub weight: u32,
    /// Region, zone and sub-zone, joined by `/`; empty when unknown.
    pub locality: String,
    /// Priority, 0 first.
    pub priority: u32,
    /// Share of the cluster's traffic while all endpoints are equally busy.
    pub share: f64,
    /// Reason why the endpoint is not used; `None` if it is.
    pub unavailable_reason: Option<String>,
    /// Progress of the slow start, while the endpoint has less than its weight.
    pub warmup: Option<String>,
    /// Results of the active health checks; `None` before the first one, and without health checks.
    pub last_health_check: Option<String>,
    /// Number of ejections.
    pub ejections: u32,
    /// Requests in flight from this proxy.
    pub rq_active: u64,
    /// Requests that this proxy has sent.
    pub rq_total: u64,
    /// Labels of the endpoint.
    pub labels: BTreeMap<String, String>,
}

/// Health event of an endpoint or a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventView {
    /// Sequence number, from 0.
    pub number: u64,
    /// Age in seconds.
    pub seconds_ago: f64,
    /// Name of the cluster.
    pub cluster: String,
    /// Address of the endpoint, if the event is about one.
    pub endpoint: Option<String>,
    /// Name of the kind of event, from [`traffic::registry::EventKind::name`]: `ejected`, `unejected` and so on.
    pub kind: String,
    /// Description, with the numbers that led to the event.
    pub message: String,
}

/// A listener.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ListenerView {
    /// Name in metrics: the configured address and port.
    pub name: String,
    /// Address and port of the socket.
    pub address: String,
    /// Protocol as Gateway spells it (`HTTP`, `HTTP2`, ...), separated by commas if the servers differ; empty once the
    /// listener has left the configuration.
    pub protocol: String,
    /// Whether the listener accepts connections.
    pub state: ListenerState,
    /// Reason why a failed listener does not accept.
    pub error: Option<String>,
    /// Open connections.
    pub cx_active: u64,
    /// Hosts that the listener serves.
    pub hosts: Vec<String>,
    /// Resources that the listener was made from, as `Kind/namespace/name (file:line)`.
    pub sources: Vec<String>,
    /// Mutual TLS that PeerAuthentications require; only for a listener of a sidecar's workload.
    pub mutual_tls: Option<MutualTlsView>,
}

/// Mutual TLS mode of a port of the workload, and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MutualTlsView {
    /// `STRICT`, `PERMISSIVE` or `DISABLE`.
    pub mode: &'static str,
    /// PeerAuthentication that sets the mode, as `Kind/namespace/name (file:line)`; `None` for the default of the mesh.
    pub source: Option<String>,
    /// Whether the proxy has a certificate; without one it serves no mutual TLS.
    pub has_certificate: bool,
}

/// Whether a listener accepts connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ListenerState {
    /// Accepts no new connections and finishes the open ones.
    Draining,
    /// A worker could not open its port.
    Failed,
    /// Accepts connections.
    #[default]
    Open,
    /// Not every worker has opened the port yet.
    Starting,
}

impl ListenerState {
    /// Returns the state as the text page prints it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draining => "draining",
            Self::Failed => "failed",
            Self::Open => "open",
            Self::Starting => "starting",
        }
    }
}

/// Sources with their revisions in effect, and the rejected resources.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SourcesView {
    /// State of each source.
    pub applied: Vec<SourceView>,
    /// Resources whose newest version is rejected.
    pub rejected: Vec<QuarantineView>,
}

/// State of one source that is in effect. Times are in UTC (RFC 3339).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SourceView {
    /// `files`, or the URL of a server.
    pub source: String,
    /// Newest revision of the server that is in effect.
    pub revision: Option<String>,
    /// Time when the last change was received.
    pub received: String,
    /// Time when the last change took effect.
    pub applied: String,
    /// Seconds between the two.
    pub took_seconds: f64,
    /// Saved state that is in effect because the server has not answered yet.
    pub restored: Option<RestoredView>,
}

/// State that was read from disk (`--state`).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RestoredView {
    /// Time when the state was saved.
    pub saved: String,
    /// Age of the state in seconds.
    pub age_seconds: u64,
}

/// Resource whose newest version is rejected.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QuarantineView {
    /// `Kind/namespace/name`.
    pub object: String,
    /// Location of the rejected version, as `file:line:column`.
    pub location: String,
    /// Errors of the rejected version.
    pub errors: Vec<String>,
    /// Whether the last good version is used; if not, the resource has no effect.
    pub last_good_version_in_use: bool,
}

/// Finding about the configuration, as `strait check` prints it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FindingView {
    /// `error`, `warning` or `note`.
    pub severity: &'static str,
    /// Code, which docs/diagnostics.md explains.
    pub code: &'static str,
    /// `Kind/namespace/name`; `None` for a finding about a file.
    pub object: Option<String>,
    /// Location, as `file:line:column`.
    pub location: String,
    /// Path of the field; empty for the whole object.
    pub field: String,
    /// Description of the problem.
    pub message: String,
    /// Suggested fix.
    pub help: Option<String>,
}
