//! References to objects, as written.

use serde::Deserialize;

use crate::raw::Field;

/// Reference to an object of the management plane.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectRef {
    /// `name`
    pub name: Field<String>,
    /// `namespace`
    pub namespace: Field<String>,
}

/// Reference to an object of a Kubernetes cluster.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterObjectRef {
    /// `name`
    pub name: Field<String>,
    /// `namespace`
    pub namespace: Field<String>,
    /// `clusterName`
    pub cluster_name: Field<String>,
}
