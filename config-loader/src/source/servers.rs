//! Follows the servers of `--control`. One thread runs the tasks of all servers, and a collector merges their reports.

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
use super::shared_parts::SharedParts;
use super::state::{self, StateFile};
use super::stream::collect::Collector;
use super::stream::report::{MESSAGES_MAX, Message, Origin, States};
use super::stream::saving::Saving;
use super::watch::Follow;
use super::xds::{self, ReadObject, XdsServer, XdsSettings};

/// Settings of the servers that are followed (`--control`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControlSettings {
    /// Kubernetes API servers.
    pub kubernetes: KubernetesSettings,
    /// xDS servers.
    pub xds: XdsSettings,
    /// Directory of the saved state of each server, for starts while the server is unreachable (`--state`).
    pub state: Option<PathBuf>,
    /// Longest wait of the first configuration for servers of remote clusters (`--control-wait`). Default: 10 s.
    pub wait: Option<Duration>,
}

/// Default of the longest wait for servers of remote clusters.
const WAIT: Duration = Duration::from_secs(10);

impl ControlSettings {
    /// Returns the servers' names in messages, by number.
    fn origins(&self) -> Vec<Origin> {
        self.kubernetes
            .origins()
            .chain(self.xds.origins())
            .collect()
    }

    /// Returns the files of the saved states, by server number; empty without `--state`.
    fn state_files(&self) -> Vec<StateFile> {
        let Some(directory) = &self.state else {
            return Vec::new();
        };
        let kubernetes = self.kubernetes.state_files(directory);
        kubernetes.chain(self.xds.state_files(directory)).collect()
    }
}

/// Server of `--control`.
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

/// Handle of the thread that follows the servers. Dropping it stops the thread.
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

/// Shared inputs and outputs of the servers' tasks.
#[derive(Clone)]
pub(crate) struct ServerContext {
    /// Parser of a single object.
    pub(crate) read: ReadObject,
    /// States of the proxy, for config servers.
    pub(crate) states: Option<States>,
    /// Counters of errors.
    pub(crate) errors: SourceErrors,
    /// Time since each server was last heard.
    pub(crate) ages: SourceAges,
}

/// Follows the servers and passes every change to `follower`.
///
/// # Errors
/// If no thread or runtime can be started, or the state directory cannot be created.
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
            runtime.block_on(follow(settings, clients, context, follower, stopped));
        })?;
    Ok(Following {
        stop: Some(stop),
        thread: Some(thread),
    })
}

/// Runs the tasks of all servers and collects their reports until it is stopped. Then saves pending state.
pub(crate) async fn follow(
    settings: ControlSettings,
    clients: Clients,
    context: ServerContext,
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
    let (reports, messages) = mpsc::channel::<Message>(MESSAGES_MAX);
    let mut tasks = JoinSet::new();
    let shared = SharedParts {
        reports,
        states,
        ages,
    };
    let servers = kubernetes::tasks(settings.kubernetes, &clients, &files, &shared);
    servers.for_each(|server| _ = tasks.spawn(server));
    let servers = xds::tasks(settings.xds, &read, first_xds, &files, &shared);
    servers.for_each(|server| _ = tasks.spawn(server));
    drop(shared);
    let saving = (!files.is_empty()).then(|| Arc::new(Saving::new(files)));
    if let Some(saving) = &saving {
        tasks.spawn(Arc::clone(saving).run());
    }
    let collector = Collector {
        servers: &origins,
        wait,
        errors,
        saving: saving.clone(),
    };
    tokio::select! {
        () = collector.run(messages, follower) => {}
        () = stopped => {}
    }
    if let Some(saving) = saving {
        saving.finish();
    }
}
