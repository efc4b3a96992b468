//! Cluster as written.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::raw::{Field, Map};

/// Cluster as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cluster {
    /// Location and gateway of the cluster.
    pub spec: Field<ClusterSpec>,
    /// `status`: accepted and ignored
    pub status: Field<Map<IgnoredAny>>,
}

/// Location and gateway of a cluster (`spec`). Its key is `region/zone/group/NAME`, with the name of the object.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterSpec {
    /// Region, the first part of the key. Default: `default`.
    pub region: Field<String>,
    /// Zone, the second part of the key. Default: `default`.
    pub zone: Field<String>,
    /// Group, the third part of the key. Default: `default`.
    pub group: Field<String>,
    /// Address of the cluster's gateway.
    pub gateway_host: Field<String>,
    /// Port of the cluster's gateway. Default: 80.
    pub gateway_port: Field<i64>,
    /// `kubeconfig`: accepted and dropped
    pub kubeconfig: Field<IgnoredAny>,
    /// Name of the mesh's configuration; ignored.
    pub fsm_mesh_config_name: Field<String>,
    /// Namespace of the mesh's control plane; ignored.
    pub fsm_namespace: Field<String>,
}
