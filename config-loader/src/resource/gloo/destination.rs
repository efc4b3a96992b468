//! Destination, checked.

use super::{DestinationStatus, ExternalService, KubeService, MeshRef};

/// Checked Destination: a service that takes requests, in a cluster or outside the mesh.
#[derive(Clone, Debug, Default)]
pub struct Destination {
    /// Service behind the destination.
    pub backing: Backing,
    /// Mesh of the destination.
    pub mesh: Option<MeshRef>,
    /// Status that the management plane reports.
    pub status: DestinationStatus,
}

/// Service behind a destination.
#[derive(Clone, Debug, Default)]
pub enum Backing {
    /// Service outside the mesh.
    External(ExternalService),
    /// Service of one of the Kubernetes clusters.
    Kube(KubeService),
    /// No service: none was configured, and the object has no effect.
    #[default]
    Nothing,
}
