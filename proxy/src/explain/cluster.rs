//! Where the winning rule may send the request, down to the endpoints and their probabilities.

use super::answer::{ClusterUsed, DestinationChoice, Edits, EndpointUsed};
use super::effect;
use crate::cluster::{Cluster, Split};
use crate::compile::Survey;
use crate::error::Kind;
use crate::exchange::reply::LocalReply;
use crate::snapshot::{Destination, Route, Snapshot};

/// Every destination of a route, in the order of the rule; those that take no traffic say why.
pub(super) fn destinations(
    route: &Route,
    snapshot: &Snapshot,
    survey: &Survey<'_>,
) -> Vec<DestinationChoice> {
    let Some(split) = &route.split else {
        return Vec::new();
    };
    let asked = |(weight, destination): (u64, &Destination)| DestinationChoice {
        idle: idle(weight, "request"),
        authority: effect::authority(&route.filters, Some(destination.position)),
        edits: effect::edits(&route.filters, Some(destination.position)),
        ..choice((weight, destination), split.total(), snapshot, survey)
    };
    split.entries().map(asked).collect()
}

/// Every destination of a rule for connections, in the order of the rule.
pub(super) fn of_connection(
    split: &Split<Destination>,
    snapshot: &Snapshot,
    survey: &Survey<'_>,
) -> Vec<DestinationChoice> {
    let asked = |(weight, destination): (u64, &Destination)| DestinationChoice {
        idle: idle(weight, "connection"),
        ..choice((weight, destination), split.total(), snapshot, survey)
    };
    split.entries().map(asked).collect()
}

/// Why nothing goes to a destination of this weight, if so.
fn idle(weight: u64, what: &str) -> Option<String> {
    (weight == 0).then(|| format!("weight 0: no {what} goes here"))
}

/// What is the same of a destination whatever is sent there.
fn choice(
    (weight, destination): (u64, &Destination),
    total: u64,
    snapshot: &Snapshot,
    survey: &Survey<'_>,
) -> DestinationChoice {
    let probability = weight as f64 / total as f64;
    let cluster = snapshot.cluster(destination.cluster);
    let (host, port, subset) = parts(&destination.name);
    DestinationChoice {
        weight,
        probability,
        idle: None,
        source: (&destination.provenance).into(),
        authority: None,
        edits: Edits::default(),
        failure: failure(destination, cluster.map(|cluster| &**cluster), survey),
        cluster: cluster.map(|cluster| used(cluster, probability)),
        name: destination.name.to_string(),
        host,
        port,
        subset,
    }
}

/// Host, port and subset of `outbound|PORT|SUBSET|HOST`.
fn parts(name: &str) -> (String, u16, String) {
    let mut parts = name.splitn(4, '|').skip(1);
    let mut next = || parts.next().unwrap_or_default();
    let (port, subset, host) = (next(), next(), next());
    (
        host.to_owned(),
        port.parse().unwrap_or_default(),
        subset.to_owned(),
    )
}

/// Why the destination answers nothing, if so.
fn failure(
    destination: &Destination,
    cluster: Option<&Cluster>,
    survey: &Survey<'_>,
) -> Option<String> {
    let (host, port, subset) = parts(&destination.name);
    let (word, kind, why) = match cluster {
        None => {
            let why = survey.missing_cluster(&host, port, &subset);
            ("unknown", Kind::NoCluster, why)
        }
        Some(cluster) if cluster.endpoints().is_empty() && cluster.unresolved.is_empty() => {
            let why = if subset.is_empty() {
                "the service has no endpoint".to_owned()
            } else {
                format!("no endpoint has the labels of subset {subset}")
            };
            ("empty", Kind::NoHealthyUpstream, why)
        }
        Some(_) => return None,
    };
    let reply = LocalReply::from_kind(kind);
    let status = reply.status.as_u16();
    let flags = reply.flags;
    Some(format!("{word}: requests get {status} {flags}; {why}"))
}

fn used(cluster: &Cluster, probability: f64) -> ClusterUsed {
    let known = cluster.unresolved.is_empty();
    let endpoints = cluster.endpoints().iter().zip(cluster.shares());
    ClusterUsed {
        protocol: cluster.protocol.name().to_owned(),
        balancer: cluster.balance.policy.name().to_owned(),
        connect_timeout: effect::duration(cluster.pool.connect_timeout),
        sources: cluster.provenance.iter().map(Into::into).collect(),
        endpoints: endpoints
            .map(|(endpoint, share)| EndpointUsed {
                address: endpoint.address_text.to_string(),
                share: known.then_some(share),
                probability: known.then_some(share * probability),
                weight: endpoint.weight,
                locality: endpoint.locality.to_string(),
                labels: (*endpoint.labels).clone(),
            })
            .collect(),
        unresolved: cluster.unresolved.iter().map(|n| n.to_string()).collect(),
    }
}
