//! ServiceImport as written.

use serde::Deserialize;

use crate::raw::Field;
use crate::raw::core::SessionAffinityConfig;

/// ServiceImport as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceImport {
    /// `spec`
    pub spec: Field<ServiceImportSpec>,
    /// `status`
    pub status: Field<ServiceImportStatus>,
}

/// `spec`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceImportSpec {
    /// `ports`
    pub ports: Field<Vec<Field<ServicePort>>>,
    /// `ips`
    pub ips: Field<Vec<Field<String>>>,
    /// `type`
    #[serde(rename = "type")]
    pub import_type: Field<String>,
    /// `sessionAffinity`
    pub session_affinity: Field<String>,
    /// `sessionAffinityConfig`
    pub session_affinity_config: Field<SessionAffinityConfig>,
    /// `serviceAccountName`
    pub service_account_name: Field<String>,
}

/// An entry of `ports` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServicePort {
    /// `name`
    pub name: Field<String>,
    /// `protocol`
    pub protocol: Field<String>,
    /// `appProtocol`
    pub app_protocol: Field<String>,
    /// `port`
    pub port: Field<i64>,
    /// `endpoints`
    pub endpoints: Field<Vec<Field<Endpoint>>>,
}

/// An entry of `endpoints` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Endpoint {
    /// `clusterKey`
    pub cluster_key: Field<String>,
    /// `target`
    pub target: Field<Target>,
}

/// `target` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Target {
    /// `host`
    pub host: Field<String>,
    /// `ip`
    pub ip: Field<String>,
    /// `port`
    pub port: Field<i64>,
    /// `path`
    pub path: Field<String>,
}

/// `status`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceImportStatus {
    /// `clusters`
    pub clusters: Field<Vec<Field<ClusterStatus>>>,
}

/// An entry of `clusters` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterStatus {
    /// `cluster`
    pub cluster: Field<String>,
    /// `addresses`
    pub addresses: Field<Vec<Field<String>>>,
}
