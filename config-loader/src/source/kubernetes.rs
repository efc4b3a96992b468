//! Objects of Kubernetes API servers, listed and watched. Uses only `diagnostic`, `kind` and `kinds`.
//!
//! One thread follows all servers:
//! - `server` connects to one, asks what it serves (`discovery`), and starts a `watch` of each resource;
//! - a `mirror` per resource makes changes out of what a watch says, so that a new list removes nothing by itself;
//! - `document` makes of an object what a file would hold, with the marks of its cluster;
//! - `collect` gathers the changes of all of them, and hands them on as one; `saving` writes them to files, which a server that
//!   cannot be reached at the start is replaced by.

mod client;
mod collect;
mod discovery;
mod document;
mod mirror;
mod objects;
mod problems;
mod progress;
mod remote_services;
mod report;
mod saving;
mod server;
mod settings;
mod watch;

pub use objects::{FollowedObjects, ObjectChanges, connect, follow_objects};
pub use settings::{ApiServer, KubernetesSettings};

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use tokio::sync::{mpsc, oneshot};

use self::report::MESSAGES_MAX;
use self::saving::Saving;
use super::state;
use super::watch::Follow;

/// Follows API servers until it is dropped.
#[derive(Debug)]
pub(crate) struct Following {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Following {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            // A panic was reported where it happened.
            let _ = thread.join();
        }
    }
}

/// Follows the servers; `follower` gets every change.
///
/// # Errors
/// If no thread or no runtime can be started, or the directory of the state cannot be made.
pub(crate) fn spawn(
    settings: KubernetesSettings,
    follower: impl Follow + Send + 'static,
) -> io::Result<Following> {
    if let Some(directory) = &settings.state {
        state::prepare(directory)?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (stop, stopped) = oneshot::channel::<()>();
    let thread = thread::Builder::new()
        .name("strait-kube".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = follow(settings, follower) => {}
                }
            });
        })?;
    Ok(Following {
        stop: Some(stop),
        thread: Some(thread),
    })
}

/// Runs the tasks of all servers, and takes in what they report.
async fn follow(settings: KubernetesSettings, follower: impl Follow) {
    let settings = Arc::new(settings);
    let saving = settings.state.as_ref().map(|directory| {
        let selector = settings.selector.as_deref();
        let servers = settings.servers.iter();
        let files = servers.map(|server| server.state_file(directory, selector));
        Arc::new(Saving::new(files.collect()))
    });
    let (sender, messages) = mpsc::channel(MESSAGES_MAX);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..settings.servers.len() {
        let server = server::Server::new(Arc::clone(&settings), number, sender.clone());
        tasks.spawn(server.run());
    }
    drop(sender);
    if let Some(saving) = &saving {
        tasks.spawn(Arc::clone(saving).run());
    }
    collect::collect(&settings.servers, saving, messages, follower).await;
}
