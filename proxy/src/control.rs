//! I/O and timers around `compile`: sources, publishing, DNS.
//!
//! One task on the control runtime turns resources into the snapshot in effect. It never runs a request.

mod advice;

pub mod ejection_sweep;

pub mod certificates;

pub mod dns;

pub mod health;

mod held;

pub mod identity_source;

pub mod key_sets;

pub mod monitor;

mod panics;

pub mod propagation;
pub mod proxy_config;

pub mod publish;

pub mod mesh_config;
pub mod pod_labels;
pub mod remote_clusters;

pub mod reported_state;

pub mod selected;

mod sources;

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeSet, HashSet};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use config_loader::catalog::unscoped;
use config_loader::diagnostic::codes::common::CM036;
use config_loader::diagnostic::codes::identity::{ID001, ID003};
use config_loader::diagnostic::codes::istio::{TL015, TL020};
use config_loader::resource::istio::MeshConfig;
use config_loader::resource::istio::authorization_policy::PolicyMode;
use config_loader::{
    Diagnostic, Fleet, Kind, ObjectRef, Quarantined, Received, ResourceSet, Severity, Update,
};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior};

use crate::compile::certificates::Scope;
use crate::compile::security;
use crate::identity::{Identity, Mode};
use crate::snapshot::{Direction, ListenerKey, Service, Snapshot};
use crate::telemetry::Telemetry;
use crate::tls::Problem;
use crate::tls::material::date;
use advice::Advice;
use certificates::{Delivered, Directories};
use dns::Follower;
pub use held::HeldObject;
use mesh_config::MeshConfigState;
use pod_labels::PodLabels;
use propagation::Propagation;
use proxy_config::ProxyConfigValues;
use publish::Publisher;
use remote_clusters::RemoteClustersState;
use reported_state::ReportedState;
use traffic::registry::Registry;

/// Kinds that name no certificates.
const WITHOUT_CERTIFICATES: [Kind; 13] = [
    Kind::AuthorizationPolicy,
    Kind::BackendTrafficPolicy,
    Kind::EndpointSlice,
    Kind::GRPCRoute,
    Kind::HTTPRoute,
    Kind::ProxyConfig,
    Kind::RequestAuthentication,
    Kind::ServiceEntry,
    Kind::TCPRoute,
    Kind::TLSRoute,
    Kind::Telemetry,
    Kind::VirtualService,
    Kind::WorkloadEntry,
];

/// Interval at which unused state is dropped.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// Interval between log lines about policies that deny what they select because they were never valid.
const ALERT_INTERVAL: Duration = Duration::from_secs(60);

/// Interval between log lines about an identity that is waited for.
const IDENTITY_INTERVAL: Duration = Duration::from_secs(30);

/// Maximum number of policies that such a line names.
const NAMES_MAX: usize = 10;

/// Interval at which certificate files are read without a notification, and validity periods are checked.
const CERTIFICATES_INTERVAL: Duration = Duration::from_secs(5);

/// Delay after a change to certificate files, since a chain and its key are written one after the other.
const CERTIFICATES_SETTLE: Duration = Duration::from_millis(100);

/// Delay after a change of the mesh configuration, so that resources that were written with it take effect with it.
const MESH_CONFIG_SETTLE: Duration = Duration::from_millis(200);

/// Capacity of the queue of names with changed addresses; further changes wait.
pub const DNS_CHANGES_MAX: usize = 1_024;

/// Result of the sources' last look.
#[derive(Clone, Default)]
pub struct SourcesState {
    /// Valid objects.
    pub set: Arc<ResourceSet>,
    /// All findings.
    pub diagnostics: Vec<Diagnostic>,
    /// Objects whose newest version is rejected.
    pub quarantined: Vec<Quarantined>,
    /// Sources that the first complete configuration still waits for.
    pub waits_for: Option<String>,
    /// Whether updates wait for that as well, and not only the first configuration.
    pub is_held: bool,
    /// Whether an update has arrived after the initial load of the files.
    pub has_changed: bool,
    /// Newest update of each source, and whether it is in effect.
    pub propagation: Propagation,
    /// State of the remote clusters file.
    pub members: RemoteClustersState,
    /// State of the mesh configuration.
    pub mesh: MeshConfigState,
    /// Labels of the pod; `None` before the first update, which means those of the start.
    pub labels: Option<PodLabels>,
}

impl SourcesState {
    /// Stores a change of the resources.
    pub fn apply_update(&mut self, update: Update, root_namespace: &str) {
        self.set = update.set;
        self.diagnostics = update.diagnostics;
        self.quarantined = update.quarantined;
        self.waits_for = update.waits_for;
        self.wait_for_policies(root_namespace);
        let is_change = !update.changed.is_empty();
        self.propagation.arrived(update.revisions, is_change);
        self.has_changed = true;
    }

    /// Waits for a text that cannot be read and may have security policies, unless a source is waited for already: the first
    /// configuration without them would serve what they forbid. Every configuration waits for a policy that may deny any
    /// workload of the mesh.
    pub fn wait_for_policies(&mut self, root_namespace: &str) {
        let unscoped = unscoped(&self.set, root_namespace);
        self.is_held = unscoped.is_some();
        if self.waits_for.is_some() {
            return;
        }
        if let Some(policy) = unscoped {
            let why = "which was never valid, and whose workloads cannot be read";
            self.waits_for = Some(format!("a valid version of {policy}, {why}"));
            return;
        }
        let mut found = self.diagnostics.iter();
        let unreadable = found.find(|found| found.may_be_policy);
        self.waits_for = unreadable.map(|found| {
            let file = &found.location.file;
            format!("{file}, which has security policies and cannot be read")
        });
    }

    /// Returns what the first complete configuration still waits for.
    pub fn awaited(&self) -> Option<String> {
        let mesh = self.mesh.is_awaited;
        let mesh = || mesh.then(|| "the ConfigMap with the mesh configuration".to_owned());
        self.waits_for.clone().or_else(mesh)
    }

    /// Returns the number of security policies that are not enforced.
    fn unenforced(&self) -> u64 {
        let found = self.diagnostics.iter();
        found.filter(|found| found.code == CM036).count() as u64
    }

    /// Returns all objects and files whose newest version is rejected.
    fn held(&self) -> Vec<HeldObject> {
        let objects = self.quarantined.iter().map(|refused| HeldObject {
            kind: refused.object.kind.as_str(),
            name: refused.object.to_string(),
            in_force: refused.in_force,
            diagnostics: refused.diagnostics.clone(),
        });
        let files = [
            (
                "RemoteClustersFile",
                "--clusters",
                &self.members.diagnostics,
            ),
            ("MeshConfig", "--mesh-config", &self.mesh.diagnostics),
        ];
        let files = files.map(|(kind, flag, found)| held_file(kind, flag, found));
        objects.chain(files.into_iter().flatten()).collect()
    }

    /// Returns the started identity with the current settings of all files.
    pub fn identity(&self, started: &Identity) -> Identity {
        let mut identity = started.clone();
        if let Some(config) = &self.mesh.config {
            identity.mesh_config = Arc::clone(config);
        }
        if let Some(followed) = &self.mesh.followed {
            identity.follow(followed);
        }
        let told = self.members.settings.as_deref();
        let told = told.unwrap_or(&started.members);
        identity.members = remote_clusters::with_networks(told, &identity.mesh_config.networks);
        if let Some(labels) = &self.labels {
            identity.labels.clone_from(&labels.0);
        }
        identity
    }

    /// Returns the fleet that findings refer to, for a proxy started with this identity.
    pub fn fleet(&self, started: &Identity) -> Fleet {
        remote_clusters::fleet(&self.identity(started))
    }
}

/// Returns a settings file if its current version is rejected.
fn held_file(
    kind: &'static str,
    flag: &'static str,
    diagnostics: &[Diagnostic],
) -> Option<HeldObject> {
    let errors = diagnostics.iter();
    let errors = errors.filter(|found| found.severity == Severity::Error);
    let diagnostics: Vec<Diagnostic> = errors.cloned().collect();
    let file = &diagnostics.first()?.location.file;
    Some(HeldObject {
        kind,
        name: format!("{flag} {file}"),
        in_force: true,
        diagnostics,
    })
}

/// Objects and files whose newest version is rejected, shared with the admin page.
pub type Quarantine = Arc<Mutex<Vec<HeldObject>>>;

/// State of the control task.
pub struct Control {
    /// Compiles and publishes snapshots.
    pub publisher: Publisher,
    /// Follows DNS names.
    pub follower: Follower,
    /// Notified of every change of the sources.
    pub found: watch::Receiver<SourcesState>,
    /// Receives every name whose addresses have changed.
    pub names: mpsc::Receiver<Arc<str>>,
    /// Tells workers which listeners to open.
    pub listeners: WantedListeners,
    /// Objects and files whose newest version is rejected.
    pub quarantine: Quarantine,
    /// Reports the state in effect to config servers.
    pub reported: ReportedState,
    /// Shared state that outlives snapshots.
    pub registry: Arc<Registry>,
    /// Counters.
    pub telemetry: Arc<Telemetry>,
    /// Watched directories of certificate files.
    pub directories: Directories,
    /// Identity that a server has delivered; without a sender if files are its source.
    pub delivered: watch::Receiver<Delivered>,
    /// Diagnostics that have been logged.
    pub logged: LoggedDiagnostics,
    /// Settings that the proxy was started with.
    pub started: Started,
}

/// Settings that the proxy was started with.
#[derive(Clone, Debug, Default)]
pub struct Started {
    /// Values of its ProxyConfigs.
    pub configs: ProxyConfigValues,
    /// Findings about settings of this proxy alone, and about ProxyConfigs that flags contradict.
    pub findings: Vec<Diagnostic>,
    /// Namespaces that servers are asked for; empty for all.
    pub read_namespaces: Vec<String>,
    /// Findings about values of the mesh configuration and of settings of this proxy that flags contradict.
    pub contradicted: Vec<Diagnostic>,
}

/// Tells workers which listeners to open, and to check their connections again when a security policy changes.
#[derive(Debug)]
pub struct WantedListeners {
    sender: watch::Sender<Arc<BTreeSet<ListenerKey>>>,
    /// Hash of what decides about open connections at the last notification of workers.
    admitted: u64,
}

impl From<watch::Sender<Arc<BTreeSet<ListenerKey>>>> for WantedListeners {
    fn from(sender: watch::Sender<Arc<BTreeSet<ListenerKey>>>) -> Self {
        let admitted = 0;
        Self { sender, admitted }
    }
}

impl WantedListeners {
    fn follow(&mut self, snapshot: &Snapshot) {
        let wanted: Arc<BTreeSet<ListenerKey>> = Arc::new(snapshot.sockets().cloned().collect());
        let admitted = admitted(snapshot);
        self.sender.send_if_modified(|listeners| {
            let differs = **listeners != *wanted;
            *listeners = wanted;
            differs || admitted != self.admitted
        });
        self.admitted = admitted;
    }
}

/// Diagnostics about the newest configuration: about its resources, and about certificates.
pub type Findings = Arc<Mutex<[Vec<Diagnostic>; 2]>>;

/// Texts of the diagnostics that have been logged, and the diagnostics for readers.
#[derive(Debug, Default)]
pub struct LoggedDiagnostics {
    logged: [HashSet<String>; 2],
    advice: Advice,
    shown: Findings,
}

impl LoggedDiagnostics {
    /// Makes the diagnostics known to readers as well.
    pub fn showing(findings: &Findings) -> Self {
        Self {
            shown: Arc::clone(findings),
            ..Self::default()
        }
    }

    /// Logs the diagnostics about the resources that were not logged before.
    fn log_resources(&mut self, found: Vec<Diagnostic>) {
        self.log(0, found);
    }

    /// Logs the diagnostics about certificates that were not logged before.
    fn log_certificates(&mut self, found: Vec<Diagnostic>) {
        self.log(1, found);
    }

    fn log(&mut self, part: usize, found: Vec<Diagnostic>) {
        log_new(&mut self.logged[part], &found);
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown[part] = found;
    }
}

impl Control {
    /// Puts the newest resources into effect.
    pub fn apply(&mut self) {
        let mut found = self.found.borrow_and_update().clone();
        let identity = self.publisher.identity();
        let config = found.mesh.config.as_ref().unwrap_or(&identity.mesh_config);
        let config = Arc::clone(config);
        let read = &self.started.read_namespaces;
        let invisible = selected::findings(&found.set, &config, identity, read);
        found.diagnostics.extend(invisible);
        found.set = self.publisher.select(found.set, &config);
        let held = found.held();
        let kinds = held.iter().map(|refused| refused.kind);
        self.telemetry.control.set_quarantined(kinds);
        self.telemetry.control.set_unenforced(found.unenforced());
        let left_out = found.diagnostics.iter();
        let left_out = left_out.filter(|one| is_left_out(one)).count();
        self.telemetry.control.set_unsupported(left_out as u64);
        let quarantined = quarantined_policies(&found, self.publisher.identity());
        self.telemetry.control.set_quarantined_policies(quarantined);
        self.hold(held);
        let is_incomplete = found.awaited().is_some();
        let mut diagnostics = found.diagnostics;
        diagnostics.extend(found.members.diagnostics);
        diagnostics.extend(found.mesh.diagnostics);
        diagnostics.extend(self.started.findings.iter().cloned());
        let contradicted = found.mesh.contradicted;
        diagnostics.extend(contradicted.unwrap_or_else(|| self.started.contradicted.clone()));
        let configs = ProxyConfigValues::of(&found.set, self.publisher.identity());
        let changed = configs.finding(&self.started.configs);
        let is_pending = found.mesh.needs_restart || changed.is_some();
        diagnostics.extend(changed);
        self.telemetry.control.set_restart_pending(is_pending);
        self.logged.log_resources(diagnostics);
        if self.publisher.identity().mode == Mode::Sidecar {
            let workloads = sources::workloads(&found.set);
            self.telemetry.plaintext.set_workloads(workloads);
        }
        let awaits_identity = self.awaits_identity() && !self.publisher.has_any();
        if awaits_identity {
            self.look_at_certificates(&found.set);
        }
        if found.is_held || awaits_identity || (is_incomplete && !self.publisher.has_any()) {
            // A partial configuration would misroute requests: no listener opens before the first one is complete.
            return;
        }
        let settings = found.members.settings.as_ref();
        let mut knows_more = settings.is_some_and(|settings| {
            let settings = remote_clusters::with_networks(settings, &config.networks);
            self.publisher.set_remote_clusters(&settings)
        });
        knows_more |= self.publisher.set_mesh_config(&config);
        let followed = found.mesh.followed.as_ref();
        knows_more |= followed.is_some_and(|followed| self.publisher.set_followed(followed));
        let labels = found.labels.as_ref();
        knows_more |= labels.is_some_and(|labels| self.publisher.set_labels(labels));
        let has_others = self.names_other_certificates(&found.set, knows_more)
            && self.look_at_certificates(&found.set);
        let before = self.publisher.generation();
        // findings may change while the resources stay the same
        if knows_more || has_others || !self.publisher.has_published(&found.set) {
            let snapshot = self.publisher.publish(found.set);
            self.follow(&snapshot);
            if snapshot.generation == before {
                return; // a fault while compiling: nothing of it is in effect
            }
        }
        let propagation = &self.telemetry.propagation;
        found.propagation.in_effect(propagation, Received::now());
        self.report();
    }

    /// Reports the state in effect to config servers.
    fn report(&self) {
        let generation = self.publisher.generation();
        let propagation = &self.telemetry.propagation;
        let held = self.quarantine.lock();
        let held = held.unwrap_or_else(PoisonError::into_inner);
        self.reported.update(generation, propagation, &held);
    }

    /// Returns whether resources may name other certificates than those in effect. Changes of the files themselves are
    /// noticed separately.
    fn names_other_certificates(&self, now: &ResourceSet, knows_more: bool) -> bool {
        let before = self.publisher.resources();
        let mut kinds = Kind::ALL
            .iter()
            .filter(|kind| !WITHOUT_CERTIFICATES.contains(kind));
        let is_same = kinds.all(|kind| before.is_same(now, *kind));
        knows_more || !is_same || !self.publisher.has_published(before)
    }

    /// Whether a server is the source of the workload's identity and has not delivered the first one.
    fn awaits_identity(&self) -> bool {
        let kind = self.publisher.identity().workload.kind;
        kind.is_remote() && self.delivered.borrow().is_awaited()
    }

    /// Reads the certificates that these resources name. Returns whether a certificate in effect has changed.
    fn look_at_certificates(&mut self, resources: &ResourceSet) -> bool {
        self.publisher.find_mesh_files();
        let delivered = self.delivered.borrow_and_update().clone();
        let identity = self.publisher.identity();
        let scope = Scope::Proxy(identity);
        let store = self.publisher.certificates();
        let look = certificates::look(store, resources, &delivered, scope, certificates::now());
        self.logged.log_certificates(look.findings);
        self.directories.watch(look.directories);
        let states = certificates::states(store);
        if look.changed {
            for state in states.iter().filter(|state| state.expires.is_some()) {
                let (source, expires) = (&state.source, state.expires.unwrap_or_default());
                tracing::info!(%source, expires = date(expires), "certificate in use");
            }
        }
        let own = certificates::own_state(store, identity);
        self.telemetry.control.set_identity(own);
        self.telemetry.control.set_certificates(states);
        look.changed
    }

    /// Returns the reason why the proxy cannot have its configured identity, if there is one.
    pub fn wrong_identity(&self) -> Option<Problem> {
        let store = self.publisher.certificates();
        certificates::of_another_workload(self.publisher.identity(), store)
    }

    /// Reads certificates again after a possible change, and recompiles if one has changed.
    fn renew_certificates(&mut self) {
        if !self.publisher.has_any() {
            return self.apply(); // the first configuration may have waited for them
        }
        let resources = Arc::clone(self.publisher.resources());
        if self.look_at_certificates(&resources) {
            let snapshot = self.publisher.recompile();
            self.follow(&snapshot);
        }
    }

    /// Follows changes until the future is dropped.
    pub async fn run(mut self) {
        let mut sweep = tokio::time::interval(SWEEP_INTERVAL);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut certificates = tokio::time::interval(CERTIFICATES_INTERVAL);
        certificates.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut alerts = tokio::time::interval(ALERT_INTERVAL);
        let first = Instant::now() + IDENTITY_INTERVAL;
        let mut waits = tokio::time::interval_at(first, IDENTITY_INTERVAL);
        loop {
            tokio::select! {
                changed = self.found.changed() => match changed {
                    Ok(()) => {
                        if self.has_other_mesh_config() {
                            tokio::time::sleep(MESH_CONFIG_SETTLE).await;
                        }
                        self.apply();
                    }
                    Err(_) => return, // the source is gone, and with it everything
                },
                Some(_) = self.names.recv() => {
                    while self.names.try_recv().is_ok() {} // all that changed by now are compiled together
                    let snapshot = self.publisher.recompile();
                    self.follow(&snapshot);
                }
                () = self.directories.changed() => {
                    tokio::time::sleep(CERTIFICATES_SETTLE).await;
                    self.renew_certificates();
                }
                () = identity_source::changed(&mut self.delivered) => self.renew_certificates(),
                _ = waits.tick() => self.log_awaited_identity(),
                _ = alerts.tick() => self.alert(),
                _ = certificates.tick() => self.renew_certificates(),
                _ = sweep.tick() => {
                    self.registry.sweep();
                    self.telemetry.stats.sweep(std::time::Instant::now());
                }
            }
            self.report();
        }
    }

    /// Returns whether the mesh configuration differs from the one in effect.
    fn has_other_mesh_config(&self) -> bool {
        let found = self.found.borrow();
        let config = found.mesh.config.as_ref();
        let publisher = &self.publisher;
        let differs = |config: &Arc<MeshConfig>| *config != publisher.identity().mesh_config;
        publisher.has_any() && config.is_some_and(differs)
    }

    /// Logs that the first identity is waited for.
    fn log_awaited_identity(&self) {
        if self.awaits_identity() && !self.publisher.has_any() {
            let why = self.publisher.certificates().own();
            let why = why.and_then(|own| own.problems.into_iter().next());
            let why = why
                .map(|problem| problem.with_its_fix())
                .unwrap_or_default();
            tracing::warn!("{ID001}: no listener opens before the first certificate: {why}");
        }
    }

    /// Logs that the certificate of the workload has expired, that policies deny what they select because they were never
    /// valid, and that updates wait for one.
    fn alert(&self) {
        if let Some(problem) = certificates::expired_identity(self.publisher.certificates()) {
            tracing::error!("{ID003}: {problem}; connections of the mesh fail until it is renewed");
        }
        let found = self.found.borrow();
        if let Some(awaited) = found.waits_for.as_ref().filter(|_| found.is_held) {
            tracing::error!("no update is applied: waiting for {awaited}");
        }
        let [_, _, count] = self.telemetry.control.state().policies;
        if count > 0 {
            let policies =
                security::selected(self.publisher.resources(), self.publisher.identity());
            let denying = policies.filter(|policy| policy.spec.mode == PolicyMode::Denying);
            let names = denying.take(NAMES_MAX).map(|policy| policy.id.to_string());
            let policies = names.collect::<Vec<_>>().join(", ");
            tracing::error!(
                count,
                policies,
                "policies that were never valid deny what they select"
            );
        }
    }

    /// Stores the rejected objects, and logs each once.
    fn hold(&self, refused: Vec<HeldObject>) {
        let mut held = self
            .quarantine
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for refused in &refused {
            let same = |known: &HeldObject| {
                known.name == refused.name && known.in_force == refused.in_force
            };
            if held.iter().any(same) {
                continue;
            }
            let object = &refused.name;
            if refused.in_force {
                tracing::warn!(%object, "resource rejected: its last good version stays in effect");
            } else {
                tracing::warn!(%object, "resource rejected: no version of it was valid");
            }
        }
        *held = refused;
    }

    fn follow(&mut self, snapshot: &Snapshot) {
        let publisher = &self.publisher;
        let certificates = publisher.certificates();
        let (resources, identity) = (publisher.resources(), publisher.identity());
        (self.logged.advice).log(resources, identity, certificates, snapshot);
        self.follower
            .set_retry_max(identity.mesh_config.dns_retry_max);
        self.follower.follow(&snapshot.dns_names);
        self.listeners.follow(snapshot);
        tracing::info!(
            generation = snapshot.generation,
            listeners = snapshot.listeners.len(),
            "configuration applied"
        );
        if snapshot.listeners.is_empty()
            && let Some(idle) = self.publisher.idle()
        {
            let (gateway, reason) = (&idle.provenance, &idle.reason);
            tracing::warn!("nothing listens: {gateway} {reason}");
        }
    }
}

/// Whether an expression or operator is left out because it is not supported; an error rejects its resource instead.
fn is_left_out(found: &Diagnostic) -> bool {
    found.severity == Severity::Warning && [TL015, TL020].contains(&found.code)
}

/// Returns the number of AuthorizationPolicies that apply to the proxy and whose newest version is rejected, so that the
/// last good one stays.
fn quarantined_policies(found: &SourcesState, identity: &Identity) -> u64 {
    let rejected = found.quarantined.iter().filter(|one| one.in_force);
    let rejected: HashSet<&ObjectRef> = rejected.map(|one| &one.object).collect();
    let policies = security::selected(&found.set, identity);
    policies
        .filter(|policy| rejected.contains(&policy.id))
        .count() as u64
}

/// Hash of what decides about open connections: the admission policies of a workload's listeners, and TLS servers.
fn admitted(snapshot: &Snapshot) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (key, listener) in &snapshot.listeners {
        if listener.direction == Direction::Inbound {
            (key, listener.service.admits()).hash(&mut hasher);
        }
        if let Service::Tls(chains) = &listener.service {
            (key, chains.servers).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Logs diagnostics that were not logged before.
fn log_new(logged: &mut HashSet<String>, diagnostics: &[Diagnostic]) {
    let mut now = HashSet::with_capacity(diagnostics.len());
    for diagnostic in diagnostics {
        let line = one_line(diagnostic);
        if !logged.contains(&line) {
            match diagnostic.severity {
                Severity::Error => tracing::error!("{line}"),
                Severity::Warning => tracing::warn!("{line}"),
                // what is in effect together, not only what was skipped
                Severity::Note if diagnostic.code.0.starts_with('X') => tracing::info!("{line}"),
                Severity::Note => tracing::debug!("{line}"),
            }
        }
        now.insert(line);
    }
    *logged = now;
}

fn one_line(diagnostic: &Diagnostic) -> String {
    let place = &diagnostic.location;
    let field = &diagnostic.field;
    let field = if field.is_empty() {
        String::new()
    } else {
        format!(" {field}")
    };
    let help = diagnostic
        .help
        .as_deref()
        .map_or_else(String::new, |help| format!("; {help}"));
    let related = diagnostic.related.iter();
    let related: String = related
        .map(|(location, what)| format!("; {what}: {location}"))
        .collect();
    format!(
        "{place}: {}{field}: {}{help}{related}",
        diagnostic.code, diagnostic.message
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logged_finding_names_related_locations() {
        let text = b"kind: Gateway\nmetadata: {name: \"a, namespace: b}\nspec: {}\nother: \"c\"\n";
        let mut found = config_loader::Diagnostics::default();
        config_loader::load_bytes("a.yaml", text, &mut found);
        let line = one_line(found.iter().next().unwrap());
        assert!(
            line.ends_with("; this is not closed: a.yaml:2:11"),
            "{line}"
        );
    }
}
