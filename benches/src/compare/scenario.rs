//! Scenarios, by name.

use crate::compare::bench::Bench;
use crate::compare::failure::Failure;
use crate::compare::process::open_files;
use crate::compare::report::Report;

mod connections;
mod courses;
mod latency;
mod loaded;
mod name;
mod notes;
mod scale;
mod sidecars;
mod slow;
mod throughput;

pub use name::Scenario;

impl Scenario {
    /// Runs the scenario, and adds the results to the report.
    ///
    /// # Errors
    /// When the run was cancelled. A failure in one proxy becomes a note.
    pub fn measure(self, bench: &Bench, report: &mut Report) -> Result<(), Failure> {
        let course = match self {
            Self::Small => courses::small(),
            Self::Routes => courses::routes(),
            Self::Endpoints => scale::endpoints(),
            Self::Downstream => scale::downstream(open_files()),
            Self::Features => courses::features(),
            Self::FeatureCosts => courses::feature_costs(),
            Self::Authz => courses::authz(),
            Self::Jwt => courses::jwt(),
            Self::Traces => courses::traces(),
            Self::H2c => courses::h2c(),
            Self::Large => courses::large(),
            Self::Https => courses::https(),
            Self::TlsFull => courses::handshakes(false),
            Self::TlsResumed => courses::handshakes(true),
            Self::H2 => courses::h2(),
            Self::Grpc => courses::grpc(),
            Self::Tcp => courses::tcp(),
            Self::Latency => return latency::measure(bench, report),
            Self::Sidecars => return sidecars::measure(bench, report),
            Self::Connections => return connections::measure(bench, report),
            Self::Slow => return slow::measure(bench, report),
            Self::Loaded => return loaded::measure(bench, report),
        };
        throughput::measure(bench, report, &course)
    }
}
