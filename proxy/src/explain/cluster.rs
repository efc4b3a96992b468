//! Destinations of the matching rule, with their endpoints and probabilities.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use http::Request;
use http::uri::PathAndQuery;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::answer::{ClusterUsed, DestinationChoice, Edits, PriorityUsed};
use super::duration::duration;
use super::effect::{self, ExplainedRequest};
use super::endpoints::{assign_all_traffic, endpoints};
use super::members::{self, members};
use super::pod;
use super::sent::{ConnectionFacts, TrafficKind};
use crate::compile::Survey;
use crate::exchange::downstream::origin::Trust;
use crate::exchange::select::affinity::{self, HashedHead};
use crate::exchange::select::find_route::{self, Found};
use crate::exchange::select::target::Target;
use crate::exchange::worker::SnapshotRef;
use crate::pool::PoolSettings;
use crate::runtime::clock;
use crate::snapshot::{Destination, Route, Snapshot};
use crate::upstream::Protocol;
use traffic::balance::{HashKey, client_hash, combined};
use traffic::cluster::federation::Choice;
use traffic::cluster::{Absence, Cluster, Endpoint, Federation, PickInput, Split};
use traffic::error::Kind;
use traffic::filter::{Scheme, TemplateContext};
use traffic::registry::Visit;

/// Returns all destinations of a route, in the order of the rule, with the reasons for those without traffic.
pub(super) fn destinations(
    found: &Found,
    shared: &SnapshotRef,
    survey: &Survey<'_>,
    request: ExplainedRequest<'_>,
) -> Vec<DestinationChoice> {
    let (route, snapshot): (_, &Snapshot) = (found.route(), shared);
    let Some(split) = &route.split else {
        return Vec::new();
    };
    let kind = TrafficKind::of_request(request.head.headers());
    let total = split.total();
    let asked = |(weight, destination): (u64, &Destination)| {
        let (filters, path) = effect::of_share(route, destination.position, snapshot, request);
        let weighted = Weighted::new(destination, weight, total);
        DestinationChoice {
            unused_reason: idle(weight, kind),
            filters,
            path,
            authority: effect::authority(&route.filters, Some(destination.position)),
            edits: effect::edits(&route.filters, Some(destination.position)),
            grpc_web: grpc_web(&destination.name, found, survey),
            ..choice(kind, &weighted, snapshot, survey)
        }
    };
    let mut choices: Vec<DestinationChoice> = split.entries().map(asked).collect();
    let authority = find_route::authority(request.head);
    for ((_, destination), choice) in split.entries().zip(&mut choices) {
        let target = Target::find(shared, destination.cluster);
        let target = target.map(|one| one.of_pod(found.dialed_on(request.connection), authority));
        if let Some(cluster) = snapshot.cluster(destination.cluster)
            && let Some(used) = &mut choice.cluster
        {
            if let Some(federation) = &cluster.federation
                && is_sent_by_a_cluster(request.head)
            {
                let share = choice.probability;
                let at_home = members::restrict_to_local_cluster(used, cluster, federation, share);
                choice.failure = at_home.or_else(|| choice.failure.take());
                continue;
            }
            if let Some(chosen) = target.as_ref().and_then(Target::chosen) {
                pod::follow(choice, chosen, kind);
                continue;
            }
            used.failover = cluster
                .federation
                .as_ref()
                .and_then(|federation| members::failover(federation, snapshot, Some(request.head)));
            let Some(key) = cluster.hash_key() else {
                continue;
            };
            let keys: Vec<&HashKey> = affinity::keys(Some(split), snapshot).collect();
            let template = template(route, destination, request);
            let filters = &route.share(destination.position).filters;
            let lookup = HashLookup {
                cluster,
                snapshot,
                cluster_key: key,
                keys: &keys,
                client: client(request.head),
                scheme: request.scheme,
                head: HashedHead::edited(request.head, filters, destination, &template),
            };
            follow_key(used, &lookup, choice.probability);
        }
    }
    in_version_of(route, choices)
}

/// Changes the protocol to that of a route whose destinations get HTTP/2, whatever their ports declare.
fn in_version_of(route: &Route, mut choices: Vec<DestinationChoice>) -> Vec<DestinationChoice> {
    if route.filters.is_http2 {
        let used = choices.iter_mut().filter_map(|one| one.cluster.as_mut());
        used.for_each(|used| used.protocol = Protocol::Http2.name().to_owned());
    }
    choices
}

/// Returns whether the request comes from another cluster.
pub(super) fn is_sent_by_a_cluster(request: &Request<()>) -> bool {
    let trust = request.extensions().get::<Trust>();
    trust.is_some_and(|trust| trust.from_cluster)
}

/// Returns the address of the client, if the question names it.
fn client(request: &Request<()>) -> Option<IpAddr> {
    request.extensions().get().copied()
}

/// Context of header edits before an endpoint is picked.
fn template<'a>(
    route: &'a Route,
    destination: &'a Destination,
    request: ExplainedRequest<'a>,
) -> TemplateContext<'a> {
    let ExplainedRequest {
        connection,
        scheme,
        client: _,
        head,
    } = request;
    let path = head.uri().path_and_query();
    TemplateContext {
        downstream_remote: Some(connection.client.source),
        downstream_direct_remote: Some(connection.client.source),
        downstream_local: Some(connection.client.destination),
        requested_server_name: connection.server_name(),
        route_name: &route.name,
        upstream_cluster: &destination.name,
        method: head.method().as_str(),
        path: path.map_or("/", PathAndQuery::as_str),
        authority: find_route::authority(head).unwrap_or_default(),
        scheme: scheme.as_str(),
        ..TemplateContext::default()
    }
}

/// Inputs of a choice by hash.
struct HashLookup<'a> {
    cluster: &'a Cluster,
    snapshot: &'a Snapshot,
    /// Hash key of the cluster.
    cluster_key: &'a HashKey,
    /// Hash keys of all destinations of the rule.
    keys: &'a [&'a HashKey],
    client: Option<IpAddr>,
    scheme: Scheme,
    /// Head of the request with the edits of the rule.
    head: HashedHead<'a>,
}

/// Describes the hash key in use, and the endpoint that it selects as far as that is known.
fn follow_key(used: &mut ClusterUsed, lookup: &HashLookup<'_>, probability: f64) {
    let (cluster, snapshot) = (lookup.cluster, lookup.snapshot);
    let (own, keys) = (lookup.cluster_key, lookup.keys);
    let client = lookup.client;
    let kept = match cluster.affinity_lifetime() {
        Some(lifetime) => {
            let lifetime = duration(lifetime);
            format!("; a client is remembered for {lifetime} after its last request")
        }
        None => String::new(),
    };
    if keys.contains(&&HashKey::SourceIp) && client.is_none() {
        used.session_affinity = Some(format!(
            "sticky by {own}, which differs from client to client (say which with --client){kept}"
        ));
        return;
    }
    if let Some((number, left)) =
        client.and_then(|client| remembered(cluster, snapshot, client, used))
    {
        let (address, left) = (&used.endpoints[number].address, duration(left));
        used.session_affinity = Some(format!(
            "sticky by {own}, which is remembered at {address} for {left} more{kept}"
        ));
        return assign_all_traffic(&mut used.endpoints, Some(number), probability);
    }
    let source = lookup.head.source(
        lookup.scheme,
        client.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
    );
    let Some(hash) = combined(keys.iter().copied(), &source) else {
        used.session_affinity = Some(format!("sticky by {own}, which the request does not have"));
        return;
    };
    let Some(number) = endpoint_of_hash(cluster, snapshot, hash, used) else {
        used.session_affinity = Some(format!("sticky by {own}, which leads to no endpoint"));
        return;
    };
    let address = &used.endpoints[number].address;
    let how = match kept.is_empty() {
        true => "",
        false => " by its hash, as that of a client not seen before",
    };
    used.session_affinity = Some(format!(
        "sticky by {own}, which leads to {address}{how}{kept}"
    ));
    assign_all_traffic(&mut used.endpoints, Some(number), probability);
}

/// Returns the index in `used` of the endpoint in the client's affinity entry, and the time until the entry expires
/// without another request.
fn remembered(
    cluster: &Cluster,
    snapshot: &Snapshot,
    client: IpAddr,
    used: &ClusterUsed,
) -> Option<(usize, Duration)> {
    let stay = cluster.stay(Visit {
        client: client_hash(client),
        at: cluster.state.journal.at(clock::now()),
    })?;
    let entry = stay.entry()?;
    let number = match &cluster.federation {
        None => cluster.affinity_endpoint(entry.endpoint())?.0 as usize,
        Some(federation) => {
            let pool = |id| snapshot.cluster(id);
            let choice = federation.affinity_choice(entry.endpoint(), snapshot.generation, pool)?;
            shown(federation, choice, snapshot, used)?
        }
    };
    Some((number, stay.left(entry)))
}

/// Returns the index in `used` of the endpoint of a choice.
fn shown(
    federation: &Federation,
    choice: Choice,
    snapshot: &Snapshot,
    used: &ClusterUsed,
) -> Option<usize> {
    let pool = federation.pools().get(choice.at)?;
    let cluster = snapshot.cluster(pool.cluster)?;
    let address = cluster.endpoint(choice.endpoint).address.to_string();
    used.endpoints.iter().position(|shown| {
        shown.address == address && shown.cluster_key.as_deref() == Some(&*pool.member)
    })
}

/// Returns the index in `used` of the endpoint that a hash selects.
fn endpoint_of_hash(
    cluster: &Cluster,
    snapshot: &Snapshot,
    hash: u64,
    used: &ClusterUsed,
) -> Option<usize> {
    // only the hash decides, so the random numbers do not matter
    let mut rng = SmallRng::seed_from_u64(0);
    let Some(federation) = &cluster.federation else {
        let ask = PickInput {
            hash: Some(hash),
            ..PickInput::default()
        };
        return Some(cluster.pick(ask, &mut rng)?.0 as usize);
    };
    let choice = federation.choice_for_hash(|id| snapshot.cluster(id), hash, &mut rng)?;
    shown(federation, choice, snapshot, used)
}

/// Returns all destinations of a rule for connections, in the order of the rule. The hash key of a connection is always
/// the client's address.
pub(super) fn of_connection(
    split: &Split<Destination>,
    shared: &SnapshotRef,
    survey: &Survey<'_>,
    ends: &ConnectionFacts<'_>,
) -> Vec<DestinationChoice> {
    let snapshot: &Snapshot = shared;
    let mut connection = Request::new(());
    if let Some(client) = ends.client {
        connection.extensions_mut().insert(client);
    }
    let asked = |(weight, destination): (u64, &Destination)| {
        let weighted = Weighted::new(destination, weight, split.total());
        let mut choice = DestinationChoice {
            unused_reason: idle(weight, TrafficKind::Connection),
            ..choice(TrafficKind::Connection, &weighted, snapshot, survey)
        };
        let cluster = snapshot.cluster(destination.cluster);
        let target = Target::find(shared, destination.cluster);
        let target = target.map(|target| target.of_pod(ends.dialed, ends.sni));
        if let Some(chosen) = target.as_ref().and_then(Target::chosen) {
            pod::follow(&mut choice, chosen, TrafficKind::Connection);
        } else if let (Some(cluster), Some(used)) = (cluster, &mut choice.cluster) {
            let federation = cluster.federation.as_ref();
            used.failover =
                federation.and_then(|federation| members::failover(federation, snapshot, None));
            if let Some(key @ HashKey::SourceIp) = cluster.hash_key() {
                let lookup = HashLookup {
                    cluster,
                    snapshot,
                    cluster_key: key,
                    keys: &[key],
                    client: ends.client,
                    scheme: Scheme::Http,
                    head: HashedHead::of(&connection),
                };
                follow_key(used, &lookup, choice.probability);
            }
        }
        choice
    };
    split.entries().map(asked).collect()
}

/// Returns the reason why a destination of weight 0 gets no traffic.
fn idle(weight: u64, what: TrafficKind) -> Option<String> {
    let what = match what {
        TrafficKind::Request | TrafficKind::GrpcRequest => "request",
        TrafficKind::Connection => "connection",
    };
    (weight == 0).then(|| format!("weight 0: no {what} goes here"))
}

/// Destination of a rule, with its weight and that of all destinations.
struct Weighted<'a> {
    destination: &'a Destination,
    weight: u64,
    total: u64,
}

impl<'a> Weighted<'a> {
    fn new(destination: &'a Destination, weight: u64, total: u64) -> Self {
        Self {
            destination,
            weight,
            total,
        }
    }
}

/// Describes a destination, without the parts that depend on the request.
fn choice(
    what: TrafficKind,
    weighted: &Weighted<'_>,
    snapshot: &Snapshot,
    survey: &Survey<'_>,
) -> DestinationChoice {
    let Weighted {
        destination,
        weight,
        total,
    } = *weighted;
    let probability = weight as f64 / total as f64;
    let cluster = snapshot.cluster(destination.cluster);
    let (host, port, subset) = parts(&destination.name);
    DestinationChoice {
        weight,
        probability,
        unused_reason: None,
        source: (&destination.provenance).into(),
        grpc_web: None,
        filters: Vec::new(),
        path: None,
        authority: None,
        edits: Edits::default(),
        failure: failure(
            what,
            destination,
            cluster.map(|cluster| &**cluster),
            snapshot,
            survey,
        ),
        cluster: cluster.map(|cluster| ClusterUsed {
            skipped_endpoints: survey.left_out_endpoints(&host, port, &subset),
            ..used(cluster, what, snapshot, probability)
        }),
        name: destination.name.to_string(),
        host,
        port,
        subset,
    }
}

/// Describes the handling of gRPC-Web requests, for a destination whose port declares the protocol.
fn grpc_web(name: &str, found: &Found, survey: &Survey<'_>) -> Option<String> {
    let (host, port, _) = parts(name);
    let text = match found.virtual_host().is_grpc_web {
        true => "gRPC-Web: translated into gRPC here",
        false => {
            "gRPC-Web: passed on as it is, since the listener does not declare it; the endpoint's sidecar translates it"
        }
    };
    (survey.declares_grpc_web(&host, port)).then(|| text.to_owned())
}

/// Parses host, port and subset of `outbound|PORT|SUBSET|HOST`.
pub fn parts(name: &str) -> (String, u16, String) {
    let mut parts = name.splitn(4, '|').skip(1);
    let mut next = || parts.next().unwrap_or_default();
    let (port, subset, host) = (next(), next(), next());
    (
        host.to_owned(),
        port.parse().unwrap_or_default(),
        subset.to_owned(),
    )
}

/// Returns the reason why the destination cannot respond, if there is one.
fn failure(
    what: TrafficKind,
    destination: &Destination,
    cluster: Option<&Cluster>,
    snapshot: &Snapshot,
    survey: &Survey<'_>,
) -> Option<String> {
    let (host, port, subset) = parts(&destination.name);
    let (word, kind, why) = match cluster {
        None => match destination.missing_kind() {
            Kind::InvalidBackend => {
                let why = match destination.invalid_backend() {
                    Some("") => "the rule has no valid backend",
                    _ => "the reference does not hold: `strait check` says why",
                };
                ("invalid", Kind::InvalidBackend, why.to_owned())
            }
            kind => (
                "unknown",
                kind,
                survey.missing_cluster(&host, port, &subset),
            ),
        },
        Some(cluster) if cluster.no_endpoint_kind() == Kind::NoOriginalDestination => {
            let why = "it is where the client dialled, which a gateway does not know";
            ("nowhere", Kind::NoOriginalDestination, why.to_owned())
        }
        // its endpoint is the address that the client dialed
        Some(cluster) if cluster.dialed.is_some() => return None,
        // without a share by policy, the endpoints of the local cluster still exist
        Some(cluster) if cluster.is_deserted() || cluster.absence.is_some() => {
            let why = match cluster.absence {
                None if subset.is_empty() => "the service has no endpoint".to_owned(),
                None | Some(Absence::SubsetEmpty) => {
                    format!("no endpoint has the labels of subset {subset}")
                }
                Some(Absence::WithoutPolicy) => {
                    "only other clusters serve it, and no GlobalTrafficPolicy lets them".to_owned()
                }
                Some(absence) => absence.as_str().replace('_', " "),
            };
            ("empty", Kind::NoHealthyUpstream, why)
        }
        Some(cluster) => {
            let why = match &cluster.federation {
                Some(federation) => members::no_endpoint_reason(federation, snapshot)?,
                None => no_endpoint_reason(cluster)?,
            };
            ("unavailable", Kind::NoHealthyUpstream, why)
        }
    };
    Some(what.fails(word, kind, &why))
}

/// Returns the reason why no endpoint is available, if none is. Endpoints that wait for their first health check are
/// ignored.
fn no_endpoint_reason(cluster: &Cluster) -> Option<String> {
    let endpoints = cluster.endpoints();
    let may_be = |endpoint: &Endpoint| {
        let state = &endpoint.state;
        state.health.is_usable() || !state.health.is_ejected() && state.last_check().is_none()
    };
    if endpoints.is_empty() || endpoints.iter().any(may_be) || cluster.live().panics() {
        return None;
    }
    Some(match endpoints.len() {
        1 => "the only endpoint may not be used".to_owned(),
        count => format!("none of {count} endpoints may be used"),
    })
}

fn used(
    cluster: &Cluster,
    what: TrafficKind,
    snapshot: &Snapshot,
    probability: f64,
) -> ClusterUsed {
    let (members, endpoints) = match &cluster.federation {
        Some(federation) => members(federation, snapshot, probability),
        None => {
            let live = cluster.live();
            let own = endpoints(cluster, &live, 1.0, probability);
            (Vec::new(), own.collect())
        }
    };
    ClusterUsed {
        protocol: match what {
            TrafficKind::Connection => "TCP".to_owned(),
            _ => cluster.pool.speaks.name(cluster.protocol).to_owned(),
        },
        limits: limits(&cluster.pool),
        load_balancer: cluster.balance.policy.name().to_owned(),
        connect_timeout: duration(cluster.pool.connect_timeout),
        tls: cluster.pool.tls.as_ref().map(ToString::to_string),
        chosen_pod: None,
        session_affinity: None,
        failover: None,
        health_check: cluster.check.as_ref().map(ToString::to_string),
        priorities: match members.is_empty() {
            true => priorities(cluster),
            false => Vec::new(),
        },
        member_clusters: members,
        skipped_endpoints: Vec::new(),
        rebuilt_because: cluster.cause.as_ref().map(ToString::to_string),
        sources: cluster.sources.list().iter().map(Into::into).collect(),
        endpoints,
        unresolved_hosts: unresolved(cluster, snapshot),
    }
}

/// Returns the unresolved names of endpoints, of all Kubernetes clusters that serve the cluster.
fn unresolved(cluster: &Cluster, snapshot: &Snapshot) -> Vec<String> {
    let federation = cluster.federation.iter();
    let pools = federation.flat_map(|federation| federation.pools());
    let others = pools.filter(|pool| pool.cluster != cluster.id());
    let others = others.filter_map(|pool| snapshot.cluster(pool.cluster));
    let all = std::iter::once(cluster).chain(others.map(|other| &**other));
    let names = all.flat_map(|cluster| &cluster.unresolved);
    names.map(ToString::to_string).collect()
}

/// Describes the limits on connections and requests.
fn limits(pool: &PoolSettings) -> Vec<String> {
    let count = |max: u32, what: &str| {
        let plural = if max == 1 { "" } else { "s" };
        (max < u32::MAX).then(|| format!("at most {max} {what}{plural}"))
    };
    let limits = &pool.limits;
    let each = pool.requests_per_connection_max.unwrap_or(u32::MAX);
    let streams = pool.streams_max.unwrap_or(u32::MAX);
    let lasts = pool.connection_duration_max;
    let all = [
        count(limits.connections, "connection"),
        count(limits.pending, "waiting request"),
        count(limits.requests, "active request"),
        count(each, "request").map(|text| text + " per connection"),
        count(streams, "stream").map(|text| text + " per HTTP/2 connection"),
        lasts.map(|max| format!("connections last {}", duration(max))),
    ];
    all.into_iter().flatten().collect()
}

/// Returns the priorities with their shares; empty with one priority whose endpoints are all available.
fn priorities(cluster: &Cluster) -> Vec<PriorityUsed> {
    let live = cluster.live();
    let all: Vec<PriorityUsed> = live
        .shares
        .iter()
        .zip(&live.health)
        .enumerate()
        .map(|(level, (share, health))| PriorityUsed {
            load: share.load,
            healthy: health.healthy,
            total: health.total,
            panic_mode: share.panic,
            localities: cluster.localities(level),
        })
        .collect();
    match &*all {
        [only] if only.healthy == only.total && only.localities.is_empty() => Vec::new(),
        _ => all,
    }
}
