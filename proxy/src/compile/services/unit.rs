//! Units: services that are built and kept together.

use std::sync::Arc;

use config_loader::catalog::{Tape, View};
use config_loader::{Name, ResourceSet};

use crate::compile::services::vips::Claim;
use crate::identity::Identity;

/// Services that are built together.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::compile) enum Unit {
    /// All services of clusters: Destinations add to services that other resources describe.
    Clusters,
    /// Hosts of the service of this name.
    Named(Name),
    /// Host outside of all clusters.
    Outside(Arc<str>),
}

/// Unit that was built.
#[derive(Debug)]
pub(in crate::compile) struct Made {
    pub hosts: Vec<Arc<str>>,
    pub claims: Vec<Claim>,
}

/// Resources before and after a change, and the tape that reads are recorded on.
#[derive(Clone, Copy)]
pub(in crate::compile) struct Renewal<'a> {
    pub before: &'a ResourceSet,
    pub now: &'a ResourceSet,
    pub identity: &'a Identity,
    pub tape: &'a Tape,
}

impl<'a> Renewal<'a> {
    /// Returns the resources after the change; reads are recorded.
    pub(in crate::compile) fn view(self) -> View<'a> {
        View::new(self.now, self.tape)
    }
}
