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

/// Certificates of one source: a server's own with its chain, or authorities of clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CertificateView {
    /// The file or secret that they come from.
    pub source: String,
    /// Authorities that are in use.
    pub ca_cert: Vec<CertificateFacts>,
    /// The certificate that is in effect.
    pub cert_chain: Vec<CertificateFacts>,
    /// Whether the newest version is rejected and an older one is used.
    pub last_good_version_in_use: bool,
    /// What is wrong with the newest version.
    pub errors: Vec<String>,
}

/// What a certificate says. Never anything of a key.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CertificateFacts {
    /// The file or secret that it comes from.
    pub path: String,
    /// Serial number in hexadecimal digits.
    pub serial_number: String,
    /// Subject of the certificate.
    pub subject: String,
    /// Issuer of the certificate.
    pub issuer: String,
    /// The names that it is for.
    pub subject_alt_names: Vec<SubjectAltName>,
    /// Whole days that are left; 0 once it has expired.
    pub days_until_expiration: String,
    /// Beginning of its validity.
    pub valid_from: String,
    /// End of its validity.
    pub expiration_time: String,
}

/// A name that a certificate is for, under the key that says what it is.
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
    /// Resources that it was made from, as `Kind/namespace/name (file:line)`.
    pub sources: Vec<String>,
    /// What its connections speak.
    pub protocol: String,
    /// How its endpoints are health-checked, if they are.
    pub health_check: Option<String>,
    /// Connections, requests, retries and clients that are remembered, with their limits.
    pub limits: Vec<LimitView>,
    /// TLS to its endpoints: the mode, the SNI, and what is verified.
    pub tls: Option<String>,
    /// Priorities, first to last.
    pub priorities: Vec<PriorityView>,
    /// The Kubernetes clusters that serve it, where a policy distributes its traffic among several.
    pub member_clusters: Vec<MemberView>,
    /// Why no Kubernetes cluster serves it, if none does.
    pub no_cluster_reason: Option<String>,
    /// The resource whose change made the proxy build it again.
    pub rebuilt_because: Option<String>,
    /// Its endpoints; where several clusters serve it, those of the proxy's own.
    pub endpoints: Vec<EndpointView>,
    /// DNS names of endpoints, with ports, that are not resolved yet.
    pub unresolved_hosts: Vec<String>,
}

/// How much of something there is, and how much there may be.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LimitView {
    /// `connections`, `pending_requests`, `requests`, `retries` or `session_affinity_entries`.
    pub name: String,
    /// How much there is, over all workers.
    pub active: u64,
    /// How much there may be; none for no limit.
    pub max: Option<u32>,
}

/// One of the Kubernetes clusters that serve a service.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MemberView {
    /// Its key: `region/zone/group/cluster`.
    pub cluster_key: String,
    /// Name of the upstream cluster with its endpoints.
    pub upstream_cluster: String,
    /// Its tier, 0 first.
    pub tier: u8,
    /// Its part of the sum over its tier.
    pub weight: u32,
    /// Part of the traffic that it gets now.
    pub share: f64,
    /// Whether it has an endpoint that may be used.
    pub available: bool,
}

/// One priority of a cluster's endpoints.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PriorityView {
    /// Part of the traffic that it gets, in percent.
    pub load: u8,
    /// Endpoints that may be used.
    pub healthy: u32,
    /// All of its endpoints.
    pub total: u32,
    /// Whether it is in panic mode: all of its endpoints are used, healthy or not.
    pub panic_mode: bool,
    /// Its localities with their weights, where traffic is distributed by locality.
    pub localities: Vec<(String, u32)>,
}

/// An endpoint of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EndpointView {
    /// Address and port.
    pub address: String,
    /// Share of the traffic relative to the others'.
    pub weight: u32,
    /// Region, zone and sub-zone, joined by `/`; empty when unknown.
    pub locality: String,
    /// Its priority, 0 first.
    pub priority: u32,
    /// Part of the cluster's traffic that it gets while all are equally busy.
    pub share: f64,
    /// Why it is not used; none if it is.
    pub unavailable_reason: Option<String>,
    /// How warm it is, while it has less than its weight.
    pub warmup: Option<String>,
    /// Results of its active health checks; none before the first, and without health checks.
    pub last_health_check: Option<String>,
    /// Times that it was ejected.
    pub ejections: u32,
    /// Requests in flight to it from this proxy.
    pub rq_active: u64,
    /// Requests that this proxy has sent to it.
    pub rq_total: u64,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// Something that happened to the health of endpoints.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct EventView {
    /// Number of the event, from 0 on.
    pub number: u64,
    /// How long ago.
    pub seconds_ago: f64,
    /// Name of the cluster.
    pub cluster: String,
    /// Address of the endpoint, if it is about one.
    pub endpoint: Option<String>,
    /// As [`crate::registry::EventKind::name`] has it: `ejected`, `unejected` and so on.
    pub kind: String,
    /// What happened, with the numbers that led to it.
    pub message: String,
}

/// A listener.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ListenerView {
    /// Its name in metrics: the address and port of the configuration.
    pub name: String,
    /// Address and port that it accepts on.
    pub address: String,
    /// `HTTP`, `HTTP2`, ... as Gateway spells it; several, if its servers differ, with commas; empty for one that is
    /// gone from the configuration.
    pub protocol: String,
    /// Whether it accepts.
    pub state: ListenerState,
    /// Why it does not, for a failed one.
    pub error: Option<String>,
    /// Connections that are open.
    pub cx_active: u64,
    /// Hosts that it serves.
    pub hosts: Vec<String>,
    /// Resources that it was made from, as `Kind/namespace/name (file:line)`.
    pub sources: Vec<String>,
    /// What it accepts by PeerAuthentications; none for one that is not for a sidecar's workload.
    pub mutual_tls: Option<MutualTlsView>,
}

/// What a port of the workload accepts, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MutualTlsView {
    /// `STRICT`, `PERMISSIVE` or `DISABLE`.
    pub mode: &'static str,
    /// The PeerAuthentication that says so, as `Kind/namespace/name (file:line)`; none for the default of the mesh.
    pub source: Option<String>,
    /// Whether the proxy has a certificate, without which it speaks no mutual TLS.
    pub has_certificate: bool,
}

/// Whether a listener accepts connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ListenerState {
    /// It takes no new connections and finishes the ones it has.
    Draining,
    /// A worker could not open its port.
    Failed,
    /// It does.
    #[default]
    Open,
    /// Not every worker has opened its port yet.
    Starting,
}

impl ListenerState {
    /// As the text page prints it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Draining => "draining",
            Self::Failed => "failed",
            Self::Open => "open",
            Self::Starting => "starting",
        }
    }
}

/// How far sources are in effect, and what of them is not.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SourcesView {
    /// Each source.
    pub applied: Vec<SourceView>,
    /// Resources whose newest version is rejected.
    pub rejected: Vec<QuarantineView>,
}

/// How far one source is in effect. Times are in UTC, as RFC 3339 has them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SourceView {
    /// `files`, or the URL of a server.
    pub source: String,
    /// The newest revision of the server that is in effect.
    pub revision: Option<String>,
    /// When the last change was received.
    pub received: String,
    /// When it took effect.
    pub applied: String,
    /// Seconds from one to the other.
    pub took_seconds: f64,
    /// The saved state that is in effect because the server has not answered yet.
    pub restored: Option<RestoredView>,
}

/// A state that was read from disk (`--state`).
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RestoredView {
    /// When it was saved.
    pub saved: String,
    /// How long ago that is.
    pub age_seconds: u64,
}

/// A resource whose newest version is rejected.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QuarantineView {
    /// `Kind/namespace/name`.
    pub object: String,
    /// Location of the rejected version, as `file:line:column`.
    pub location: String,
    /// What is wrong with it.
    pub errors: Vec<String>,
    /// Whether its last good version is used; if not, the resource has no effect.
    pub last_good_version_in_use: bool,
}
