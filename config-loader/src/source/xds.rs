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

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::ages::SourceAges;
use super::state::StateFile;
use super::stream::report::{Message, States};
use super::stream::signs::Signs;

/// Starts a task for each server; the first has the number `first`. `files` has the file of each server's saved state,
/// or is empty without `--state`. Config servers receive reports of `states`; `ages` records when each server was last
/// heard.
pub(super) fn spawn(
    (settings, read): (XdsSettings, ReadObject),
    (first, files): (usize, &[StateFile]),
    (reports, states, ages): (&mpsc::Sender<Message>, Option<&States>, &SourceAges),
    tasks: &mut JoinSet<()>,
) {
    let settings = Arc::new(settings);
    for (at, server) in settings.servers.iter().enumerate() {
        let reporter = server::Reporter {
            number: first + at,
            reports: reports.clone(),
            states: states.cloned(),
            signs: Signs::default(),
        };
        ages.follow(server.name(), &reporter.signs);
        let types = types::Types::new(server.name(), &settings, Arc::clone(&read));
        let file = files.get(first + at).cloned();
        let server = server::Server::new(
            Arc::clone(&settings),
            (server.clone(), file),
            types,
            reporter,
        );
        tasks.spawn(server.run());
    }
}
