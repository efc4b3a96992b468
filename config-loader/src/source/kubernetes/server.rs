//! Follows one server: connects, asks what it serves, and has each resource watched.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime};

use kube::Client;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::client::{self, Clients};
use super::discovery::{Resource, Selection, discover};
use super::problems::{self, Refusal};
use super::reporting;
use super::settings::{ApiServer, KubernetesSettings};
use super::watch::{Known, Watch};
use crate::diagnostic::Diagnostic;
use crate::kind::Kind;
use crate::source::state::StateFile;
use crate::source::stream::report::{Key, Message, Report, Restored, States};
use crate::source::stream::{causes, pauses};

/// How often a server is asked what it serves: definitions of resources may be installed later.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(30);

/// How often a server that cannot be reached is asked.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// How long a resource may take to be listed at the start, if objects of it were saved.
const LIST_MAX: Duration = Duration::from_secs(10);

/// What is read of other clusters: all else holds in its own cluster only.
const REMOTE: [Kind; 2] = [Kind::EndpointSlice, Kind::Service];

/// Kinds that a label selector does not limit: what people label is their own resources.
const UNSELECTED: [Kind; 3] = [Kind::EndpointSlice, Kind::Secret, Kind::Service];

/// A server that is followed.
pub(super) struct Server {
    settings: Arc<KubernetesSettings>,
    number: usize,
    /// Where what it says is saved.
    file: Option<StateFile>,
    clients: Clients,
    reports: mpsc::Sender<Message>,
    /// The state of the proxy, for servers that take reports.
    states: Option<States>,
    known: HashMap<Key, Known>,
    is_settled: bool,
    /// When what is saved of it was written, until it answers.
    saved_at: Option<SystemTime>,
    /// When a resource without a list has what was saved restored.
    restore_at: Instant,
    /// Since when it cannot be reached.
    lost: Option<Instant>,
    /// How many EndpointSlices left because it could not be reached for too long.
    expired: Option<usize>,
}

/// Why a connection is given up.
enum End {
    /// It is made anew, with credentials that are read again.
    Reconnect,
    /// Nobody listens.
    Stop,
}

impl Server {
    pub(super) fn new(
        settings: Arc<KubernetesSettings>,
        (number, file): (usize, Option<StateFile>),
        clients: Clients,
        states: Option<States>,
        reports: mpsc::Sender<Message>,
    ) -> Server {
        Server {
            settings,
            number,
            file,
            clients,
            reports,
            states,
            known: HashMap::new(),
            is_settled: false,
            saved_at: None,
            restore_at: Instant::now() + LIST_MAX,
            lost: None,
            expired: None,
        }
    }

    fn server(&self) -> &ApiServer {
        &self.settings.servers[self.number]
    }

    /// Follows it until nobody listens any more.
    pub(super) async fn run(mut self) {
        self.load().await;
        let mut pauses = pauses::pauses();
        loop {
            match self.clients.connect(&self.settings, self.number).await {
                Ok(client) => match self.follow(client).await {
                    End::Reconnect => {}
                    End::Stop => return,
                },
                Err(reason) => {
                    let found = self.missed(Some(&reason)).await;
                    if !self.report(Report::ServerTrouble(Some(found))).await {
                        return;
                    }
                }
            }
            tokio::time::sleep(pauses.next().unwrap_or(RETRY_INTERVAL)).await;
        }
    }

    /// Follows it with one client.
    async fn follow(&mut self, client: Client) -> End {
        let unauthorized = Arc::new(Notify::new());
        let mut watches = Watches::default();
        loop {
            let only = match &self.server().cluster {
                Some(_) => Selection::Kinds(&REMOTE),
                None if self.settings.resources.is_empty() => Selection::All,
                None => Selection::Resources(&self.settings.resources),
            };
            let pause = match discover(&client, only, client::ANSWER_MAX).await {
                Ok(found) => {
                    if self.expired.take().is_some() {
                        watches = Watches::default();
                    }
                    self.lost = None;
                    self.is_settled = true;
                    if !self
                        .watch(found.resources, &client, &mut watches, &unauthorized)
                        .await
                    {
                        return End::Stop;
                    }
                    self.have_reported(&client, found.takes_reports, &mut watches);
                    DISCOVERY_INTERVAL
                }
                Err(error) if problems::refusal(&error) == Some(Refusal::Unauthorized) => {
                    let found = self.missed(None).await;
                    self.report(Report::ServerTrouble(Some(found))).await;
                    return End::Reconnect;
                }
                Err(error) => {
                    let found = self.missed(Some(&causes::with_causes(&error))).await;
                    if self.expired.is_some() {
                        watches = Watches::default();
                    }
                    if !self.report(Report::ServerTrouble(Some(found))).await {
                        return End::Stop;
                    }
                    RETRY_INTERVAL
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = unauthorized.notified() => {
                    let found = self.missed(None).await;
                    self.report(Report::ServerTrouble(Some(found))).await;
                    return End::Reconnect;
                }
            }
        }
    }

    /// Begins to report to a server that takes reports.
    fn have_reported(&self, client: &Client, takes_reports: bool, watches: &mut Watches) {
        let Some(states) = self.states.clone().filter(|_| takes_reports) else {
            return;
        };
        if !std::mem::replace(&mut watches.is_reporting, true) {
            let server = self.server().name();
            let task = reporting::report(client.clone(), server, states);
            watches.tasks.spawn(task);
        }
    }

    /// Begins to watch what is not watched yet. Returns whether somebody listens.
    async fn watch(
        &mut self,
        resources: Vec<Resource>,
        client: &Client,
        watches: &mut Watches,
        unauthorized: &Arc<Notify>,
    ) -> bool {
        let mut fresh: Vec<Watch> = Vec::new();
        for resource in resources {
            for namespace in self.namespaces(&resource) {
                let watch = self.prepare(resource.clone(), namespace, unauthorized);
                if !watches.keys.contains(&watch.key()) {
                    fresh.push(watch);
                }
            }
        }
        let keys: Vec<Key> = fresh.iter().map(Watch::key).collect();
        let is_heard = self.report(Report::Watching(keys.clone())).await
            && self.report(Report::ServerTrouble(None)).await;
        watches.keys.extend(keys);
        if self.saved_at.take().is_some() {
            self.let_go_unserved(watches).await;
        }
        for watch in fresh {
            watches.tasks.spawn(watch.run(client.clone()));
        }
        is_heard
    }

    fn prepare(
        &mut self,
        resource: Resource,
        namespace: Option<String>,
        unauthorized: &Arc<Notify>,
    ) -> Watch {
        let is_selected = !UNSELECTED.contains(&resource.kind);
        let mut watch = Watch {
            number: self.number,
            server: self.server().clone(),
            selector: self.settings.selector.clone().filter(|_| is_selected),
            resource,
            namespace,
            known: Known::default(),
            saved_at: self.saved_at,
            restore_at: self.restore_at,
            reports: self.reports.clone(),
            unauthorized: Arc::clone(unauthorized),
        };
        let known = self.known.entry(watch.key()).or_default();
        watch.known = Arc::clone(known);
        watch
    }

    /// The namespaces in which a resource is watched, one by one; none stands for all.
    fn namespaces(&self, resource: &Resource) -> Vec<Option<String>> {
        let named = &self.settings.namespaces;
        match (resource.is_namespaced, resource.kind) {
            (false, _) => vec![None],
            (true, Kind::Secret) if self.settings.secrets_namespace.is_empty() => Vec::new(),
            (true, Kind::Secret) => vec![Some(self.settings.secrets_namespace.clone())],
            (true, _) if named.is_empty() => vec![None],
            (true, _) => named.iter().cloned().map(Some).collect(),
        }
    }

    /// The server cannot be asked, for this reason or for the credentials. Returns what is wrong, and lets endpoints go whose time
    /// is over.
    async fn missed(&mut self, reason: Option<&str>) -> Diagnostic {
        if !self.is_settled {
            self.restore().await;
        }
        let lost = *self.lost.get_or_insert_with(Instant::now);
        let is_remote = self.server().cluster.is_some();
        let ttl = self.settings.endpoint_ttl.filter(|_| is_remote);
        if self.expired.is_none() && ttl.is_some_and(|ttl| lost.elapsed() >= ttl) {
            self.expired = self.let_go().await;
        }
        match (self.expired, reason) {
            (Some(count), _) => problems::expired(self.server(), count),
            (None, Some(reason)) => problems::unreachable(self.server(), reason, self.is_settled),
            (None, None) => problems::unauthorized(self.server()),
        }
    }

    /// Reads what was saved of it, for the case that it says nothing.
    async fn load(&mut self) {
        let Some(file) = self.file.clone() else {
            return;
        };
        let path = file.path().display().to_string();
        let read = tokio::task::spawn_blocking(move || file.read()).await;
        let saved = match read.unwrap_or_else(|panic| Err(std::io::Error::other(panic))) {
            Ok(Some(saved)) => saved,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(file = path, %error, "--state: file is not used, and is replaced when the API server has answered");
                return;
            }
        };
        self.saved_at = Some(saved.at);
        for (name, text) in saved.objects {
            if let Some(key) = self.key_of(&name) {
                let known = self.known.entry(key).or_default();
                let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                known.save(name.into(), text);
            }
        }
    }

    /// The watch that an object belongs to; none if it is not watched with these settings.
    fn key_of(&self, name: &str) -> Option<Key> {
        let path = name
            .strip_prefix(&self.server().name())?
            .strip_prefix('/')?;
        let mut parts = path.rsplitn(3, '/').skip(1);
        let (resource, namespace) = (parts.next()?, parts.next());
        let named = &self.settings.namespaces;
        let is_single = resource == "secrets" || !named.is_empty();
        let is_wanted = |namespace: &str| match resource {
            "secrets" => namespace == self.settings.secrets_namespace,
            _ => named.iter().any(|named| named == namespace),
        };
        match namespace {
            Some(namespace) if is_single => {
                is_wanted(namespace).then(|| format!("{resource} in {namespace}").into())
            }
            _ => Some(resource.into()),
        }
    }

    /// Takes what was saved for what it says.
    async fn restore(&mut self) {
        let Some(at) = self.saved_at else {
            return;
        };
        let mut changes = Vec::new();
        for known in self.known.values() {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            let saved = known.restore().into_iter();
            changes.extend(saved.map(|(name, text)| (name, Some(text))));
        }
        let key = None;
        self.report(Report::Restored(Restored { key, at, changes }))
            .await;
    }

    /// Lets saved objects go of what it does not serve.
    async fn let_go_unserved(&self, watches: &Watches) {
        let mut gone = Vec::new();
        for (key, known) in &self.known {
            if !watches.keys.contains(key) {
                let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                gone.extend(known.forget().into_iter().map(|name| (name, None)));
            }
        }
        self.report(Report::Changes(gone)).await;
    }

    /// Lets the EndpointSlices go; returns how many, if there are any.
    async fn let_go(&mut self) -> Option<usize> {
        let mut gone = Vec::new();
        for (key, known) in &self.known {
            if key.starts_with("endpointslices.") {
                let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                gone.extend(known.forget().into_iter().map(|name| (name, None)));
            }
        }
        let count = gone.len();
        self.report(Report::Changes(gone)).await;
        (count > 0).then_some(count)
    }

    /// Reports; returns whether somebody listens.
    async fn report(&self, report: Report) -> bool {
        self.reports.send((self.number, report)).await.is_ok()
    }
}

/// What is watched with one client. The tasks end when this is dropped.
#[derive(Default)]
struct Watches {
    keys: std::collections::HashSet<Key>,
    is_reporting: bool,
    tasks: JoinSet<()>,
}
