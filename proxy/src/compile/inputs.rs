//! What a compile reads.

use config_loader::ResourceSet;

use crate::identity::Identity;
use crate::telemetry::StatsRegistry;
use crate::tls::Store;
use traffic::registry::{Moment, Registry};

/// Everything that a snapshot follows from.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The resources in effect.
    pub resources: &'a ResourceSet,
    /// Who this proxy is.
    pub identity: &'a Identity,
    /// Live state by identity.
    pub registry: &'a Registry,
    /// Statistics by labels.
    pub stats: &'a StatsRegistry,
    /// Certificates by where they come from.
    pub certificates: &'a Store,
    /// The time, for endpoints that are new.
    pub now: Moment,
}
