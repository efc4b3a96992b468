//! The Kubernetes core kinds, checked.

/// A checked EndpointSlice.
#[derive(Clone, Debug, Default)]
pub struct EndpointSlice {}

/// A checked Secret.
#[derive(Clone, Debug, Default)]
pub struct Secret {}

/// A checked Service.
#[derive(Clone, Debug, Default)]
pub struct Service {}
