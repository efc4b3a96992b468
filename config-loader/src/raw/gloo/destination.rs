//! Destination as written.

use serde::Deserialize;

use super::{DestinationStatus, ExternalService, KubeService, ObjectRef};
use crate::raw::Field;

/// Destination as written, beside its metadata.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Destination {
    /// Service behind the destination.
    pub spec: Field<DestinationSpec>,
    /// Policies and federation that the management plane reports.
    pub status: Field<DestinationStatus>,
}

/// Service behind the destination (`spec`): one of `kubeService` and `externalService`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DestinationSpec {
    /// Service of a Kubernetes cluster.
    pub kube_service: Field<KubeService>,
    /// Service outside of the mesh.
    pub external_service: Field<ExternalService>,
    /// Mesh of the destination.
    pub mesh: Field<ObjectRef>,
}
