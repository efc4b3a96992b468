//! ServiceImport, checked.

use std::net::IpAddr;
use std::sync::Arc;

use super::ClusterKey;
use crate::resource::core::{Host, Protocol, SessionAffinity, TrafficDistribution};
use crate::span::Line;

/// A checked ServiceImport: where other clusters serve the service with the same namespace and name. Those of
/// `multicluster.x-k8s.io` name no endpoints.
#[derive(Clone, Debug, Default)]
pub struct ServiceImport {
    /// In the order in which they were written. Names are unique, and so are (protocol, number) pairs.
    pub ports: Vec<ImportPort>,
    /// The addresses by which clients select the service: at most one of each family.
    pub vips: Vec<IpAddr>,
    /// Whether it has such addresses.
    pub import_type: ImportType,
    /// Whether requests of one client stay with one endpoint.
    pub session_affinity: SessionAffinity,
    /// Which endpoints are preferred.
    pub traffic_distribution: TrafficDistribution,
    /// The identity of the workloads behind it, when that was written.
    pub service_account: Option<ServiceAccount>,
    /// `status.clusters`: where it came from, for information.
    pub sources: Vec<SourceStatus>,
}

/// Whether an imported service has an address of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImportType {
    /// It has.
    #[default]
    ClusterSetIp,
    /// It has none: its endpoints are addressed one by one.
    Headless,
}

/// The identity of workloads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServiceAccount {
    /// Any: `*`.
    Any,
    /// The service account of that name.
    Named(Arc<str>),
}

/// A port of an imported service.
#[derive(Clone, Debug)]
pub struct ImportPort {
    /// Its name; empty if the only port has none.
    pub name: Arc<str>,
    /// The port that clients use.
    pub port: u16,
    /// The transport protocol.
    pub protocol: Protocol,
    /// What the port speaks, when that was written; otherwise the name's prefix tells.
    pub app_protocol: Option<Arc<str>>,
    /// Where it is served; may be empty.
    pub endpoints: Vec<ImportEndpoint>,
    /// Where it was written.
    pub line: Line,
}

/// An endpoint of an imported service: a gateway of its cluster, or a workload.
#[derive(Clone, Debug)]
pub struct ImportEndpoint {
    /// The cluster that owns it.
    pub cluster: ClusterKey,
    /// How it is reached.
    pub target: ImportTarget,
    /// Where it was written.
    pub line: Line,
}

/// How an imported endpoint is reached.
#[derive(Clone, Debug)]
pub struct ImportTarget {
    /// Where to connect to: `ip`, or `host` if that is empty.
    pub address: Host,
    /// `host`: the name for SNI and certificates; never the request's host.
    pub server_name: Option<Arc<str>>,
    /// The port there.
    pub port: u16,
    /// What is put in front of a request's path: empty, or with a leading and without a trailing slash.
    pub path_prefix: Arc<str>,
}

/// Where an imported service came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceStatus {
    /// The cluster's name.
    pub cluster: Arc<str>,
    /// Addresses of its cluster, or URLs of another one.
    pub addresses: Vec<Arc<str>>,
}
