//! Destination as written.

use serde::Deserialize;

use super::{DestinationStatus, ExternalService, KubeService};
use crate::raw::Field;

/// Destination as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Destination {
    /// `spec`
    pub spec: Field<DestinationSpec>,
    /// `status`
    pub status: Field<DestinationStatus>,
}

/// `spec`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DestinationSpec {
    /// `kubeService`
    pub kube_service: Field<KubeService>,
    /// `externalService`
    pub external_service: Field<ExternalService>,
    /// `mesh`
    pub mesh: Field<ObjectRef>,
}

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
