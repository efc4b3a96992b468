//! Destination, checked.

use super::{DestinationStatus, ExternalService, KubeService, MeshRef};

/// A checked Destination: something in some cluster that takes requests.
#[derive(Clone, Debug, Default)]
pub struct Destination {
    /// What it is.
    pub backing: Backing,
    /// The mesh that it belongs to.
    pub mesh: Option<MeshRef>,
    /// What the management plane says of it.
    pub status: DestinationStatus,
}

/// What a destination is.
#[derive(Clone, Debug, Default)]
pub enum Backing {
    /// Something outside the mesh.
    External(ExternalService),
    /// A service of one of the clusters.
    Kube(KubeService),
    /// Nothing: neither was written, and the object has no effect.
    #[default]
    Nothing,
}
