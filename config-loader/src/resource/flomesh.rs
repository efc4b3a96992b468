//! The flomesh.io and multicluster.flomesh.io kinds, checked.

/// A checked GlobalTrafficPolicy.
#[derive(Clone, Debug, Default)]
pub struct GlobalTrafficPolicy {}

/// A checked ServiceExport.
#[derive(Clone, Debug, Default)]
pub struct ServiceExport {}

/// A checked ServiceImport.
#[derive(Clone, Debug, Default)]
pub struct ServiceImport {}
