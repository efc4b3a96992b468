//! Resources of xDS servers, over aggregated discovery. Uses only `stream`, `state`, `diagnostic`, `grpc`, `kind` and
//! `xds`.
//!
//! - `server` connects, follows one stream after another, and reports;
//! - `protocol` has the two variants of aggregated discovery: incremental, and state of the world;
//! - `reporting` decides when the proxy reports the configuration in effect;
//! - `types` tracks the resources of each type, without I/O: it turns a response into changes and an ACK or a NACK.

mod errors;
mod problems;
mod protocol;
mod reporting;
mod server;
mod settings;
mod stall;
mod types;

pub use settings::{XdsNode, XdsServer, XdsSettings};
pub(crate) use types::ReadObject;

use std::sync::Arc;

use super::shared_parts::SharedParts;
use super::state::StateFile;
use super::stream::signs::Signs;

/// Returns the tasks that follow the servers; the first has the number `first`. `files` has the file of each server's
/// saved state, or is empty without `--state`.
pub(super) fn tasks(
    settings: XdsSettings,
    read: &ReadObject,
    first: usize,
    files: &[StateFile],
    shared: &SharedParts,
) -> impl Iterator<Item = impl Future<Output = ()> + use<>> {
    let settings = Arc::new(settings);
    let servers = settings.servers.clone().into_iter().enumerate();
    servers.map(move |(at, server)| {
        let reporter = server::Reporter {
            number: first + at,
            reports: shared.reports.clone(),
            states: shared.states.clone(),
            signs: Signs::default(),
        };
        shared.ages.follow(server.name(), &reporter.signs);
        let types = types::Types::new(server.name(), &settings, Arc::clone(read));
        let file = files.get(first + at).cloned();
        server::Server::new(Arc::clone(&settings), server, file, types, reporter).run()
    })
}
