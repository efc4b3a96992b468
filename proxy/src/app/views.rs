//! What the admin pages show, read from the snapshot and the registry when a page asks.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

use config_loader::ResourceSet;
use tokio::sync::{Notify, watch};

use super::{Settings, build_info, certificates, dump, readiness};
use crate::admin::AdminState;
use crate::admin::view::{
    ClusterView, EndpointView, EventView, LimitView, ListenerState, ListenerView, MemberView,
    PriorityView, QuarantineView, Readiness,
};
use crate::balance::EndpointIdx;
use crate::cluster::federation::Pool;
use crate::cluster::priorities::{Health, Share};
use crate::cluster::{Cluster, Federation, Live, RetryLimit};
use crate::compile::Survey;
use crate::control::{Found, Quarantine};
use crate::explain::{Question, explain};
use crate::identity::Identity;
use crate::listener::{ListenerStatus, ListenerStatusTable};
use crate::registry::{AFFINITY_ENTRIES_MAX, ClusterId, Journal};
use crate::runtime::drain::{Stage, Trigger};
use crate::snapshot::{ListenAddress, Listener, Service, Snapshot, SnapshotSlot};
use crate::telemetry::{
    AccessLog, ConnectionProtocol, Exposition, LogControl, MemberState, StatsRegistry, Telemetry,
};
use crate::tls::Store;

/// Where the pages take what they show.
pub struct Sources {
    /// The published snapshot.
    pub slot: SnapshotSlot,
    /// Certificates by where they come from.
    pub certificates: Arc<Store>,
    /// What happened to endpoints.
    pub journal: Arc<Journal>,
    /// What became of each listener.
    pub status_table: ListenerStatusTable,
    /// What is held at its last good version.
    pub quarantine: Quarantine,
    /// Starts the drain.
    pub drain: Trigger,
    /// Ends the process as SIGTERM does.
    pub quit: Arc<Notify>,
    /// Counters.
    pub telemetry: Arc<Telemetry>,
    /// The access log, for its counters.
    pub access_log: Arc<AccessLog>,
    /// What the snapshot was compiled from.
    pub found: watch::Receiver<Found>,
    /// What this proxy was started with.
    pub settings: Settings,
    /// Level of the process log.
    pub logging: LogControl,
}

impl Sources {
    /// Says whether traffic should come here.
    fn readiness(&self) -> impl Fn() -> Readiness + use<> {
        let (stage, status_table, slot) = (
            self.drain.clone(),
            self.status_table.clone(),
            Arc::clone(&self.slot),
        );
        let quarantine = Arc::clone(&self.quarantine);
        let (workers, allow_empty) = (self.telemetry.workers(), self.settings.allow_empty);
        let was_ready = AtomicBool::new(false);
        move || {
            if stage.stage() > Stage::Serving {
                return Readiness::Draining;
            }
            let wanted: Vec<_> = slot.load().listeners.keys().cloned().collect();
            let standing = readiness::Standing {
                wanted: &wanted,
                listeners: &status_table.listeners(),
                workers,
                allow_empty,
                refused: quarantined(&quarantine).len(),
            };
            let readiness = standing.readiness(was_ready.load(Ordering::Relaxed));
            was_ready.fetch_or(readiness == Readiness::Ready, Ordering::Relaxed);
            readiness
        }
    }

    /// The state that the admin server works with.
    pub fn admin(self) -> AdminState {
        let readiness = self.readiness();
        let (slot, status_table, found) = (self.slot, self.status_table, self.found);
        let (stage, identity) = (self.drain.clone(), Arc::new(self.settings.identity));
        let clusters = {
            let slot = Arc::clone(&slot);
            move || clusters(&slot.load())
        };
        let standing = {
            let slot = Arc::clone(&slot);
            move || standing(&slot.load())
        };
        let listeners = {
            let (slot, telemetry) = (Arc::clone(&slot), Arc::clone(&self.telemetry));
            move || listeners(&slot.load(), &status_table, &telemetry.stats, stage.stage())
        };
        let dump = {
            let (slot, found) = (Arc::clone(&slot), found.clone());
            let identity = Arc::clone(&identity);
            move || {
                let (resources, identity) = in_force(&found, &identity);
                dump::of(&slot.load(), &resources, &identity)
            }
        };
        let explain = move |question: &Question| {
            let (resources, identity) = in_force(&found, &identity);
            let survey = Survey::new(&resources, &identity);
            explain(question, &slot.load_full(), &survey)
        };
        let certificates = self.certificates;
        let journal = self.journal;
        let (quarantine, quit, trigger) = (self.quarantine, self.quit, self.drain);
        AdminState {
            build: build_info(),
            readiness: Box::new(readiness),
            certificates: Box::new(move || certificates::views(&certificates)),
            clusters: Box::new(clusters),
            events: Box::new(move || events(&journal)),
            listeners: Box::new(listeners),
            quarantined: Box::new(move || quarantined(&quarantine)),
            dump: Box::new(dump),
            explain: Box::new(explain),
            drain: Box::new(move || trigger.drain()),
            quit: Box::new(move || quit.notify_one()),
            stats: Exposition::new(self.telemetry, self.access_log)
                .with_members(standing)
                .with_log(self.logging.clone()),
            logging: self.logging,
            hosts: self.settings.admin_hosts,
        }
    }
}

/// The newest resources, and who the proxy is now.
fn in_force(found: &watch::Receiver<Found>, started: &Identity) -> (Arc<ResourceSet>, Identity) {
    let found = found.borrow();
    (Arc::clone(&found.set), found.members.identity(started))
}

/// Every cluster, by name.
pub(super) fn clusters(snapshot: &Snapshot) -> Vec<ClusterView> {
    let last = last_resorts(snapshot);
    let mut views: Vec<ClusterView> = snapshot
        .clusters
        .iter()
        .flatten()
        .map(|cluster| {
            let live = cluster.live();
            cluster_view(
                cluster,
                live.for_last(last.contains(&cluster.id())),
                snapshot,
            )
        })
        .collect();
    views.sort_by(|a, b| a.name.cmp(&b.name));
    views
}

/// The pools, over all services, that requests have no other than.
fn last_resorts(snapshot: &Snapshot) -> HashSet<ClusterId> {
    let clusters = snapshot.clusters.iter().flatten();
    let federations = clusters.filter_map(|cluster| cluster.federation.as_ref());
    let last = federations.flat_map(|federation| {
        let available = federation.available(|id| snapshot.cluster(id));
        federation.last_resorts(available)
    });
    last.collect()
}

fn events(journal: &Journal) -> Vec<EventView> {
    let now = journal.now();
    let events = journal.since(0).into_iter();
    events
        .map(|event| EventView {
            number: event.number,
            seconds_ago: now.since(event.at).as_secs_f64(),
            cluster: event.cluster.to_string(),
            endpoint: event.endpoint.map(String::from),
            kind: event.what.name().to_owned(),
            message: event.what.to_string(),
        })
        .collect()
}

/// `live` is what requests go by.
fn cluster_view(cluster: &Cluster, live: &Live, snapshot: &Snapshot) -> ClusterView {
    let now = cluster.state.journal.now();
    let shares = live.probabilities(cluster.endpoints());
    let numbered = cluster.endpoints().iter().zip(shares).enumerate();
    let endpoints = numbered.map(|(number, (endpoint, share))| EndpointView {
        priority: cluster.priority(EndpointIdx(number as u32)),
        share,
        unavailable_reason: endpoint.why_out(cluster.balance.outlier.as_ref(), now),
        warmup: cluster
            .warming(EndpointIdx(number as u32), now)
            .map(|warming| warming.to_string()),
        last_health_check: endpoint.check_results(now),
        ejections: endpoint.state.health.ejections(),
        address: endpoint.address.to_string(),
        weight: endpoint.weight,
        locality: endpoint.locality.to_string(),
        rq_active: u64::from(endpoint.state.active()),
        rq_total: endpoint.state.requests(),
        labels: (*endpoint.labels).clone(),
    });
    ClusterView {
        name: cluster.name().to_string(),
        load_balancer: cluster.balance.policy.name().to_owned(),
        health_check: cluster.check.as_ref().map(ToString::to_string),
        protocol: cluster.pool.speaks.name(cluster.protocol).to_owned(),
        limits: limits(cluster),
        tls: cluster.pool.tls.as_ref().map(ToString::to_string),
        sources: cluster.provenance.iter().map(ToString::to_string).collect(),
        priorities: priorities(cluster, live),
        member_clusters: cluster
            .federation
            .as_ref()
            .map_or_else(Vec::new, |federation| members(federation, snapshot)),
        no_cluster_reason: cluster.absence.map(|absence| absence.as_str().to_owned()),
        endpoints: endpoints.collect(),
        unresolved_hosts: cluster.unresolved.iter().map(|n| n.to_string()).collect(),
    }
}

/// What a cluster's limits are about, as it is now; what is not limited is not counted apart.
fn limits(cluster: &Cluster) -> Vec<LimitView> {
    let (state, limits) = (&cluster.state, &cluster.pool.limits);
    let view = |name: &str, active: usize, max: u32| LimitView {
        name: name.to_owned(),
        active: active as u64,
        max: (max < u32::MAX).then_some(max),
    };
    let at_endpoints = cluster.endpoints().iter();
    let at_endpoints = at_endpoints.map(|endpoint| endpoint.state.active() as usize);
    let requests = match limits.requests {
        u32::MAX => at_endpoints.sum(),
        _ => state.requests.active(),
    };
    let mut views = vec![
        view("connections", state.connections.open(), limits.connections),
        view("requests", requests, limits.requests),
    ];
    if limits.pending < u32::MAX {
        views.push(view(
            "pending_requests",
            state.pending.active(),
            limits.pending,
        ));
    }
    let retries = match cluster.retry_limit {
        RetryLimit::Count(max) => max,
        // that of a rule; the usual one is wide, and some retries do not count
        RetryLimit::Share {
            counts_unprocessed: true,
            ..
        } => {
            let now = cluster.retries_max(usize::MAX, || state.journal.now());
            u32::try_from(now).unwrap_or(u32::MAX)
        }
        RetryLimit::Share { .. } => u32::MAX,
    };
    views.push(view("retries", state.retries.active(), retries));
    if let Some(affinity_entries) = cluster.affinity_entries(state.journal.now()) {
        views.push(view(
            "session_affinity_entries",
            affinity_entries,
            AFFINITY_ENTRIES_MAX as u32,
        ));
    }
    views
}

/// How clusters stand in the services that several of them serve, for gauges. Two that share a name are added up.
fn standing(snapshot: &Snapshot) -> Vec<MemberState> {
    let mut states: Vec<MemberState> = Vec::new();
    for cluster in snapshot.clusters.iter().flatten() {
        let Some(federation) = &cluster.federation else {
            continue;
        };
        let mut parts = cluster.name().splitn(4, '|').skip(1);
        let (port, subset) = (parts.next(), parts.next());
        let first = states.len();
        let shares = federation.shares(federation.available(|id| snapshot.cluster(id)));
        for (pool, share) in federation.pools().iter().zip(shares) {
            let endpoints = snapshot.cluster(pool.cluster);
            let endpoints = endpoints.iter().flat_map(|cluster| cluster.endpoints());
            let usable = endpoints.filter(|endpoint| endpoint.state.health.is_usable());
            let available = usable.count();
            let own = &mut states[first..];
            if let Some(same) = own.iter_mut().find(|state| state.member == pool.name()) {
                same.share += share;
                same.available += available;
                continue;
            }
            states.push(MemberState {
                service: Arc::clone(&cluster.host),
                port: port.unwrap_or_default().to_owned(),
                subset: subset.unwrap_or_default().to_owned(),
                member: pool.name().to_owned(),
                share,
                available,
            });
        }
    }
    states
}

/// The pools of a service that several clusters serve.
fn members(federation: &Federation, snapshot: &Snapshot) -> Vec<MemberView> {
    let available = federation.available(|id| snapshot.cluster(id));
    let shares = federation.shares(available);
    let pools = federation.pools().iter().zip(shares).enumerate();
    let view = |(at, (pool, share)): (usize, (&Pool, f64))| MemberView {
        cluster_key: pool.member.to_string(),
        upstream_cluster: snapshot
            .cluster(pool.cluster)
            .map_or_else(String::new, |cluster| cluster.name().to_string()),
        tier: pool.tier,
        weight: pool.weight,
        share,
        available: available.has(at),
    };
    pools.map(view).collect()
}

fn priorities(cluster: &Cluster, live: &Live) -> Vec<PriorityView> {
    let levels = live.shares.iter().zip(&live.health).enumerate();
    let view = |(level, (share, health)): (usize, (&Share, &Health))| PriorityView {
        load: share.load,
        healthy: health.healthy,
        total: health.total,
        panic_mode: share.panic,
        localities: cluster.localities(level),
    };
    levels.map(view).collect()
}

/// Everything that accepts or has connections: what the snapshot asks for first, then what is on its way out.
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
            let status = statuses.iter().find(|status| status.key == listener.key);
            let address = &listener.key.address;
            let bound = status_table.address(&listener.key).map(ListenAddress::Ip);
            let bound = bound.unwrap_or_else(|| address.clone());
            let sources = listener.provenance.iter();
            ListenerView {
                name: listener.key.address.to_string(),
                address: bound.to_string(),
                protocol: listener.protocols.join(","),
                state: listener_state(status, stage),
                error: status.and_then(ListenerStatus::error).map(str::to_owned),
                cx_active: 0,
                hosts: hosts_of(listener),
                sources: sources.map(ToString::to_string).collect(),
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

/// What a listener serves: its virtual hosts, or the names of its TLS servers.
fn hosts_of(listener: &Listener) -> Vec<String> {
    match &listener.service {
        Service::Http(hosts) => {
            let hosts = hosts.virtual_hosts.iter();
            hosts.map(|host| host.name.to_string()).collect()
        }
        Service::Opaque(_) => Vec::new(),
        Service::Tls(chains) => {
            let names = chains.chains.iter().flat_map(|chain| &chain.names);
            names.map(|name| name.to_string()).collect()
        }
    }
}

/// Open connections by name of their listener; listeners without any are left out.
fn active_connections(stats: &StatsRegistry) -> BTreeMap<String, u64> {
    let listeners = stats.all_listener_stats();
    let active = listeners.iter().map(|listener| {
        let protocols = ConnectionProtocol::ALL.iter();
        let open = protocols.map(|protocol| listener.totals(*protocol).active());
        (listener.name().to_owned(), open.sum())
    });
    active.filter(|(_, open)| *open > 0).collect()
}

fn listener_state(status: Option<&ListenerStatus>, stage: Stage) -> ListenerState {
    match status {
        _ if stage >= Stage::Draining => ListenerState::Draining,
        Some(status) if status.error().is_some() => ListenerState::Failed,
        Some(status) if status.is_open() => ListenerState::Open,
        _ => ListenerState::Starting,
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
