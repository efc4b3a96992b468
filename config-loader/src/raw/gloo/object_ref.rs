//! References to objects, as written.

use serde::Deserialize;

use crate::raw::Field;

/// Reference to an object of the management plane.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectRef {
    /// Name of the object.
    pub name: Field<String>,
    /// Namespace of the object.
    pub namespace: Field<String>,
}

/// Reference to an object of a Kubernetes cluster.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterObjectRef {
    /// Name of the object.
    pub name: Field<String>,
    /// Namespace of the object.
    pub namespace: Field<String>,
    /// Cluster of the object.
    pub cluster_name: Field<String>,
}
