//! ServiceImport as written.

use serde::Deserialize;

use crate::raw::Field;
use crate::raw::core::{Condition, SessionAffinityConfig};

/// ServiceImport as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceImport {
    /// Ports and addresses of the service.
    pub spec: Field<ServiceImportSpec>,
    /// Clusters that export the service, and conditions.
    pub status: Field<ServiceImportStatus>,
}

/// Ports and addresses of the service (`spec`). Its endpoints are in EndpointSlices.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceImportSpec {
    /// Ports of the service.
    pub ports: Field<Vec<Field<ServicePort>>>,
    /// Virtual IP addresses of the service.
    pub ips: Field<Vec<Field<String>>>,
    /// Type: `ClusterSetIP` (default), or `Headless` without a virtual IP address.
    #[serde(rename = "type")]
    pub import_type: Field<String>,
    /// Session affinity: `None` (default) or `ClientIP`.
    pub session_affinity: Field<String>,
    /// Settings of session affinity.
    pub session_affinity_config: Field<SessionAffinityConfig>,
    /// IP families of the service.
    pub ip_families: Field<Vec<Field<String>>>,
    /// Endpoints for traffic from inside of the cluster: `Cluster` or `Local`.
    pub internal_traffic_policy: Field<String>,
    /// Preference between endpoints, such as `PreferSameZone`.
    pub traffic_distribution: Field<String>,
}

/// Port of an imported service: an entry of `ports`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// Name of the port; may be empty for a single port.
    pub name: Field<String>,
    /// Transport protocol. Default: `TCP`.
    pub protocol: Field<String>,
    /// Application protocol.
    pub app_protocol: Field<String>,
    /// Port number that clients use; required.
    pub port: Field<i64>,
}

/// Clusters that export the service, and conditions (`status`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceImportStatus {
    /// Clusters that export the service.
    pub clusters: Field<Vec<Field<ClusterStatus>>>,
    /// Conditions that controllers report.
    pub conditions: Field<Vec<Field<Condition>>>,
    /// Whether the import has EndpointSlices: `Absent` or `Present`; for information.
    pub endpoint_slice_objects: Field<String>,
}

/// Cluster that exports the service: an entry of `clusters`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterStatus {
    /// Name of the cluster.
    pub cluster: Field<String>,
}
