//! The input and the result of computing imports.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::clusters::ClusterSettings;
use crate::diagnostic::Diagnostic;
use crate::kind::Name;
use crate::resource::ResourceSet;
use crate::resource::flomesh::{ClusterKey, ServiceImport};

/// A cluster with its resources.
#[derive(Clone, Debug)]
pub struct Source {
    /// Its full name.
    pub cluster: ClusterKey,
    /// What it has.
    pub resources: Arc<ResourceSet>,
}

/// The importing cluster and the exporting ones.
#[derive(Clone, Copy, Debug)]
pub struct Importing<'a> {
    /// The cluster that imports.
    pub importer: &'a ClusterKey,
    /// The clusters that are known, each once; the one that imports may be among them.
    pub sources: &'a [Source],
    /// The remote clusters file. Its gateways take precedence over the gateways of Cluster objects.
    pub told: &'a [ClusterSettings],
}

/// A ServiceImport to be written.
#[derive(Clone, Debug)]
pub struct Import {
    /// The namespace and the name of the service.
    pub name: Name,
    /// The API group: that of the oldest export.
    pub group: &'static str,
    /// What it says.
    pub spec: ServiceImport,
}

/// The ServiceImports that were made of the exports.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// In the order of their names.
    pub imports: Vec<Import>,
    /// Exported services of clusters without a known gateway: they are missing in `imports`.
    pub without_gateway: BTreeSet<(Name, ClusterKey)>,
    /// Exports whose Services differ from the oldest one, or from the importing cluster's own.
    pub differences: Vec<Diagnostic>,
    /// What else is wrong, beside what is wrong with the resources of one cluster alone.
    pub found: Vec<Diagnostic>,
}
