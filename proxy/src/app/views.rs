//! What the admin pages show, read from the snapshot and the registry when a page asks.

use std::sync::{Arc, PoisonError};

use serde_json::{Value, json};
use tokio::sync::{Notify, watch};

use super::build_info;
use crate::admin::AdminState;
use crate::admin::view::{
    ClusterView, EndpointHealth, EndpointView, ListenerState, ListenerView, QuarantineView,
    Readiness,
};
use crate::cluster::Cluster;
use crate::compile::Survey;
use crate::control::{Found, Quarantine};
use crate::explain::explain;
use crate::identity::Identity;
use crate::listener::Board;
use crate::runtime::drain::{Stage, Trigger};
use crate::snapshot::{ListenerKey, Snapshot, SnapshotSlot};
use crate::telemetry::{AccessLog, Exposition, LogControl, Telemetry};

/// Where the pages take what they show.
pub struct Sources {
    /// The published snapshot.
    pub slot: SnapshotSlot,
    /// What became of each listener.
    pub board: Board,
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
    /// Who this proxy is.
    pub identity: Identity,
    /// Level of the process log.
    pub logging: LogControl,
}

impl Sources {
    /// The state that the admin server works with.
    pub fn admin(self) -> AdminState {
        let (slot, board, drain) = (self.slot, self.board, self.drain);
        let (of_clusters, of_listeners, of_dump) = (Arc::clone(&slot), Arc::clone(&slot), slot);
        let (of_ready, of_state) = (board.clone(), board);
        let ready_slot = Arc::clone(&of_clusters);
        let (of_explain, found, own) =
            (Arc::clone(&of_clusters), self.found, self.identity.clone());
        let (stage, trigger) = (drain.clone(), drain);
        let (quarantine, quit, identity) = (self.quarantine, self.quit, self.identity);
        AdminState {
            build: build_info(),
            readiness: Box::new(move || readiness(&stage, &of_ready, &ready_slot.load())),
            clusters: Box::new(move || clusters(&of_clusters.load())),
            listeners: Box::new(move || listeners(&of_listeners.load(), &of_state)),
            certificates: Box::new(Vec::new),
            quarantined: Box::new(move || quarantined(&quarantine)),
            dump: Box::new(move || dump(&of_dump.load(), &identity)),
            explain: Box::new(move |question| {
                let resources = Arc::clone(&found.borrow().set);
                explain(
                    question,
                    &of_explain.load_full(),
                    &Survey::new(&resources, &own),
                )
            }),
            drain: Box::new(move || trigger.drain()),
            quit: Box::new(move || quit.notify_one()),
            stats: Exposition::new(self.telemetry, self.access_log),
            logging: self.logging,
        }
    }
}

/// Ready once every listener of the snapshot is open or has failed; a failed one keeps nobody else from serving.
fn readiness(drain: &Trigger, board: &Board, snapshot: &Snapshot) -> Readiness {
    if drain.stage() > Stage::Serving {
        return Readiness::Draining;
    }
    let listeners = board.listeners();
    let settled = |key: &ListenerKey| {
        let status = listeners.iter().find(|status| status.key == *key);
        status.is_some_and(|status| status.is_open() || status.error().is_some())
    };
    match snapshot.listeners.keys().find(|key| !settled(key)) {
        Some(key) => Readiness::Starting {
            waiting_for: format!("listener {}", key.address),
        },
        None => Readiness::Ready,
    }
}

fn clusters(snapshot: &Snapshot) -> Vec<ClusterView> {
    let mut views: Vec<ClusterView> = snapshot
        .clusters
        .iter()
        .flatten()
        .map(|cluster| cluster_view(cluster))
        .collect();
    views.sort_by(|a, b| a.name.cmp(&b.name));
    views
}

fn cluster_view(cluster: &Cluster) -> ClusterView {
    ClusterView {
        name: cluster.name().to_string(),
        balancer: cluster.policy.name().to_owned(),
        sources: cluster.provenance.iter().map(ToString::to_string).collect(),
        endpoints: cluster
            .endpoints()
            .iter()
            .map(|endpoint| EndpointView {
                address: endpoint.address_text.to_string(),
                weight: endpoint.weight,
                priority: 0,
                locality: endpoint.locality.to_string(),
                cluster: String::new(),
                health: EndpointHealth::Healthy,
                active_requests: u64::from(endpoint.state.active()),
                labels: (*endpoint.labels).clone(),
            })
            .collect(),
    }
}

fn listeners(snapshot: &Snapshot, board: &Board) -> Vec<ListenerView> {
    let states = board.listeners();
    let views = snapshot.listeners.values().map(|listener| {
        let status = states.iter().find(|status| status.key == listener.key);
        let error = status
            .and_then(|status| status.error())
            .map(ToOwned::to_owned);
        ListenerView {
            name: listener.key.address.to_string(),
            address: listener.key.address.to_string(),
            protocol: "HTTP".to_owned(),
            state: if error.is_some() {
                ListenerState::Failed
            } else {
                ListenerState::Open
            },
            error,
            active_connections: 0,
            hosts: listener
                .virtual_hosts
                .iter()
                .map(|host| host.name.to_string())
                .collect(),
            sources: listener
                .provenance
                .iter()
                .map(ToString::to_string)
                .collect(),
        }
    });
    views.collect()
}

fn quarantined(quarantine: &Quarantine) -> Vec<QuarantineView> {
    let quarantine = quarantine.lock().unwrap_or_else(PoisonError::into_inner);
    let views = quarantine.iter().map(|quarantined| {
        let first = quarantined.diagnostics.first();
        QuarantineView {
            object: quarantined.object.to_string(),
            place: first.map_or_else(String::new, |found| {
                format!("{}:{}", found.place.file, found.place.line)
            }),
            errors: quarantined
                .diagnostics
                .iter()
                .map(|found| found.message.clone())
                .collect(),
            last_good_in_force: quarantined.in_force,
        }
    });
    views.collect()
}

/// The routes in force. No Secret is part of a snapshot, so none can be part of this.
fn dump(snapshot: &Snapshot, identity: &Identity) -> Value {
    let listeners = snapshot.listeners.values().map(|listener| {
        let hosts = listener.virtual_hosts.iter().map(|host| {
            let routes = host.routes.iter().zip(host.table.rules()).map(|(route, rule)| {
                let split = route.split.iter().flat_map(|split| split.entries()).map(|(weight, destination)| {
                    json!({"cluster": &*destination.name, "weight": weight})
                });
                json!({
                    "name": &*route.name,
                    "source": rule.provenance.to_string(),
                    "destinations": split.collect::<Vec<_>>(),
                    "timeoutMs": route.filters.timeout.map(|timeout| timeout.as_millis() as u64),
                })
            });
            json!({"host": &*host.name, "routes": routes.collect::<Vec<_>>()})
        });
        json!({
            "address": listener.key.address.to_string(),
            "sources": listener.provenance.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "virtualHosts": hosts.collect::<Vec<_>>(),
        })
    });
    json!({
        "generation": snapshot.generation,
        "identity": {
            "cluster": identity.cluster,
            "namespace": identity.namespace,
            "labels": identity.labels,
            "network": identity.network,
        },
        "listeners": listeners.collect::<Vec<_>>(),
        "clusters": clusters(snapshot),
    })
}
