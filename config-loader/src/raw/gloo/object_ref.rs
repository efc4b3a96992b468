//! Names of objects as written.

use serde::Deserialize;

use crate::raw::Field;

/// An object of the management plane as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectRef {
    /// `name`
    pub name: Field<String>,
    /// `namespace`
    pub namespace: Field<String>,
}

/// An object of one of the clusters as written.
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
