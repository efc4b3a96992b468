//! Which clusters serve a destination that several have: what was left out and why, tiers, shares, endpoints.

use super::answer::{EndpointUsed, MemberUsed};
use super::cluster::endpoints;
use crate::cluster::federation::Pool;
use crate::cluster::priorities::Health;
use crate::cluster::{Cluster, Federation};
use crate::snapshot::Snapshot;

/// The members of a cluster in the order in which they are asked, and all of their endpoints.
pub(super) fn members(
    federation: &Federation,
    snapshot: &Snapshot,
    probability: f64,
) -> (Vec<MemberUsed>, Vec<EndpointUsed>) {
    let cluster = |pool: &Pool| snapshot.cluster(pool.cluster);
    let available = federation.available(|id| snapshot.cluster(id));
    let shares = federation.shares(available);
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
            member: pool.member.to_string(),
            cluster: cluster.name().to_string(),
            tier: pool.tier,
            weight: pool.weight,
            share,
            healthy,
            total,
        });
        let own = endpoints(cluster, share, probability);
        all.extend(own.map(|endpoint| EndpointUsed {
            member: Some(pool.member.to_string()),
            ..endpoint
        }));
    }
    (members, all)
}

/// Endpoints that may be used, and all of them.
fn health(cluster: &Cluster) -> (u32, u32) {
    let live = cluster.live();
    let sum = |of: fn(&Health) -> u32| live.health.iter().map(of).sum();
    (sum(|health| health.healthy), sum(|health| health.total))
}
