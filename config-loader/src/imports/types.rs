//! Input and result of computing imports.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::clusters::ClusterSettings;
use crate::diagnostic::Diagnostic;
use crate::kind::Name;
use crate::resource::ResourceSet;
use crate::resource::flomesh::{ClusterKey, ServiceImport};

/// Cluster with its resources.
#[derive(Clone, Debug)]
pub struct Source {
    /// Full name of the cluster.
    pub cluster: ClusterKey,
    /// Resources of the cluster.
    pub resources: Arc<ResourceSet>,
}

/// Input of the computation: importing and exporting clusters.
#[derive(Clone, Copy, Debug)]
pub struct Importing<'a> {
    /// Importing cluster.
    pub importer: &'a ClusterKey,
    /// Known clusters, each once. May include the importing cluster.
    pub sources: &'a [Source],
    /// Remote clusters file. Its gateways take precedence over the gateways of Cluster objects.
    pub told: &'a [ClusterSettings],
}

/// ServiceImport to write.
#[derive(Clone, Debug)]
pub struct Import {
    /// Namespace and name of the service.
    pub name: Name,
    /// API group of the import: the group of the oldest export.
    pub group: &'static str,
    /// Spec of the ServiceImport.
    pub spec: ServiceImport,
}

/// Result of the computation: ServiceImports and diagnostics.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// Imports, sorted by name.
    pub imports: Vec<Import>,
    /// Exported services of clusters without a known gateway. They are missing in `imports`.
    pub without_gateway: BTreeSet<(Name, ClusterKey)>,
    /// Warnings about exports whose Services differ from the oldest one, or from the importing cluster's own.
    pub differences: Vec<Diagnostic>,
    /// Other diagnostics, except those about the resources of a single cluster.
    pub found: Vec<Diagnostic>,
}
