//! Cluster as written.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::raw::{Field, Map};

/// Cluster as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cluster {
    /// `spec`
    pub spec: Field<ClusterSpec>,
    /// `status`: accepted and ignored
    pub status: Field<Map<IgnoredAny>>,
}

/// `spec`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSpec {
    /// `region`
    pub region: Field<String>,
    /// `zone`
    pub zone: Field<String>,
    /// `group`
    pub group: Field<String>,
    /// `gatewayHost`
    pub gateway_host: Field<String>,
    /// `gatewayPort`
    pub gateway_port: Field<i64>,
    /// `kubeconfig`: accepted and dropped
    pub kubeconfig: Field<IgnoredAny>,
    /// `fsmMeshConfigName`
    pub fsm_mesh_config_name: Field<String>,
    /// `fsmNamespace`
    pub fsm_namespace: Field<String>,
}
