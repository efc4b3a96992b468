//! ServiceImport, checked.

use std::net::IpAddr;
use std::sync::Arc;

use super::ClusterKey;
use crate::resource::core::{Host, Protocol, SessionAffinity, TrafficDistribution};
use crate::span::Line;

/// Checked ServiceImport: endpoints in other clusters for the service with the same namespace and name. A ServiceImport
/// of `multicluster.x-k8s.io` has no endpoints.
#[derive(Clone, Debug, Default)]
pub struct ServiceImport {
    /// Ports in document order. Names are unique, and so are (protocol, number) pairs.
    pub ports: Vec<ImportPort>,
    /// Virtual IP addresses of the service: at most one of each family.
    pub vips: Vec<IpAddr>,
    /// Type of the import: with virtual IP addresses or headless.
    pub import_type: ImportType,
    /// Session affinity: whether requests of one client go to one endpoint.
    pub session_affinity: SessionAffinity,
    /// Preference between endpoints.
    pub traffic_distribution: TrafficDistribution,
    /// Service account of the workloads, if set.
    pub service_account: Option<ServiceAccount>,
    /// Clusters that the import comes from (`status.clusters`), for information.
    pub sources: Vec<SourceStatus>,
}

/// Type of an imported service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImportType {
    /// `ClusterSetIP`: the service has a virtual IP address.
    #[default]
    ClusterSetIp,
    /// `Headless`: clients address endpoints one by one.
    Headless,
}

/// Service account of workloads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceAccount {
    /// Any service account: `*`.
    Any,
    /// Service account by name.
    Named(Arc<str>),
}

/// Port of an imported service.
#[derive(Clone, Debug)]
pub struct ImportPort {
    /// Name of the port; empty if the only port has no name.
    pub name: Arc<str>,
    /// Port number that clients use.
    pub port: u16,
    /// Transport protocol.
    pub protocol: Protocol,
    /// Application protocol (`appProtocol`), if set; otherwise the prefix of the port's name decides.
    pub app_protocol: Option<Arc<str>>,
    /// Endpoints of the port; may be empty.
    pub endpoints: Vec<ImportEndpoint>,
    /// Source line within the document.
    pub line: Line,
}

/// Endpoint of an imported service: a gateway of its cluster, or a workload.
#[derive(Clone, Debug)]
pub struct ImportEndpoint {
    /// Cluster of the endpoint.
    pub cluster: ClusterKey,
    /// Address, port and path prefix of the endpoint.
    pub target: ImportTarget,
    /// Source line within the document.
    pub line: Line,
}

/// Address, port and path prefix of an imported endpoint.
#[derive(Clone, Debug)]
pub struct ImportTarget {
    /// Address to connect to: `ip`, or `host` if `ip` is empty.
    pub address: Host,
    /// Name for SNI and certificate verification (`host`); never the request's host.
    pub server_name: Option<Arc<str>>,
    /// Port to connect to.
    pub port: u16,
    /// Prefix added to the request path: empty, or with a leading and without a trailing slash.
    pub path_prefix: Arc<str>,
}

/// Cluster that an imported service comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceStatus {
    /// Name of the cluster.
    pub cluster: Arc<str>,
    /// IP addresses in the local cluster, or URLs of another cluster.
    pub addresses: Vec<Arc<str>>,
}
