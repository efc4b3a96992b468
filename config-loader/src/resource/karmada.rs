//! The networking.karmada.io kinds, checked.

/// A checked MultiClusterService.
#[derive(Clone, Debug, Default)]
pub struct MultiClusterService {}
