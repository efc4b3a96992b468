//! Inputs of a compile.

use config_loader::ResourceSet;

use crate::identity::Identity;
use crate::telemetry::StatsRegistry;
use crate::tls::Store;
use traffic::registry::{Moment, Registry};

/// Inputs that determine a snapshot.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The resources in effect.
    pub resources: &'a ResourceSet,
    /// Identity of this proxy.
    pub identity: &'a Identity,
    /// Live state by identity.
    pub registry: &'a Registry,
    /// Statistics by labels.
    pub stats: &'a StatsRegistry,
    /// Certificates by source.
    pub certificates: &'a Store,
    /// Current time, for endpoints that are new.
    pub now: Moment,
}
