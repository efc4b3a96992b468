//! Objects of Kubernetes API servers, listed and watched. Uses only `stream`, `state`, `diagnostic`, `kind` and
//! `kinds`.
//!
//! - `server` connects to one server, discovers its resources (`discovery`), and starts a `watch` of each;
//! - `document` turns an object into the text that a file would contain, and labels it with its cluster;
//! - `cluster_state` reads Pods, Nodes and Namespaces without most of their fields; `pod_gate` orders EndpointSlices
//!   and Pods.

mod bounded;
mod client;
mod cluster_state;
mod discovery;
mod document;
mod listing;
mod pod_gate;
mod problems;
mod reporting;
mod seen;
mod server;
mod settings;
mod silence;
mod throttle;
mod watch;

pub(crate) use client::Clients;
#[cfg(test)]
pub(crate) use client::Connected;
pub(super) use client::{address, connect};
pub use settings::{ApiServer, ApiServerTimes, KubernetesSettings};

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::ages::SourceAges;
use super::state::StateFile;
use super::stream::report::{Message, States};

/// Starts a task for each server. `files` has the file of each server's saved state, or is empty without `--state`.
/// Config servers receive reports of `states`; `ages` records when each server was last heard.
pub(super) fn spawn(
    (settings, clients): (KubernetesSettings, Clients),
    files: &[StateFile],
    (reports, states, ages): (&mpsc::Sender<Message>, Option<&States>, &SourceAges),
    tasks: &mut JoinSet<()>,
) {
    let settings = Arc::new(settings);
    for number in 0..settings.servers.len() {
        let file = files.get(number).cloned();
        let server = server::Server::new(
            Arc::clone(&settings),
            (number, file),
            clients.clone(),
            (states.cloned(), ages.clone()),
            reports.clone(),
        );
        tasks.spawn(server.run());
    }
}
