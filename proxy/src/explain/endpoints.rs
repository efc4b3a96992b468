//! Endpoints of a cluster, with their shares and the reasons why they get no traffic.

use super::answer::EndpointUsed;
use crate::runtime::clock;
use traffic::balance::EndpointIdx;
use traffic::cluster::{Cluster, PickTables};

/// Assigns all of the destination's traffic to one of the endpoints shown, or to none.
pub(super) fn assign_all_traffic(
    shown: &mut [EndpointUsed],
    number: Option<usize>,
    probability: f64,
) {
    for (other, endpoint) in shown.iter_mut().enumerate() {
        let share = if Some(other) == number { 1.0 } else { 0.0 };
        endpoint.share = endpoint.share.map(|_| share);
        endpoint.probability = endpoint.probability.map(|_| share * probability);
    }
}

/// Lists the endpoints of a cluster that gets this part of a destination's traffic. `live` has the tables that requests
/// use.
pub(super) fn endpoints(
    cluster: &Cluster,
    live: &PickTables,
    part: f64,
    probability: f64,
) -> impl Iterator<Item = EndpointUsed> {
    let several = cluster.priorities() > 1;
    let known = cluster.unresolved.is_empty();
    let endpoints = cluster.endpoints().iter();
    let endpoints = endpoints.zip(live.probabilities(cluster));
    let now = cluster.state.journal.at(clock::now());
    endpoints
        .enumerate()
        .map(move |(number, (endpoint, share))| EndpointUsed {
            priority: several.then(|| cluster.priority(EndpointIdx(number as u32))),
            unavailable_reason: endpoint.exclusion_reason(cluster.balance.outlier.as_ref(), now),
            warmup: cluster
                .warming(EndpointIdx(number as u32), now)
                .map(|warming| warming.to_string()),
            last_health_check: endpoint.check_results(now),
            address: endpoint.address.to_string(),
            share: known.then_some(share * part),
            probability: known.then_some(share * part * probability),
            weight: endpoint.weight,
            locality: endpoint.locality.to_string(),
            labels: (*endpoint.labels).clone(),
            labels_from: endpoint.labels_from.word().map(str::to_owned),
            node: endpoint.node.as_deref().map(str::to_owned),
            cluster_key: None,
            path_prefix: endpoint.hop.as_ref().and_then(|hop| {
                let prefix = &hop.path_prefix;
                (!prefix.is_empty()).then(|| prefix.to_string())
            }),
            tls: endpoint.tls.text(),
        })
}
