//! The networking.istio.io kinds, checked.

/// A checked DestinationRule.
#[derive(Clone, Debug, Default)]
pub struct DestinationRule {}

/// A checked Gateway.
#[derive(Clone, Debug, Default)]
pub struct Gateway {}

/// A checked ServiceEntry.
#[derive(Clone, Debug, Default)]
pub struct ServiceEntry {}

/// A checked Sidecar.
#[derive(Clone, Debug, Default)]
pub struct Sidecar {}

/// A checked VirtualService.
#[derive(Clone, Debug, Default)]
pub struct VirtualService {}

/// A checked WorkloadEntry.
#[derive(Clone, Debug, Default)]
pub struct WorkloadEntry {}
