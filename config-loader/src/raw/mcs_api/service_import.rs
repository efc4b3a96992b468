//! ServiceImport as written.

use serde::Deserialize;

use crate::raw::Field;
use crate::raw::core::{Condition, SessionAffinityConfig};

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
    /// `ipFamilies`
    pub ip_families: Field<Vec<Field<String>>>,
    /// `internalTrafficPolicy`
    pub internal_traffic_policy: Field<String>,
    /// `trafficDistribution`
    pub traffic_distribution: Field<String>,
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
}

/// `status`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceImportStatus {
    /// `clusters`
    pub clusters: Field<Vec<Field<ClusterStatus>>>,
    /// `conditions`
    pub conditions: Field<Vec<Field<Condition>>>,
    /// `endpointSliceObjects`
    pub endpoint_slice_objects: Field<String>,
}

/// An entry of `clusters` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterStatus {
    /// `cluster`
    pub cluster: Field<String>,
}
