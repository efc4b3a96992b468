//! Follows one server: connects, asks what it serves, and has each resource watched.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use kube::Client;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::client::{self, Clients, Connected};
use super::discovery::{Resource, Selection, UnreadGroup, discover};
use super::pod_gate::PodGate;
use super::problems::{self, Refusal};
use super::reporting;
use super::settings::{ApiServer, KubernetesSettings};
use super::throttle::Throttle;
use super::watch::{Alarms, Known, Watch};
use crate::diagnostic::Diagnostic;
use crate::kind::Kind;
use crate::source::errors::SourceError;
use crate::source::state::StateFile;
use crate::source::stream::report::{Key, Message, Report, Restored, States};
use crate::source::stream::{causes, load, pauses};

/// How often a server is asked what it serves: definitions of resources may be installed later.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(30);

/// How often a server that cannot be reached is asked, and one of which a connection was lost.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// How long a resource may take to be listed at the start, if objects of it were saved.
const LIST_MAX: Duration = Duration::from_secs(10);

/// What is read of other clusters: all else holds in its own cluster only.
const REMOTE: [Kind; 5] = [
    Kind::EndpointSlice,
    Kind::Namespace,
    Kind::Node,
    Kind::Pod,
    Kind::Service,
];

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
    gate: Arc<Mutex<PodGate>>,
    is_settled: bool,
    /// Whether it is a config server: it takes reports.
    is_config_server: bool,
    /// When what is saved of it was written, until it answers.
    saved_at: Option<SystemTime>,
    /// When a resource without a list has what was saved restored.
    restore_at: Instant,
    /// Since when it cannot be reached.
    lost: Option<Instant>,
    /// Groups that are served at other versions only.
    unread: Vec<UnreadGroup>,
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
        let gate = PodGate::new(settings.workload_wait);
        Server {
            settings,
            number,
            file,
            clients,
            reports,
            states,
            known: HashMap::new(),
            gate: Arc::new(Mutex::new(gate)),
            is_settled: false,
            is_config_server: false,
            saved_at: None,
            restore_at: Instant::now() + LIST_MAX,
            lost: None,
            unread: Vec::new(),
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
                Ok(connected) => match self.follow(connected).await {
                    End::Reconnect => {}
                    End::Stop => return,
                },
                Err(reason) => {
                    self.report(Report::Failed(SourceError::Other)).await;
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
    async fn follow(&mut self, connected: Connected) -> End {
        let client = connected.client.clone();
        let alarms = Alarms::default();
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
                    self.is_config_server = found.takes_reports;
                    self.report_unread(found.unread).await;
                    if !self
                        .watch(found.resources, &connected, &mut watches, &alarms)
                        .await
                    {
                        return End::Stop;
                    }
                    self.have_reported(&client, found.takes_reports, &mut watches);
                    DISCOVERY_INTERVAL
                }
                Err(error) if problems::refusal(&error) == Some(Refusal::Unauthorized) => {
                    self.report(Report::Failed(SourceError::Unauthorized)).await;
                    let found = self.missed(None).await;
                    self.report(Report::ServerTrouble(Some(found))).await;
                    return End::Reconnect;
                }
                Err(error) => {
                    let reason = problems::reason(&error);
                    self.report(Report::Failed(reason)).await;
                    let found = self.missed(Some(&causes::with_causes(&error))).await;
                    if self.expired.is_some() {
                        watches = Watches::default();
                    }
                    if !self.report(Report::ServerTrouble(Some(found))).await {
                        return End::Stop;
                    }
                    RETRY_INTERVAL.max(connected.throttle.left())
                }
            };
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                // Whether the server is away, or one of its connections broke.
                () = after(RETRY_INTERVAL, alarms.interrupted.notified()) => {}
                () = alarms.unauthorized.notified() => {
                    let found = self.missed(None).await;
                    self.report(Report::ServerTrouble(Some(found))).await;
                    return End::Reconnect;
                }
            }
        }
    }

    /// Reports groups that are served at other versions only, if they are not the same as before.
    async fn report_unread(&mut self, unread: Vec<UnreadGroup>) {
        let key = |group: &UnreadGroup| Key::from(format!("group {}", group.name));
        for gone in self.unread.iter().filter(|known| !unread.contains(known)) {
            self.report(Report::Trouble(key(gone), None)).await;
        }
        for new in unread.iter().filter(|found| !self.unread.contains(found)) {
            let found = problems::unread(self.server(), &new.name, [&new.served, &new.read]);
            self.report(Report::Trouble(key(new), Some(found))).await;
        }
        self.unread = unread;
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
        connected: &Connected,
        watches: &mut Watches,
        alarms: &Alarms,
    ) -> bool {
        let mut fresh: Vec<Watch> = Vec::new();
        let reads_state = self.settings.reads_workloads;
        let is_read = |of: &Resource| reads_state || !of.kind.is_state();
        for resource in resources.into_iter().filter(is_read) {
            for namespace in self.namespaces(&resource) {
                let one = (resource.clone(), namespace);
                let watch = self.prepare(one, &connected.throttle, alarms);
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
            watches.tasks.spawn(watch.run(connected.client.clone()));
        }
        is_heard
    }

    fn prepare(
        &mut self,
        (resource, namespace): (Resource, Option<String>),
        throttle: &Throttle,
        alarms: &Alarms,
    ) -> Watch {
        let is_selected = !UNSELECTED.contains(&resource.kind) && !resource.kind.is_state();
        let mut watch = Watch {
            number: self.number,
            server: self.server().clone(),
            is_config_server: self.is_config_server,
            selector: self.settings.selector.clone().filter(|_| is_selected),
            resource,
            namespace,
            known: Known::default(),
            gate: Arc::clone(&self.gate),
            saved_at: self.saved_at,
            restore_at: self.restore_at,
            reports: self.reports.clone(),
            throttle: throttle.clone(),
            alarms: alarms.clone(),
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
        let Some(saved) = load::load(self.file.as_ref(), "API server").await else {
            return;
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

/// Waits for something, and at least so long.
async fn after(pause: Duration, event: impl Future<Output = ()>) {
    tokio::time::sleep(pause).await;
    event.await;
}

/// What is watched with one client. The tasks end when this is dropped.
#[derive(Default)]
struct Watches {
    keys: std::collections::HashSet<Key>,
    is_reporting: bool,
    tasks: JoinSet<()>,
}
