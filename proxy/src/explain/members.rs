//! Kubernetes clusters that serve a destination: tiers, shares, endpoints, and failover.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::Request;

use super::answer::{ClusterUsed, EndpointUsed, MemberUsed};
use super::endpoints::endpoints;
use crate::exchange::message::local_reply::LocalReply;
use crate::exchange::settings::FAILOVER_REPLAY_BYTES;
use crate::identity::Replay;
use crate::snapshot::Snapshot;
use traffic::cluster::federation::{Pool, PoolSet};
use traffic::cluster::priorities::Health;
use traffic::cluster::{Cluster, Federation};
use traffic::registry::{ClusterId, exclusion};

/// Returns the members of a federation in the order of their use, and all of their endpoints.
pub(super) fn members(
    federation: &Federation,
    snapshot: &Snapshot,
    probability: f64,
) -> (Vec<MemberUsed>, Vec<EndpointUsed>) {
    let cluster = |pool: &Pool| snapshot.cluster(pool.cluster);
    let shares = federation.shares(serving(federation, snapshot));
    let last = last_resorts(federation, snapshot);
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by_key(|at| federation.pools()[*at].tier);
    let mut members = Vec::new();
    let mut all = Vec::new();
    for at in order {
        let (pool, share) = (&federation.pools()[at], shares[at]);
        let Some(cluster) = cluster(pool) else {
            continue;
        };
        let (healthy, total) = health(cluster);
        members.push(MemberUsed {
            cluster_key: pool.member.to_string(),
            upstream_cluster: cluster.name().to_string(),
            tier: pool.tier,
            weight: pool.weight,
            share,
            healthy,
            total,
            unresolved_hosts: cluster.unresolved.len() as u32,
        });
        let live = cluster.live();
        let live = live.tables_for(last.contains(&pool.cluster));
        let own = endpoints(cluster, live, share, probability);
        all.extend(own.map(|endpoint| EndpointUsed {
            cluster_key: Some(pool.member.to_string()),
            ..endpoint
        }));
    }
    (members, all)
}

/// Returns the pools with an available endpoint. Before the proxy has run, unresolved names of endpoints count as
/// available.
fn available(federation: &Federation, snapshot: &Snapshot) -> PoolSet {
    let available = federation.available(|id| snapshot.cluster(id));
    let never_ran = snapshot.generation == 0;
    PoolSet::of(federation.pools(), |pool| {
        let cluster = snapshot.cluster(pool.cluster);
        let has_names = cluster.is_some_and(|cluster| !cluster.unresolved.is_empty());
        let at = federation.position(pool.cluster);
        at.is_some_and(|at| available.has(at)) || never_ran && has_names
    })
}

/// Returns the pools that serve now: those with an available endpoint, else those of the first tier in panic mode.
fn serving(federation: &Federation, snapshot: &Snapshot) -> PoolSet {
    let available = available(federation, snapshot);
    if !available.is_empty() {
        return available;
    }
    let last = last_resorts(federation, snapshot);
    PoolSet::of(federation.pools(), |pool| {
        let panics = |cluster: &Arc<Cluster>| cluster.live().tables_for(true).panics();
        last.contains(&pool.cluster) && snapshot.cluster(pool.cluster).is_some_and(panics)
    })
}

/// Returns the pools that may be in panic mode now.
fn last_resorts(federation: &Federation, snapshot: &Snapshot) -> Vec<ClusterId> {
    let available = federation.available(|id| snapshot.cluster(id));
    federation.last_resorts(available).collect()
}

/// Returns the reason why no pool serves, if none does, as in the access log.
pub(super) fn no_endpoint_reason(federation: &Federation, snapshot: &Snapshot) -> Option<String> {
    if !serving(federation, snapshot).is_empty() {
        return None;
    }
    let pools = federation.pools().iter();
    let clusters = pools.filter_map(|pool| snapshot.cluster(pool.cluster));
    let endpoints = clusters.clone().flat_map(|cluster| cluster.endpoints());
    let out = endpoints.fold(0, |all, endpoint| all | endpoint.state.health.reasons());
    let mut unresolved = clusters.filter(|cluster| !cluster.unresolved.is_empty());
    Some(
        match out {
            out if out & exclusion::EJECTED != 0 => {
                "every endpoint of every cluster is out (all_ejected)"
            }
            out if out & exclusion::UNHEALTHY != 0 => {
                "every endpoint of every cluster is out (unhealthy)"
            }
            _ if unresolved.next().is_some() => return None, // told by their names
            _ => "no cluster has an endpoint",
        }
        .to_owned(),
    )
}

/// Describes the failover of a request that fails in the tier in use, or of a connection. `None` if there is only one
/// tier, or no cluster serves.
pub(super) fn failover(
    federation: &Federation,
    snapshot: &Snapshot,
    request: Option<&Request<()>>,
) -> Option<String> {
    let pools = federation.pools();
    let tiers: BTreeSet<u8> = pools.iter().map(|pool| pool.tier).collect();
    let shares = federation.shares(serving(federation, snapshot));
    let at = shares.iter().position(|share| *share > 0.0)?;
    let tier = pools[at].tier;
    if tiers.len() < 2 {
        return None;
    }
    let fails = match request {
        Some(request) => format!("if tier {tier} fails ({})", failures(federation, request)),
        None => format!("if no connection to tier {tier} succeeds"),
    };
    let available = available(federation, snapshot);
    let later = tiers.range(tier.saturating_add(1)..).filter_map(|later| {
        let of_tier = pools.iter().enumerate();
        let keys = of_tier.filter(|(at, pool)| pool.tier == *later && available.has(*at));
        let keys: Vec<&str> = keys.map(|(_, pool)| &*pool.member).collect();
        (!keys.is_empty()).then(|| format!("tier {later} ({})", keys.join(", ")))
    });
    let later: Vec<String> = later.collect();
    let nothing = if federation.replay == Replay::Off {
        "--failover-replay=off turns replays off"
    } else if tiers.last() == Some(&tier) {
        "it is the last tier"
    } else if later.is_empty() {
        "no later tier has an available endpoint"
    } else {
        let (later, most) = (later.join(", then "), FAILOVER_REPLAY_BYTES / 1024);
        return Some(match request {
            Some(_) => format!(
                "{fails}, a request is replayed in {later}, with a body of up to {most} KiB (or --failover-replay-bytes)"
            ),
            None => format!("{fails}, the connection is made to {later}"),
        });
    };
    Some(match request {
        Some(_) => format!("if tier {tier} fails, no request is replayed: {nothing}"),
        None => format!("{fails}, no connection is made to another tier: {nothing}"),
    })
}

/// Restricts requests of a remote cluster to endpoints of the local cluster. Returns the local reply if it has none.
pub(super) fn restrict_to_local_cluster(
    used: &mut ClusterUsed,
    cluster: &Cluster,
    federation: &Federation,
    probability: f64,
) -> Option<String> {
    let own = federation.position(cluster.id());
    let own = own.map(|at| &*federation.pools()[at].member);
    for member in &mut used.member_clusters {
        let is_own = own == Some(&*member.cluster_key);
        member.share = if is_own { 1.0 } else { 0.0 };
    }
    for endpoint in &mut used.endpoints {
        endpoint.share = endpoint.share.map(|_| 0.0);
        endpoint.probability = endpoint.probability.map(|_| 0.0);
    }
    let live = cluster.live();
    let shares = own
        .iter()
        .flat_map(|_| endpoints(cluster, &live, 1.0, probability));
    for known in shares {
        let is_it = |shown: &&mut EndpointUsed| {
            shown.cluster_key.as_deref() == own && shown.address == known.address
        };
        if let Some(shown) = used.endpoints.iter_mut().find(is_it) {
            (shown.share, shown.probability) = (known.share, known.probability);
        }
    }
    used.failover = Some(
        "sent by a remote cluster (x-strait-from-cluster): only the local cluster serves it, whatever the policy says, \
         and it is not replayed"
            .to_owned(),
    );
    let serves = own.is_some() && cluster.live().is_available();
    let LocalReply { status, flags, .. } = LocalReply::LOOP;
    let (status, why) = (status.as_u16(), "the local cluster has no endpoint for it");
    (!serves).then(|| format!("unavailable: requests get {status} {flags}; {why}"))
}

/// Describes the failures after which a request is replayed in the next tier.
fn failures(federation: &Federation, request: &Request<()>) -> String {
    let method = request.method();
    match federation.replay {
        Replay::Fsm => "no connection or response, a status above 499".to_owned(),
        _ if method.is_idempotent() => {
            format!("no connection or response; 5xx, since {method} may be repeated")
        }
        _ => format!("no connection or response, 502 to 504; no other 5xx, since it is {method}"),
    }
}

/// Returns the number of available endpoints, and of all.
fn health(cluster: &Cluster) -> (u32, u32) {
    let live = cluster.live();
    let sum = |of: fn(&Health) -> u32| live.health.iter().map(of).sum();
    (sum(|health| health.healthy), sum(|health| health.total))
}
