//! The discovery.mesh.gloo.solo.io kinds, checked.

/// A checked Destination.
#[derive(Clone, Debug, Default)]
pub struct Destination {}
