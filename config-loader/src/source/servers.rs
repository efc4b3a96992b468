//! Follows the servers of `--control`: one thread runs the tasks of all of them, and one collector takes in what they report.

mod objects;

pub use objects::{FollowedObjects, ObjectChanges, address_of, connect, follow_objects, in_words};

use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::ages::SourceAges;
use super::errors::SourceErrors;
use super::kubernetes::{self, ApiServer, Clients, KubernetesSettings};
use super::state::{self, StateFile};
use super::stream::collect::collect;
use super::stream::report::{MESSAGES_MAX, Message, Origin, States};
use super::stream::saving::Saving;
use super::watch::Follow;
use super::xds::{self, ReadObject, XdsServer, XdsSettings};

/// Which servers are followed (`--control`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlSettings {
    /// Kubernetes API servers.
    pub kubernetes: KubernetesSettings,
    /// xDS servers.
    pub xds: XdsSettings,
    /// Directory in which the last state of each server is saved, for starts without it (`--state`).
    pub state: Option<PathBuf>,
    /// Longest wait of the first configuration for the servers of remote clusters (`--control-wait`); none for 10 s.
    pub wait: Option<Duration>,
}

/// Longest wait for the servers of remote clusters, if there is no other.
const WAIT: Duration = Duration::from_secs(10);

impl ControlSettings {
    /// What messages call the servers, in the order of their numbers.
    fn origins(&self) -> Vec<Origin> {
        self.kubernetes
            .origins()
            .chain(self.xds.origins())
            .collect()
    }

    /// The files of the saved states, in the same order; empty without `--state`.
    fn state_files(&self) -> Vec<StateFile> {
        let Some(directory) = &self.state else {
            return Vec::new();
        };
        let kubernetes = self.kubernetes.state_files(directory);
        kubernetes.chain(self.xds.state_files(directory)).collect()
    }
}

/// A server of `--control`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlServer {
    /// `kubernetes://[CONTEXT][=REGION/ZONE/GROUP/NAME]`.
    Kubernetes(ApiServer),
    /// `xds://HOST:PORT` or `xds+plaintext://HOST:PORT`.
    Xds(XdsServer),
}

impl FromStr for ControlServer {
    type Err = String;

    fn from_str(text: &str) -> Result<ControlServer, String> {
        match text.starts_with("xds") {
            true => text.parse().map(ControlServer::Xds),
            false => text.parse().map(ControlServer::Kubernetes),
        }
    }
}

/// Follows servers until it is dropped.
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

/// What servers are followed with, beside their settings.
#[derive(Clone)]
pub(crate) struct ServerContext {
    /// Reads an object.
    pub(crate) read: ReadObject,
    /// The states of the proxy, for servers that take reports.
    pub(crate) states: Option<States>,
    /// Counts what fails.
    pub(crate) errors: SourceErrors,
    /// When servers were heard last.
    pub(crate) ages: SourceAges,
}

/// Follows the servers; `follower` gets every change.
///
/// # Errors
/// If no thread or no runtime can be started, or the directory of the state cannot be made.
pub(crate) fn spawn(
    settings: ControlSettings,
    context: ServerContext,
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
        .name("strait-control".to_owned())
        .spawn(move || {
            let stopped = async { _ = stopped.await };
            let clients = Clients::Configured;
            runtime.block_on(follow(settings, (clients, context), follower, stopped));
        })?;
    Ok(Following {
        stop: Some(stop),
        thread: Some(thread),
    })
}

/// Runs the tasks of all servers, and takes in what they report, until it is stopped. What waits to be saved is saved then.
pub(crate) async fn follow(
    settings: ControlSettings,
    (clients, context): (Clients, ServerContext),
    follower: impl Follow,
    stopped: impl Future<Output = ()>,
) {
    let ServerContext {
        read,
        states,
        errors,
        ages,
    } = context;
    let origins = settings.origins();
    let wait = settings.wait.unwrap_or(WAIT);
    let files = settings.state_files();
    let first_xds = settings.kubernetes.servers.len();
    let (sender, messages) = mpsc::channel::<Message>(MESSAGES_MAX);
    let mut tasks = JoinSet::new();
    let kubernetes = (settings.kubernetes, clients);
    let streams = (&sender, states.as_ref(), &ages);
    kubernetes::spawn(kubernetes, &files, streams, &mut tasks);
    let xds = (settings.xds, read);
    xds::spawn(xds, (first_xds, &files), streams, &mut tasks);
    drop(sender);
    let saving = (!files.is_empty()).then(|| Arc::new(Saving::new(files)));
    if let Some(saving) = &saving {
        tasks.spawn(Arc::clone(saving).run());
    }
    tokio::select! {
        () = collect((&origins, wait, errors), saving.clone(), messages, follower) => {}
        () = stopped => {}
    }
    if let Some(saving) = saving {
        saving.finish();
    }
}
