//! Follows one API server: connects, discovers its resources, and starts a watch of each.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use kube::Client;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::client::{Clients, Connected};
use super::discovery::{Discovered, Readiness, Resource, Selection, UnreadGroup, discover};
use super::gateway_needs::{GatewayNeeds, danger_without};
use super::pod_gate::PodGate;
use super::problems::{self, Refusal};
use super::referred::ReferredNamespaces;
use super::reporting;
use super::settings::{ApiServer, KubernetesSettings};
use super::throttle::Throttle;
use super::watch::{Alarms, Known, Watch, lock};
use crate::diagnostic::Diagnostic;
use crate::kind::Kind;
use crate::source::ages::SourceAges;
use crate::source::content::Reader;
use crate::source::errors::SourceError;
use crate::source::shared_parts::SharedParts;
use crate::source::state::StateFile;
use crate::source::stream::report::{Key, Message, Report, Restored, States};
use crate::source::stream::{causes, load, pauses};
use unserved::{GROUPS, Step, Unserved};
use watches::{Watches, after};

mod unserved;
mod watches;

/// Longest wait at startup for the list of a resource of which objects were saved.
const LIST_MAX: Duration = Duration::from_secs(10);

/// Kinds that are read from remote clusters. All other kinds apply in their own cluster only.
const REMOTE: [Kind; 5] = [
    Kind::EndpointSlice,
    Kind::Namespace,
    Kind::Node,
    Kind::Pod,
    Kind::Service,
];

/// Kinds that the label selector does not limit: users label only their own resources.
const UNSELECTED: [Kind; 4] = [
    Kind::ConfigMap,
    Kind::EndpointSlice,
    Kind::Secret,
    Kind::Service,
];

/// Kinds that the proxy can run without if the credentials do not allow reading them. A TLS server without its
/// certificate has a diagnostic of its own. Security policies are not among them: without them, the proxy could serve
/// what they forbid. Of the kinds of gateway.networking.k8s.io, those are not that Gateways need ([`GatewayNeeds`]).
const OPTIONAL: [Kind; 10] = [
    Kind::BackendTrafficPolicy,
    Kind::ConfigMap,
    Kind::Ingress,
    Kind::IngressClass,
    Kind::Namespace,
    Kind::Node,
    Kind::Pod,
    Kind::ProxyConfig,
    Kind::Secret,
    Kind::Telemetry,
];

/// API server that is followed.
pub(super) struct Server {
    settings: Arc<KubernetesSettings>,
    number: usize,
    /// File of the saved state (`--state`).
    file: Option<StateFile>,
    clients: Clients,
    reports: mpsc::Sender<Message>,
    /// State of the proxy, for config servers.
    states: Option<States>,
    known: HashMap<Key, Known>,
    gate: Arc<Mutex<PodGate>>,
    is_settled: bool,
    /// Whether this is a config server, which accepts reports.
    is_config_server: bool,
    /// Time when the saved state was written; `None` once the server has replaced it.
    saved_at: Option<SystemTime>,
    /// Time at which saved objects take the place of a list that did not arrive.
    restore_at: Instant,
    /// Kinds that the server does not serve.
    unserved: Unserved,
    /// Start of the current outage; `None` while the server is reachable and all watches respond.
    lost: Option<Instant>,
    /// Groups that are served at other versions only.
    unread: Vec<UnreadGroup>,
    /// Number of EndpointSlices removed because the server was unreachable for longer than the endpoint TTL.
    expired: Option<usize>,
    ages: SourceAges,
    /// Further namespaces whose Secrets and ConfigMaps are followed.
    referred: ReferredNamespaces,
    /// Gateways of the Gateway API, and the kinds that they need.
    needs: GatewayNeeds,
}

/// Reason to close a connection.
enum End {
    /// Connect again, with the credentials read again.
    Reconnect,
    /// The receiver of the reports is gone.
    Stop,
}

impl Server {
    pub(super) fn new(
        settings: Arc<KubernetesSettings>,
        number: usize,
        file: Option<StateFile>,
        clients: Clients,
        shared: SharedParts,
    ) -> Server {
        let SharedParts {
            reports,
            states,
            ages,
        } = shared;
        let referred = ReferredNamespaces::new(&settings.secrets_namespace);
        let gate = PodGate::new(settings.servers[number].name(), settings.workload_wait);
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
            unserved: Unserved::default(),
            lost: None,
            unread: Vec::new(),
            expired: None,
            ages,
            referred,
            needs: GatewayNeeds::default(),
        }
    }

    fn server(&self) -> &ApiServer {
        &self.settings.servers[self.number]
    }

    /// Follows the server until the receiver of the reports is gone.
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
            tokio::time::sleep(pauses.next().unwrap_or(self.settings.times.retry)).await;
        }
    }

    /// Follows the server with one client.
    async fn follow(&mut self, connected: Connected) -> End {
        self.ages.follow(self.server().name(), &connected.signs);
        let alarms = Alarms::default();
        let mut watches = Watches::default();
        let mut is_back = false;
        loop {
            let only = match &self.server().cluster {
                Some(_) => Selection::Kinds(&REMOTE),
                None if self.settings.resources.is_empty() => Selection::All,
                None => Selection::Resources(&self.settings.resources),
            };
            let asks_readiness = !self.unserved.is_known();
            let answer_max = match self.saved_at {
                // What was saved takes effect before the proxy starts without it.
                Some(_) if !self.is_settled => self.settings.times.answer / 2,
                _ => self.settings.times.answer,
            };
            let found = discover(&connected.client, only, asks_readiness, answer_max).await;
            let was_back = std::mem::replace(&mut is_back, found.is_ok());
            let pause = match found {
                Ok(mut found) => {
                    let without = &self.settings.without;
                    found.resources.retain(|one| !without.contains(&one.kind));
                    if was_back && self.lost.is_some() && self.unserved.is_known() {
                        let found = problems::silent(self.server(), &connected.signs.silent());
                        self.report(Report::ServerTrouble(Some(found))).await;
                    }
                    self.answered(found, &connected, &mut watches, &alarms)
                        .await
                }
                Err(error) if problems::refusal(&error) == Some(Refusal::Unauthorized) => {
                    self.report(Report::Failed(SourceError::Unauthorized)).await;
                    let found = self.missed(None).await;
                    self.report(Report::ServerTrouble(Some(found))).await;
                    return End::Reconnect;
                }
                Err(error) => self.failed(&error, &connected, &mut watches).await,
            };
            let Some(pause) = pause else {
                return End::Stop;
            };
            if let Some(end) = self.rest(pause, is_back, &connected, &alarms).await {
                return end;
            }
        }
    }

    /// Handles a discovery response. Returns the time until the next discovery; `None` if the receiver of the reports
    /// is gone.
    async fn answered(
        &mut self,
        found: Discovered,
        connected: &Connected,
        watches: &mut Watches,
        alarms: &Alarms,
    ) -> Option<Duration> {
        if self.expired.take().is_some() {
            watches.clear(connected);
        }
        self.is_settled = true;
        self.is_config_server = found.takes_reports;
        self.report_unread(found.unread).await;
        self.unserved.take_in(found.readiness, &found.resources);
        let is_heard = self
            .watch(found.resources, connected, watches, alarms)
            .await;
        self.have_reported(&connected.client, found.takes_reports, watches);
        let pause = self.settle_unserved(found.readiness, &watches.keys).await;
        is_heard.then_some(pause)
    }

    /// Handles a failed discovery. Returns the time until the next attempt; `None` if the receiver of the reports is
    /// gone.
    async fn failed(
        &mut self,
        error: &kube::Error,
        connected: &Connected,
        watches: &mut Watches,
    ) -> Option<Duration> {
        let reason = problems::reason(error);
        self.report(Report::Failed(reason)).await;
        let found = self.missed(Some(&causes::with_causes(error))).await;
        if matches!(reason, SourceError::Timeout | SourceError::Unreachable) {
            // Connections may be dead that look alive.
            connected.signs.cut();
        }
        if self.expired.is_some() {
            watches.clear(connected);
        }
        let is_heard = self.report(Report::ServerTrouble(Some(found))).await;
        let pause = self.settings.times.retry.max(connected.throttle.left());
        is_heard.then_some(pause)
    }

    /// Waits until the next discovery is due. Returns `Some` if the connection must be closed.
    async fn rest(
        &mut self,
        pause: Duration,
        is_back: bool,
        connected: &Connected,
        alarms: &Alarms,
    ) -> Option<End> {
        let mut pause = std::pin::pin!(tokio::time::sleep(pause));
        loop {
            tokio::select! {
                () = &mut pause => return None,
                () = connected.signs.all_heard(), if is_back && self.lost.is_some() => {
                    self.lost = None;
                    self.report(Report::ServerTrouble(None)).await;
                }
                // Whether the server is away, or one of its connections broke.
                () = after(self.settings.times.retry, alarms.interrupted.notified()) => return None,
                () = alarms.referred.notified() => return None,
                () = alarms.unauthorized.notified() => {
                    let found = self.missed(None).await;
                    self.report(Report::ServerTrouble(Some(found))).await;
                    return Some(End::Reconnect);
                }
            }
        }
    }

    /// Reports groups that are served at other versions only, if they changed.
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

    /// Starts to send reports, if the server accepts them.
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

    /// Starts the watches that are missing. Returns whether the receiver of the reports is still there.
    async fn watch(
        &mut self,
        resources: Vec<Resource>,
        connected: &Connected,
        watches: &mut Watches,
        alarms: &Alarms,
    ) -> bool {
        self.referred.serve(resources.iter().map(|of| of.kind));
        let mut fresh: Vec<Watch> = Vec::new();
        let (all, namespaces) = (
            self.settings.reads_workloads,
            self.settings.reader == Reader::StatusWriter,
        );
        let is_read = |of: &Resource| {
            all || !of.kind.is_state() || (namespaces && of.kind == Kind::Namespace)
        };
        for resource in resources.into_iter().filter(is_read) {
            for namespace in self.namespaces(&resource) {
                let watch = self.prepare(resource.clone(), namespace, &connected.throttle, alarms);
                if !watches.keys.contains(&watch.key()) {
                    fresh.push(watch);
                }
            }
        }
        let keys: Vec<Key> = fresh.iter().map(Watch::key).collect();
        watches.keys.extend(keys.iter().cloned());
        // With a saved state nothing is missing that was known.
        let groups = self.unserved.awaited().filter(|_| self.saved_at.is_none());
        let awaited = keys.into_iter().chain(groups).collect();
        let is_heard = self.report(Report::Watching(awaited)).await;
        for watch in fresh {
            connected.signs.expect(watch.path());
            watches.tasks.spawn(watch.run(connected.client.clone()));
        }
        is_heard
    }

    fn prepare(
        &mut self,
        resource: Resource,
        namespace: Option<String>,
        throttle: &Throttle,
        alarms: &Alarms,
    ) -> Watch {
        let is_referred = namespace.as_ref().is_some_and(|namespace| {
            let is_certificate = matches!(resource.kind, Kind::ConfigMap | Kind::Secret);
            is_certificate && *namespace != self.settings.secrets_namespace
        });
        let is_selected = !UNSELECTED.contains(&resource.kind) && !resource.kind.is_state();
        let mut watch = Watch {
            number: self.number,
            server: self.server().clone(),
            is_config_server: self.is_config_server,
            is_optional: OPTIONAL.contains(&resource.kind)
                || (resource.kind.is_gateway_api() && danger_without(resource.kind).is_none())
                || self.settings.optional.contains(&resource.kind),
            needs: self.needs.clone(),
            is_missed: self.settings.misses(resource.kind) || is_referred,
            reader: self.settings.reader,
            is_referred,
            referred: self.settings.reads_referred.then(|| self.referred.clone()),
            seconds: self.settings.times.watch_seconds,
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

    /// Returns the namespaces in which a resource is watched, one watch each. The entry `None` means all namespaces.
    fn namespaces(&self, resource: &Resource) -> Vec<Option<String>> {
        let named = &self.settings.namespaces;
        match (resource.is_namespaced, resource.kind) {
            (false, _) => vec![None],
            (true, Kind::ConfigMap | Kind::Secret) => {
                let all = self.referred.of(resource.kind).into_iter();
                all.map(Some).collect()
            }
            (true, _) if named.is_empty() => vec![None],
            (true, _) => named.iter().cloned().map(Some).collect(),
        }
    }

    /// Handles an unreachable server, for `reason` or because of rejected credentials. Removes endpoints whose TTL has
    /// expired. Returns the diagnostic.
    async fn missed(&mut self, reason: Option<&str>) -> Diagnostic {
        if !self.is_settled {
            self.restore().await;
        }
        let lost = *self.lost.get_or_insert_with(Instant::now);
        let is_remote = self.server().cluster.is_some();
        let ttl = self.settings.endpoint_ttl.filter(|_| is_remote);
        if self.expired.is_none() && ttl.is_some_and(|ttl| lost.elapsed() >= ttl) {
            self.expired = self.remove_endpoint_slices().await;
        }
        match (self.expired, reason) {
            (Some(count), _) => problems::expired(self.server(), count),
            (None, Some(reason)) => problems::unreachable(self.server(), reason, self.is_settled),
            (None, None) => problems::unauthorized(self.server()),
        }
    }

    /// Reads the saved state, for use if the server does not respond.
    async fn load(&mut self) {
        let Some(saved) = load::load(self.file.as_ref(), "API server").await else {
            return;
        };
        self.saved_at = Some(saved.at);
        self.report(Report::Saved).await;
        for (name, text) in saved.objects {
            if let Some(key) = self.key_of(&name) {
                self.referred.restore(&key);
                lock(self.known.entry(key).or_default()).save(name.into(), text);
            }
        }
    }

    /// Returns the watch that an object belongs to; `None` if these settings do not watch it.
    fn key_of(&self, name: &str) -> Option<Key> {
        let path = name.strip_prefix(&self.server().name())?;
        self.settings.watch_of(path.strip_prefix('/')?)
    }

    /// Applies all saved objects in place of the server's.
    async fn restore(&mut self) {
        let Some(at) = self.saved_at else {
            return;
        };
        let mut changes = Vec::new();
        for known in self.known.values() {
            let saved = lock(known).restore().into_iter();
            changes.extend(saved.map(|(name, text)| (name, Some(text.into()))));
        }
        let key = None;
        self.report(Report::Restored(Restored { key, at, changes }))
            .await;
    }

    /// Keeps or removes the saved objects of kinds that are not served. Returns the time until the next discovery.
    async fn settle_unserved(
        &mut self,
        readiness: Option<Readiness>,
        served: &HashSet<Key>,
    ) -> Duration {
        if let Some(readiness) = readiness {
            let known = self.known.iter();
            let missing =
                known.filter(|(key, known)| !served.contains(*key) && !lock(known).is_empty());
            let missing = missing.map(|(key, _)| Key::clone(key)).collect();
            for step in self.unserved.decide(readiness, missing) {
                match step {
                    Step::Keep(key) => self.keep(key).await,
                    Step::LetGo(key) => {
                        let gone = self.forget(&key).into_iter();
                        let gone = gone.map(|name| (name, None)).collect();
                        self.report(Report::Changes(gone)).await;
                        self.report_settled(key).await;
                    }
                }
            }
            if self.unserved.awaited().is_none() {
                self.report_settled(GROUPS.into()).await;
            }
            if self.unserved.is_known() {
                self.saved_at = None;
            }
        }
        self.unserved.pause(self.settings.times.discovery)
    }

    /// Applies the saved objects of a resource in place of its list.
    async fn keep(&self, key: Key) {
        let (Some(known), Some(at)) = (self.known.get(&key), self.saved_at) else {
            return;
        };
        let changes = lock(known).restore().into_iter();
        let changes = changes
            .map(|(name, text)| (name, Some(text.into())))
            .collect();
        self.report(Report::Watching(vec![Key::clone(&key)])).await;
        let key = Some(key);
        self.report(Report::Restored(Restored { key, at, changes }))
            .await;
    }

    /// Reports that a resource is listed, or that there is nothing to list, and that it is settled.
    async fn report_settled(&self, key: Key) {
        self.report(Report::Listed(Key::clone(&key))).await;
        self.report(Report::Settled(key)).await;
    }

    /// Removes all EndpointSlices, and the deleted pods that only they kept. Returns the number of slices; `None` for
    /// none.
    async fn remove_endpoint_slices(&mut self) -> Option<usize> {
        let mut gone = Vec::new();
        for key in self.known.keys() {
            if key.starts_with("endpointslices.") {
                gone.extend(self.forget(key).into_iter().map(|name| (name, None)));
            }
        }
        let slices = gone.iter().filter(|(name, _)| !name.contains("/pods/"));
        let count = slices.count();
        self.report(Report::Changes(gone)).await;
        (count > 0).then_some(count)
    }

    /// Removes the objects of a resource. Returns their documents, with those of deleted pods that only their slices
    /// kept.
    fn forget(&self, key: &Key) -> Vec<Arc<str>> {
        let known = self.known.get(key);
        let mut gone = known.map_or_else(Vec::new, |known| lock(known).forget());
        let mut gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let of_slices = gone.iter().filter(|_| key.starts_with("endpointslices."));
        let pods: Vec<_> = of_slices
            .flat_map(|name| gate.slice_gone(name).gone)
            .collect();
        gone.extend(pods);
        gone
    }

    /// Sends a report. Returns whether the receiver is still there.
    async fn report(&self, report: Report) -> bool {
        self.reports.send((self.number, report)).await.is_ok()
    }
}
