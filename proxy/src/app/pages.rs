//! Data of the admin pages, read from the snapshot and the registry for each request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::SystemTime;

use config_loader::ResourceSet;
use tokio::sync::{Notify, watch};

use super::live::LiveSettings;
use super::origins::SettingOrigin;
use super::settings::{Settings, build_info};
use super::{certificates, dumped_resources, readiness};
use crate::admin::activity::{self, Activity};
use crate::admin::view::{
    FindingView, ListenerState, ListenerView, MutualTlsView, QuarantineView, Readiness,
    RestoredView, SourceView, SourcesView,
};
use crate::admin::{self, AdminState, LiveSources};
use crate::compile::peers::Peers;
use crate::compile::{Survey, own_pod};
use crate::control::{Findings, Quarantine, SourcesState};
use crate::explain::{Question, explain};
use crate::identity::{Identity, Mode};
use crate::listener::{ListenerStatus, ListenerStatusTable};
use crate::runtime::dates;
use crate::runtime::drain::{Stage, Trigger};
use crate::snapshot::{
    Direction, HttpHosts, ListenAddress, Listener, Service, Snapshot, SnapshotSlot,
};
use crate::telemetry::{
    ConnectionProtocol, Exposition, LogControl, StatsRegistry, Taps, Telemetry,
};
use crate::tls::Store;
use traffic::registry::Journal;

/// Sources of the data that the pages show.
pub struct Sources {
    /// The published snapshot.
    pub slot: SnapshotSlot,
    /// Store of certificates.
    pub certificates: Arc<Store>,
    /// Journal of endpoint events.
    pub journal: Arc<Journal>,
    /// Status of each listener.
    pub status_table: ListenerStatusTable,
    /// Resources held at their last good version.
    pub quarantine: Quarantine,
    /// Findings about the newest configuration.
    pub findings: Findings,
    /// Starts the drain.
    pub drain: Trigger,
    /// Ends the process as SIGTERM does.
    pub quit: Arc<Notify>,
    /// Counters.
    pub telemetry: Arc<Telemetry>,
    /// Readers of finished requests.
    pub taps: Taps,
    /// Metrics.
    pub exposition: Exposition,
    /// Resources that the snapshot was compiled from.
    pub found: watch::Receiver<SourcesState>,
    /// Settings that this proxy was started with.
    pub settings: Settings,
    /// Settings in effect.
    pub(super) live: LiveSettings,
    /// Level of the process log.
    pub logging: LogControl,
}

impl Sources {
    /// Makes the function that reports readiness for traffic.
    pub(super) fn readiness(&self) -> impl Fn() -> Readiness + use<> {
        let (stage, status_table, slot) = (
            self.drain.clone(),
            self.status_table.clone(),
            Arc::clone(&self.slot),
        );
        let quarantine = Arc::clone(&self.quarantine);
        let (workers, allow_empty) = (self.telemetry.workers(), self.settings.allow_empty);
        let ready_with_rejected = self.settings.ready_with_rejected;
        let (certificates, identity) = (
            Arc::clone(&self.certificates),
            self.settings.identity.clone(),
        );
        let found = self.found.clone();
        let was_ready = AtomicBool::new(false);
        move || {
            if stage.stage() > Stage::Serving {
                return Readiness::Draining;
            }
            let wanted: Vec<_> = slot.load().sockets().cloned().collect();
            let (source, rejected) = {
                let found = found.borrow();
                let rejected = found.quarantined.iter().find(|one| !one.in_force);
                let rejected = rejected.filter(|_| !ready_with_rejected);
                (found.awaited(), rejected.map(|one| one.object.to_string()))
            };
            let inputs = readiness::ReadinessInputs {
                wanted: &wanted,
                listeners: &status_table.listeners(),
                workers,
                allow_empty,
                refused: quarantined(&quarantine).len(),
                source,
                rejected,
                identity: missing_identity(&certificates, &identity),
            };
            let readiness = inputs.readiness(was_ready.load(Ordering::Relaxed));
            was_ready.fetch_or(readiness == Readiness::Ready, Ordering::Relaxed);
            readiness
        }
    }

    /// Makes the sources of the live page.
    fn live_sources(&self) -> LiveSources {
        let (slot, telemetry) = (Arc::clone(&self.slot), Arc::clone(&self.telemetry));
        let (journal, quarantine) = (Arc::clone(&self.journal), Arc::clone(&self.quarantine));
        let of_host = Arc::clone(&slot);
        let activity = move || Activity {
            version: build_info().version,
            rejected: quarantined(&quarantine),
            events: activity::newest(admin::event_views(&journal)),
            ..activity::activity(&slot.load(), &telemetry, &journal)
        };
        let clusters_of = move |host: &str| admin::clusters_of(&of_host.load(), host);
        LiveSources::new(Box::new(activity), Box::new(clusters_of))
    }

    /// Makes the state of the admin server.
    pub fn admin(self) -> AdminState {
        let (readiness, live) = (self.readiness(), self.live_sources());
        let (slot, status_table, found) = (self.slot, self.status_table, self.found);
        let (stage, identity) = (self.drain.clone(), Arc::new(self.settings.identity));
        let clusters = {
            let slot = Arc::clone(&slot);
            move || admin::cluster_views(&slot.load())
        };
        let listeners = {
            let (slot, telemetry) = (Arc::clone(&slot), Arc::clone(&self.telemetry));
            let (found, certificates) = (found.clone(), Arc::clone(&self.certificates));
            let identity = Arc::clone(&identity);
            move || {
                let (resources, identity) = newest(&found, &identity);
                let peers = Peers::of(&resources, &identity, &certificates);
                let snapshot = slot.load();
                let mut views =
                    listeners(&snapshot, &status_table, &telemetry.stats, stage.stage());
                for (view, listener) in views.iter_mut().zip(snapshot.listeners.values()) {
                    view.mutual_tls = mutual_tls(listener, &peers, &resources);
                }
                views
            }
        };
        let dump = {
            let (slot, found) = (Arc::clone(&slot), found.clone());
            let identity = Arc::clone(&identity);
            let live = (Arc::clone(&self.telemetry), Arc::clone(&self.quarantine));
            let settings = self.live.clone();
            move || {
                let (resources, identity) = newest(&found, &identity);
                let resources = dumped_resources::of(&resources);
                let sources = source_views(&live.0, &live.1);
                let dump = admin::dump(&slot.load(), resources, &identity, &sources);
                SettingOrigin::added_to(dump, &settings.newest().origins)
            }
        };
        let compressed = self.live.clone();
        let settings = self.live.exchange;
        let explain = move |question: &Question| {
            let (resources, identity) = newest(&found, &identity);
            let survey = Survey::new(&resources, &identity);
            explain(question, &slot.load_full(), &settings.load(), &survey)
        };
        let (certificates, journal, findings) = (self.certificates, self.journal, self.findings);
        let (quarantine, quit, trigger) = (self.quarantine, self.quit, self.drain.clone());
        let announced = self.drain;
        AdminState {
            build: build_info(),
            readiness: Box::new(readiness),
            certificates: Box::new(move || certificates::views(&certificates)),
            clusters: Box::new(clusters),
            live: Arc::new(live),
            events: Box::new(move || admin::event_views(&journal)),
            listeners: Box::new(listeners),
            quarantined: Box::new(move || quarantined(&quarantine)),
            findings: Box::new(move || finding_views(&findings)),
            dump: Box::new(dump),
            explain: Box::new(explain),
            announce: Box::new(move || announced.announce()),
            drain: Box::new(move || trigger.drain()),
            quit: Box::new(move || quit.notify_one()),
            stats: self.exposition,
            compresses: Box::new(move || compressed.newest().compresses),
            logging: self.logging,
            app_probers: self.settings.app_probers,
            hosts: self.settings.admin_hosts,
            taps: self.taps,
        }
    }
}

/// Returns the newest resources, and the proxy's identity with the current remote clusters and pod.
fn newest(
    found: &watch::Receiver<SourcesState>,
    started: &Identity,
) -> (Arc<ResourceSet>, Identity) {
    let found = found.borrow();
    let identity = found.identity(started);
    (
        Arc::clone(&found.set),
        own_pod::identity_in(&found.set, identity),
    )
}

/// Lists the listeners of the snapshot, then the closing ones.
fn listeners(
    snapshot: &Snapshot,
    status_table: &ListenerStatusTable,
    stats: &StatsRegistry,
    stage: Stage,
) -> Vec<ListenerView> {
    let statuses = status_table.listeners();
    let active = active_connections(stats);
    let mut views: Vec<ListenerView> = snapshot
        .listeners
        .values()
        .map(|listener| {
            let status = statuses.iter().find(|status| status.key == *listener.key);
            let address = &listener.key.address;
            let bound = status_table.address(&listener.key).map(ListenAddress::Ip);
            let bound = bound.unwrap_or_else(|| address.clone());
            let sources = listener.provenance.iter();
            ListenerView {
                name: listener.key.address.to_string(),
                address: bound.to_string(),
                protocol: listener.protocols.join(","),
                state: listener_state(status, stage, listener.direction),
                error: status.and_then(ListenerStatus::error).map(str::to_owned),
                cx_active: 0,
                hosts: hosts_of(listener),
                sources: sources.map(ToString::to_string).collect(),
                mutual_tls: None,
            }
        })
        .collect();
    let closing = statuses.iter().map(|status| status.key.address.to_string());
    let draining = closing.chain(active.keys().cloned());
    for name in draining.collect::<BTreeSet<String>>() {
        if views.iter().all(|view| view.name != name) {
            views.push(ListenerView {
                address: name.clone(),
                name,
                state: ListenerState::Draining,
                ..ListenerView::default()
            });
        }
    }
    for view in &mut views {
        view.cx_active = active.get(&view.name).copied().unwrap_or(0);
    }
    views
}

/// Mutual TLS of a listener for the workload of a sidecar, by PeerAuthentications.
fn mutual_tls(
    listener: &Listener,
    peers: &Peers<'_>,
    resources: &ResourceSet,
) -> Option<MutualTlsView> {
    // captured connections go on to the listener of the dialed address
    let is_first = matches!(listener.service, Service::Captured(_));
    if listener.direction != Direction::Inbound || is_first {
        return None;
    }
    let port = listener.key.address.ip().map_or(0, |at| at.port());
    let applied = peers.applied(resources, port);
    Some(MutualTlsView {
        mode: applied.mode.as_str(),
        source: applied.by.map(|by| by.to_string()),
        has_certificate: applied.has_certificate,
    })
}

/// Hosts of a listener: its virtual hosts, or the names of its TLS servers.
fn hosts_of(listener: &Listener) -> Vec<String> {
    match &listener.service {
        Service::Http(hosts) => names_of(hosts),
        Service::Detected(detected) => detected.http.as_deref().map_or_else(Vec::new, names_of),
        Service::Captured(_) | Service::HttpProxy | Service::Opaque(_) => Vec::new(),
        Service::Tls(chains) => {
            let names = chains.chains.iter().flat_map(|chain| &chain.names);
            names.map(|name| name.to_string()).collect()
        }
    }
}

fn names_of(hosts: &HttpHosts) -> Vec<String> {
    let hosts = hosts.virtual_hosts.iter();
    hosts.map(|host| host.name.to_string()).collect()
}

/// Counts open connections by the name of their listener; listeners without any are left out.
fn active_connections(stats: &StatsRegistry) -> BTreeMap<String, u64> {
    let listeners = stats.all_listener_stats();
    let active = listeners.iter().map(|listener| {
        let protocols = ConnectionProtocol::ALL.iter();
        let open = protocols.map(|protocol| listener.totals(*protocol).active());
        (listener.name().to_owned(), open.sum())
    });
    active.filter(|(_, open)| *open > 0).collect()
}

/// Describes the workload certificate that the proxy waits for: one that a server issues, or of a sidecar one that is
/// configured, of which no version is usable now.
fn missing_identity(certificates: &Store, identity: &Identity) -> Option<String> {
    let is_remote = identity.workload.kind.is_remote();
    let is_told = identity.mode == Mode::Sidecar && identity.is_told_mesh_certificates();
    if !is_remote && !is_told {
        return None;
    }
    match certificates.own() {
        Some(own) if own.in_force.is_some() => None,
        Some(own) => {
            let (source, problem) = (&own.source, own.problems.first());
            let why = problem.map_or_else(String::new, |problem| format!("; {problem}"));
            Some(format!("the certificate of the workload, {source}{why}"))
        }
        None => is_remote.then(|| "the certificate of the workload".to_owned()),
    }
}

fn listener_state(
    status: Option<&ListenerStatus>,
    stage: Stage,
    direction: Direction,
) -> ListenerState {
    let drains_from = match direction {
        Direction::Inbound => Stage::DrainingInbound,
        Direction::Gateway | Direction::Outbound => Stage::Draining,
    };
    match status {
        _ if stage >= drains_from => ListenerState::Draining,
        Some(status) if status.error().is_some() => ListenerState::Failed,
        Some(status) if status.is_open() => ListenerState::Open,
        _ => ListenerState::Starting,
    }
}

/// Lists the sources with their state, and the rejected resources.
fn source_views(telemetry: &Telemetry, quarantine: &Quarantine) -> SourcesView {
    let now = SystemTime::now();
    let sources = telemetry.propagation.sources().into_iter();
    let views = sources.map(|one| SourceView {
        source: one.source.to_string(),
        revision: one.revision.map(|revision| revision.to_string()),
        received: dates::rfc3339(one.received),
        applied: dates::rfc3339(one.applied),
        took_seconds: one.took.as_secs_f64(),
        restored: one.restored.map(|saved| RestoredView {
            saved: dates::rfc3339(saved),
            age_seconds: now.duration_since(saved).unwrap_or_default().as_secs(),
        }),
    });
    SourcesView {
        applied: views.collect(),
        rejected: quarantined(quarantine),
    }
}

fn quarantined(quarantine: &Quarantine) -> Vec<QuarantineView> {
    let quarantine = quarantine.lock().unwrap_or_else(PoisonError::into_inner);
    let views = quarantine.iter().map(|quarantined| {
        let first = quarantined.diagnostics.first();
        QuarantineView {
            object: quarantined.name.clone(),
            location: first.map_or_else(String::new, |found| found.location.to_string()),
            errors: quarantined
                .diagnostics
                .iter()
                .map(|found| found.message.clone())
                .collect(),
            last_good_version_in_use: quarantined.in_force,
        }
    });
    views.collect()
}

/// Maximum number of findings that a page shows.
const FINDINGS_MAX: usize = 1_000;

fn finding_views(findings: &Findings) -> Vec<FindingView> {
    let findings = findings.lock().unwrap_or_else(PoisonError::into_inner);
    let views = findings.iter().flatten().map(|found| FindingView {
        severity: found.severity.as_str(),
        code: found.code.0,
        object: found.object.as_ref().map(ToString::to_string),
        location: found.location.to_string(),
        field: found.field.clone(),
        message: found.message.clone(),
        help: found.help.clone(),
    });
    views.take(FINDINGS_MAX).collect()
}
