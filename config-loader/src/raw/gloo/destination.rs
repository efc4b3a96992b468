//! Destination as written.

use serde::Deserialize;

use super::{DestinationStatus, ExternalService, KubeService, ObjectRef};
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
