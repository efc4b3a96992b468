//! Objects of Kubernetes API servers, listed and watched. Uses only `stream`, `state`, `diagnostic`, `kind` and
//! `kinds`, and the name of the default GatewayClass.
//!
//! - `server` connects to one server, discovers its resources (`discovery`), and starts a `watch` of each;
//! - `document` turns an object into the text that a file would contain, and labels it with its cluster;
//! - `gateway_needs` decides whether a proxy goes on without kinds that only Gateways need;
//! - `cluster_state` reads Pods, Nodes and Namespaces without most of their fields; `pod_gate` orders EndpointSlices
//!   and Pods.

mod bounded;
mod client;
mod cluster_state;
mod discovery;
mod document;
mod gateway_needs;
mod listing;
mod pod_gate;
mod problems;
mod referred;
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

use super::shared_parts::SharedParts;
use super::state::StateFile;

/// Returns the tasks that follow the servers. `files` has the file of each server's saved state, or is empty without `--state`.
pub(super) fn tasks(
    settings: KubernetesSettings,
    clients: &Clients,
    files: &[StateFile],
    shared: &SharedParts,
) -> impl Iterator<Item = impl Future<Output = ()> + use<>> {
    let settings = Arc::new(settings);
    (0..settings.servers.len()).map(move |number| {
        let (clients, file) = (clients.clone(), files.get(number).cloned());
        server::Server::new(Arc::clone(&settings), number, file, clients, shared.clone()).run()
    })
}
