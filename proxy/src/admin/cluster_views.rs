//! Views of clusters, read from a snapshot.

use std::collections::HashSet;
use std::sync::Arc;

use super::view::{ClusterView, EndpointView, LimitView, MemberView, PriorityView};
use crate::runtime::clock;
use crate::snapshot::Snapshot;
use crate::telemetry::{
    Counter, DestinationState, LimitState, MemberState, ServiceStates, UNAVAILABLE_MAX,
};
use traffic::balance::EndpointIdx;
use traffic::cluster::federation::Pool;
use traffic::cluster::priorities::{Health, Share};
use traffic::cluster::{Cluster, Federation, PickTables, RetryLimit};
use traffic::registry::{
    AFFINITY_ENTRIES_MAX, ClusterId, ClusterState, Health as EndpointHealth, Registry,
};

/// Returns the views of all clusters, by name.
pub fn clusters(snapshot: &Snapshot) -> Vec<ClusterView> {
    views(snapshot, |_| true)
}

/// Returns the views of the clusters of a service, by name.
pub fn clusters_of(snapshot: &Snapshot, host: &str) -> Vec<ClusterView> {
    views(snapshot, |cluster| *cluster.host == *host)
}

fn views(snapshot: &Snapshot, is_shown: impl Fn(&Cluster) -> bool) -> Vec<ClusterView> {
    let last = last_resorts(snapshot);
    let mut views: Vec<ClusterView> = snapshot
        .clusters
        .iter()
        .flatten()
        .filter(|cluster| is_shown(cluster))
        .map(|cluster| {
            let live = cluster.live();
            cluster_view(
                cluster,
                live.tables_for(last.contains(&cluster.id())),
                snapshot,
            )
        })
        .collect();
    views.sort_by(|a, b| a.name.cmp(&b.name));
    views
}

/// Returns the pools that may enter panic mode, over all federated services.
fn last_resorts(snapshot: &Snapshot) -> HashSet<ClusterId> {
    let clusters = snapshot.clusters.iter().flatten();
    let federations = clusters.filter_map(|cluster| cluster.federation.as_ref());
    let last = federations.flat_map(|federation| {
        let available = federation.available(|id| snapshot.cluster(id));
        federation.last_resorts(available)
    });
    last.collect()
}

/// Makes the view of a cluster; `live` has the tables that requests use.
fn cluster_view(cluster: &Cluster, live: &PickTables, snapshot: &Snapshot) -> ClusterView {
    let now = cluster.state.journal.at(clock::now());
    let shares = live.probabilities(cluster);
    let numbered = cluster.endpoints().iter().zip(shares).enumerate();
    let endpoints = numbered.map(|(number, (endpoint, share))| EndpointView {
        priority: cluster.priority(EndpointIdx(number as u32)),
        share,
        unavailable_reason: endpoint.exclusion_reason(cluster.balance.outlier.as_ref(), now),
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
        sources: cluster
            .sources
            .list()
            .iter()
            .map(ToString::to_string)
            .collect(),
        priorities: priorities(cluster, live),
        member_clusters: cluster
            .federation
            .as_ref()
            .map_or_else(Vec::new, |federation| members(federation, snapshot)),
        no_cluster_reason: cluster.absence.map(|absence| absence.as_str().to_owned()),
        endpoints: endpoints.collect(),
        rebuilt_because: cluster.cause.as_ref().map(ToString::to_string),
        unresolved_hosts: cluster.unresolved.iter().map(|n| n.to_string()).collect(),
    }
}

/// Returns the limits of a cluster with their current values.
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
        // limit of a rule; the default is wide, and some retries are not counted
        RetryLimit::Share {
            counts_unprocessed: true,
            ..
        } => {
            let now = cluster.retries_max(usize::MAX, || state.journal.at(clock::now()));
            u32::try_from(now).unwrap_or(u32::MAX)
        }
        RetryLimit::Share { .. } => u32::MAX,
    };
    views.push(view("retries", state.retries.active(), retries));
    if let Some(affinity_entries) = cluster.affinity_entries(state.journal.at(clock::now())) {
        views.push(view(
            "session_affinity_entries",
            affinity_entries,
            AFFINITY_ENTRIES_MAX as u32,
        ));
    }
    views
}

/// Returns the state of destinations, and of the Kubernetes clusters of federated services, for gauges.
pub fn service_states(snapshot: &Snapshot, registry: &Registry) -> ServiceStates {
    ServiceStates {
        destinations: destination_states(snapshot, registry),
        members: remote_cluster_states(snapshot),
    }
}

/// Returns the endpoints and limits of the destinations that have had a request.
fn destination_states(snapshot: &Snapshot, registry: &Registry) -> Vec<DestinationState> {
    let clusters = snapshot.clusters.iter().flatten();
    let counted = clusters.map(|cluster| (cluster, draining(cluster, registry)));
    let used = counted.filter(|(cluster, draining)| {
        let mut endpoints = cluster.endpoints().iter();
        let has_events = *draining > 0 || cluster.state.events.is_used();
        has_events || endpoints.any(|endpoint| endpoint.state.requests() > 0)
    });
    let state = |(cluster, draining): (&Arc<Cluster>, usize)| {
        let mut parts = cluster.name().splitn(4, '|').skip(1);
        let [port, subset] = [parts.next(), parts.next()].map(Option::unwrap_or_default);
        let count = |is_in: fn(&EndpointHealth) -> bool| {
            let endpoints = cluster.endpoints().iter();
            endpoints.filter(|one| is_in(&one.state.health)).count()
        };
        let limits = limits(cluster).into_iter().map(|limit| LimitState {
            name: limit.name,
            in_use: limit.active,
            limit: limit.max,
        });
        DestinationState {
            service: Arc::clone(&cluster.host),
            port: port.to_owned(),
            subset: subset.to_owned(),
            available: count(EndpointHealth::is_usable),
            ejected: count(EndpointHealth::is_ejected),
            unhealthy: count(|health| !health.is_usable() && !health.is_ejected()),
            draining,
            unavailable: unavailable(cluster),
            limits: limits.collect(),
            events: events(&cluster.state),
        }
    };
    used.map(state).collect()
}

/// Returns the first endpoints that are ejected or unhealthy.
fn unavailable(cluster: &Cluster) -> Vec<(String, bool)> {
    let endpoints = cluster.endpoints().iter();
    let found = endpoints.filter(|endpoint| !endpoint.state.health.is_usable());
    found
        .take(UNAVAILABLE_MAX)
        .map(|endpoint| {
            let is_ejected = endpoint.state.health.is_ejected();
            (endpoint.address.to_string(), is_ejected)
        })
        .collect()
}

/// Returns the number of endpoints that have left a cluster and still have requests.
fn draining(cluster: &Cluster, registry: &Registry) -> usize {
    let mut busy = registry.busy(&cluster.state.name);
    if !busy.is_empty() {
        let endpoints = cluster.endpoints().iter();
        let known: HashSet<u64> = endpoints.map(|endpoint| endpoint.state.id).collect();
        busy.retain(|id| !known.contains(id));
    }
    busy.len()
}

/// Returns the events of a destination that have occurred.
fn events(state: &ClusterState) -> Vec<(Counter, u64)> {
    let counts = Counter::ALL.iter().filter_map(|counter| {
        let count = state.events.get(counter.of_destination()?);
        (count > 0).then_some((*counter, count))
    });
    counts.collect()
}

/// Returns the share and the available endpoints of each Kubernetes cluster of a federated service, for gauges.
/// Clusters with the same name are summed.
fn remote_cluster_states(snapshot: &Snapshot) -> Vec<MemberState> {
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

/// Returns the Kubernetes clusters of a federated service.
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

fn priorities(cluster: &Cluster, live: &PickTables) -> Vec<PriorityView> {
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
