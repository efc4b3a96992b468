//! ServiceImport as written.

use serde::Deserialize;

use crate::raw::Field;
use crate::raw::core::SessionAffinityConfig;

/// ServiceImport as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceImport {
    /// Ports of the service with their endpoints in other clusters.
    pub spec: Field<ServiceImportSpec>,
    /// Clusters that export the service, for information.
    pub status: Field<ServiceImportStatus>,
}

/// Ports of the service with their endpoints in other clusters (`spec`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceImportSpec {
    /// Ports of the service.
    pub ports: Field<Vec<Field<ServicePort>>>,
    /// Virtual IP addresses of the service: at most one, or one of each family in the MCS API.
    pub ips: Field<Vec<Field<String>>>,
    /// Type: `ClusterSetIP` (default), or `Headless` without a virtual IP address.
    #[serde(rename = "type")]
    pub import_type: Field<String>,
    /// Session affinity: `None` (default) or `ClientIP`.
    pub session_affinity: Field<String>,
    /// Settings of session affinity.
    pub session_affinity_config: Field<SessionAffinityConfig>,
    /// Service account of the workloads; `*` for any.
    pub service_account_name: Field<String>,
}

/// Port of an imported service: an entry of `ports`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// Name of the port; may be empty for a single port.
    pub name: Field<String>,
    /// Transport protocol. Default: `TCP`.
    pub protocol: Field<String>,
    /// Application protocol. Default: by the prefix of the port's name.
    pub app_protocol: Field<String>,
    /// Port number that clients use; required.
    pub port: Field<i64>,
    /// Endpoints of the port in other clusters.
    pub endpoints: Field<Vec<Field<Endpoint>>>,
}

/// Endpoint of an imported service, a gateway or a workload: an entry of `endpoints`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Endpoint {
    /// Key of the endpoint's cluster, `region/zone/group/name`; required.
    pub cluster_key: Field<String>,
    /// Address, port and path prefix of the endpoint.
    pub target: Field<Target>,
}

/// Address, port and path prefix of an endpoint (`target`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Target {
    /// Name for SNI and certificate verification; the address to connect to if `ip` is empty.
    pub host: Field<String>,
    /// IP address to connect to. Default: `host`.
    pub ip: Field<String>,
    /// Port to connect to; required.
    pub port: Field<i64>,
    /// Prefix that is added to the request's path. Default: empty.
    pub path: Field<String>,
}

/// Clusters that export the service (`status`), for information.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceImportStatus {
    /// Clusters that export the service.
    pub clusters: Field<Vec<Field<ClusterStatus>>>,
}

/// Cluster that exports the service: an entry of `clusters`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterStatus {
    /// Name of the cluster.
    pub cluster: Field<String>,
    /// IP addresses in the local cluster, or URLs of another cluster.
    pub addresses: Field<Vec<Field<String>>>,
}
