//! Inputs of a simulation, and mistakes in them.

use std::sync::Arc;

use config_loader::{ResourceSet, Scenario, ScenarioTarget};

use crate::explain::Question;
use crate::identity::Identity;

/// Inputs of a simulation.
pub struct Inputs<'a> {
    /// Load, events and expectations.
    pub scenario: &'a Scenario,
    /// The request.
    pub question: &'a Question,
    /// Identity of the proxies.
    pub identity: &'a Identity,
    /// Configuration at the start.
    pub resources: &'a Arc<ResourceSet>,
    /// Configurations of events, by the position of the event.
    pub later: &'a [Option<Arc<ResourceSet>>],
    /// Seed of all random numbers.
    pub seed: u64,
}

/// Target of an event, or cluster of an expectation, that no endpoint has.
#[derive(Debug)]
pub struct Unknown {
    /// Position of the event, or of the expectation.
    pub at: Result<usize, usize>,
    /// Name as it is written.
    pub written: String,
    /// Names that would be known.
    pub known: Vec<String>,
}

/// Name of a target in messages.
pub(super) fn target_name(target: &ScenarioTarget) -> String {
    match target {
        ScenarioTarget::All => "all endpoints".to_owned(),
        ScenarioTarget::Cluster(name) => format!("cluster {name}"),
        ScenarioTarget::Zone(name) => format!("zone {name}"),
        ScenarioTarget::Host(name) => format!("host {name}"),
        ScenarioTarget::Endpoint(name) => format!("endpoint {name}"),
    }
}
