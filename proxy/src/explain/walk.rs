//! Explanation of one request: its path through a snapshot.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use http::header::HOST;
use http::{Method, Request};
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::answer::{Explanation, ListenerChoice, Note, Outcome, RequestSummary, Source};
use super::connection::ExplainedConnection;
use super::effect::ExplainedRequest;
use super::question::ListenerWish;
use super::tables::Tables;
use super::{Question, authorization, cluster, connection, effect};
use crate::compile::Survey;
use crate::compile::survey::{Part, UnusedObject, nearest_host};
use crate::exchange::authenticate;
use crate::exchange::authorize;
use crate::exchange::downstream::connection::Handshake;
use crate::exchange::downstream::connection::{Connection, DownstreamProtocol};
use crate::exchange::downstream::origin::Origin;
use crate::exchange::message::clean;
use crate::exchange::message::local_reply::LocalReply;
use crate::exchange::select::find_route::{self, Found};
use crate::exchange::settings::ExchangeSettings;
use crate::exchange::worker::SnapshotRef;
use crate::identity::GatewaySettings;
use crate::snapshot::{
    Chain, Direction, HttpHosts, Listener, ListenerKey, Security, Service, Snapshot, VirtualHost,
};
use traffic::authz::{Authorization, Subject};
use traffic::filter::Scheme;
use traffic::route::normalize_host;

/// Maximum number of virtual hosts that are listed when none of them serves a request's host.
const HOSTS_LISTED_MAX: usize = 20;

/// Explains the handling of a request by a snapshot, for a proxy with these settings. `survey` has the resources of the
/// snapshot.
pub fn explain(
    question: &Question,
    snapshot: &Arc<Snapshot>,
    settings: &ExchangeSettings,
    survey: &Survey<'_>,
) -> Explanation {
    let mut answer = walk(question, snapshot, settings, survey);
    let host = &answer.request.host;
    let listener = choose_listener(question, host, snapshot, survey.gateways());
    answer.tracing = listener.and_then(|(listener, _)| traced(snapshot, listener));
    answer.apply_failures();
    answer
}

fn walk(
    question: &Question,
    snapshot: &Arc<Snapshot>,
    settings: &ExchangeSettings,
    survey: &Survey<'_>,
) -> Explanation {
    let mut request = question.request();
    let mut answer = begin(&request);
    let name = (question.server_name.clone()).unwrap_or_else(|| answer.request.host.clone());
    let found = choose_listener(question, &answer.request.host, snapshot, survey.gateways());
    let Some((listener, choice)) = found else {
        return without_listener(answer, question, snapshot, survey);
    };
    answer.listener = Some(choice);
    answer.hints.extend(rejected_policies(listener, survey));
    let connection = downstream(listener, &name, question.address, question.client);
    let shared: SnapshotRef = Rc::new(Arc::clone(snapshot));
    let policies = authorize::of_listener(&shared, listener).map(|one| (one, &**snapshot));
    let explained = ExplainedConnection::new(&name, question.client, connection.dialed());
    if connection::explain(&mut answer, listener, explained, &shared, survey) {
        judged_connection(&mut answer, policies, question, &connection);
        return answer;
    }
    let part = Part {
        listener: &listener.key,
        chain: chain(listener, &connection).map(|chain| &*chain.id),
    };
    (answer.hints).extend(scheme_hint(question, listener, &connection));
    let (found, origin) = find(&mut request, &connection, &shared, settings);
    request.uri().path().clone_into(&mut answer.request.path);
    let hosts = listener.http(connection.security()).map(|hosts| &**hosts);
    let local = connection.client.destination.ip();
    let host = answer.request.host.clone();
    let virtual_host = hosts.and_then(|hosts| host_at(hosts, &host, local));
    let tables = virtual_host.map(|first| Tables::of(first, hosts, &host));
    if let Some(tables) = &tables {
        answer.virtual_host = Some(tables.choice());
        let left_out = survey.left_out(&part, &tables.first().name);
        answer.unreachable.extend(left_out.into_iter().map(note));
    }
    let policies = policies.filter(|_| authorize::is_judged(&found));
    match found {
        Ok(found) => {
            let tables = tables.filter(|tables| tables.position(&found).is_some());
            let tables = tables.unwrap_or_else(|| Tables::from(found.virtual_host()));
            answer.virtual_host = Some(tables.chosen(hosts, &host, &connection));
            let request = ExplainedRequest {
                connection: &connection,
                scheme: origin.scheme,
                client: origin.client.ip(),
                head: &request,
            };
            tables.won(&mut answer, &found, request, question.is_of_outcome);
            add_effect(&mut answer, &found, &shared, survey, request);
        }
        Err(refusal) => {
            let is_served = tables.is_some();
            refused(&mut answer, &refusal, tables, origin.scheme, &request);
            if !(is_served || question.is_of_outcome) && refusal == LocalReply::NO_ROUTE {
                (answer.hints).extend(host_hints(&host, hosts, &part, survey));
            }
        }
    }
    let authority = find_route::authority(&request).unwrap_or_default();
    let subject = authorize::of_request(&request, &connection, &origin, authority, &host);
    judged(&mut answer, policies, question.identified(subject));
    let closed = chain(listener, &connection).and_then(connection::without_certificate);
    answer.outcome = closed.unwrap_or(answer.outcome);
    answer
}

/// Returns the share of requests that are traced, what says so, and where spans go.
fn traced(snapshot: &Snapshot, listener: &Listener) -> Option<String> {
    let side = snapshot.tracing.as_deref()?.side(listener.direction)?;
    let by = match &side.sampled_by {
        Some(provenance) => format!(", {provenance}"),
        None => String::new(),
    };
    let to = match (&side.provider, side.settings.reports) {
        (_, false) => "not reported".to_owned(),
        (Some(provider), true) => format!("provider {provider}"),
        (None, true) => "collector of the flags".to_owned(),
    };
    Some(format!("{} %{by}, {to}", side.settings.random.value()))
}

/// Returns the virtual host for a host, else the one at the address that the client dialed.
fn host_at<'a>(hosts: &'a HttpHosts, host: &str, local: IpAddr) -> Option<&'a Arc<VirtualHost>> {
    hosts.find_at(host, local).or_else(|| hosts.at(local))
}

/// Returns the address that a client dials for a host that a listener serves; `None` if it does not matter.
fn address_of(listener: &Listener, host: &str) -> Option<IpAddr> {
    let mut all = listener.all_http();
    all.find_map(|hosts| hosts.address_of(host))
}

/// Adds the effect of the rule that a request has found.
fn add_effect(
    answer: &mut Explanation,
    found: &Found,
    shared: &SnapshotRef,
    survey: &Survey<'_>,
    request: ExplainedRequest<'_>,
) {
    let (action, outcome) = effect::of(found.route(), shared, request);
    answer.action = Some(action);
    answer.outcome = outcome;
    answer.destinations = cluster::destinations(found, shared, survey, request);
}

/// Adds the decision of policies about a connection without requests.
fn judged_connection(
    answer: &mut Explanation,
    policies: Option<(&Authorization, &Snapshot)>,
    question: &Question,
    connection: &Connection,
) {
    // what no server or rule takes is closed without a judgment
    let policies = policies.filter(|_| answer.outcome.is_served());
    let (peer, name) = (connection.peer(), connection.server_name());
    let subject = authorize::of_connection(connection.client, peer, name);
    judged(answer, policies, question.identified(subject));
}

/// Records the decision of policies, if any apply; a denial is the outcome.
fn judged(
    answer: &mut Explanation,
    policies: Option<(&Authorization, &Snapshot)>,
    subject: Subject<'_>,
) {
    let Some((authorization, snapshot)) = policies else {
        return;
    };
    let choice = authorization::explain(authorization, snapshot, &subject);
    if let Some(reason) = &choice.denied_by {
        let is_request = subject.request.is_some();
        answer.outcome = Outcome::Rejected {
            // a connection is closed
            status: is_request.then_some(LocalReply::DENIED.status.as_u16()),
            flags: "-".to_owned(),
            reason: format!("{}: {reason}", LocalReply::DENIED.body),
        };
    }
    answer.authorization = Some(choice);
}

/// Returns notes about policies of the workload's connections that are rejected and have no last good version.
fn rejected_policies(listener: &Listener, survey: &Survey<'_>) -> Vec<Note> {
    if listener.direction != Direction::Inbound {
        return Vec::new();
    }
    let rejected = survey.rejected_peer_authentications().into_iter();
    rejected
        .map(|id| {
            plain(format!(
                "{id} is rejected and was never valid: until it is corrected, it counts as STRICT"
            ))
        })
        .collect()
}

/// Makes the connection of the request: with TLS to the server of this name if the listener requires it, to this
/// address, or else that of the service with this name, if the listener accepts any, and from this client.
fn downstream(
    listener: &Listener,
    name: &str,
    address: Option<IpAddr>,
    client: Option<IpAddr>,
) -> Connection {
    let client = client.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let peer = SocketAddr::new(client, 0);
    let mut local = listener.key.address.ip_or_loopback();
    let address = address.or_else(|| address_of(listener, name));
    if let Some(address) = address.filter(|_| local.ip().is_unspecified()) {
        local.set_ip(address);
    }
    let key = ListenerKey::clone(&listener.key);
    let connection = Connection::new(key, peer, local, DownstreamProtocol::Http1);
    match listener.service {
        Service::Tls(_) => connection.with_tls(Handshake {
            server_name: Some(name.into()),
            ..Handshake::default()
        }),
        Service::Detected(_) if !listener.service.admits().plain_text => {
            connection.with_tls(Handshake::default())
        }
        Service::Captured(_)
        | Service::Detected(_)
        | Service::Http(_)
        | Service::HttpProxy
        | Service::Opaque(_) => connection,
    }
}

/// Returns the hint for a URL whose scheme differs from the protocol of the listener.
fn scheme_hint(question: &Question, listener: &Listener, connection: &Connection) -> Option<Note> {
    let why = match (&listener.service, connection.peer().is_in_tls()) {
        (Service::Detected(_), true) => {
            "the listener takes mutual TLS of the mesh only, which is what is explained; it closes plain text"
        }
        (_, false) if question.tls => {
            "the URL is https; the listener speaks plain HTTP, which is what is explained"
        }
        _ => return None,
    };
    Some(plain(why))
}

/// Cleans the head of a request and finds its rule, as for a real request. Also returns the origin of the request.
fn find(
    request: &mut Request<()>,
    connection: &Connection,
    snapshot: &SnapshotRef,
    settings: &ExchangeSettings,
) -> (Result<Found, LocalReply>, Origin) {
    let policies = snapshot.policies_at(&connection.listener, connection.client.destination);
    if let Some(policies) = policies {
        authenticate::explained(policies, request);
    }
    let origin = Origin::of(
        connection,
        settings.trusted_hops,
        settings.is_sidecar,
        request.headers(),
    );
    let scheme = origin.scheme;
    let rng = &mut SmallRng::seed_from_u64(0);
    let cleaned = &mut clean::clean(request, connection, &origin, settings, rng);
    let found = find_route::find_route(snapshot, connection, scheme, request, cleaned);
    cleaned.show(request.headers_mut());
    request.extensions_mut().insert(cleaned.trust);
    (found, origin)
}

/// Finds the rule for a request in a snapshot, as [`explain`] does; `None` if a listener or a rule is missing.
pub fn rule(
    question: &Question,
    snapshot: &Arc<Snapshot>,
    settings: &ExchangeSettings,
    gateways: &GatewaySettings,
) -> Option<Found> {
    let mut request = question.request();
    let host = begin(&request).request.host;
    let name = question.server_name.as_deref().unwrap_or(&host);
    let (listener, _) = choose_listener(question, &host, snapshot, gateways)?;
    let connection = downstream(listener, name, question.address, question.client);
    let shared: SnapshotRef = Rc::new(Arc::clone(snapshot));
    let (found, _) = find(&mut request, &connection, &shared, settings);
    found.ok()
}

fn chain<'l>(listener: &'l Listener, connection: &Connection) -> Option<&'l Chain> {
    match (&listener.service, connection.security()) {
        (Service::Tls(chains), Security::Tls(name)) => chains.find(name),
        _ => None,
    }
}

fn begin(request: &Request<()>) -> Explanation {
    let authority = find_route::authority(request);
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = request.headers().iter().filter(|(name, _)| **name != HOST);
    Explanation {
        request: RequestSummary {
            method: request.method().to_string(),
            authority: authority.map(str::to_owned),
            host: normalize_host(authority.unwrap_or_default()).into_owned(),
            original_path: request.uri().path().to_owned(),
            path: request.uri().path().to_owned(),
            query: request.uri().query().map(str::to_owned),
            headers: headers
                .map(|(name, value)| (name.to_string(), lossy(value.as_bytes())))
                .collect(),
        },
        outcome: Outcome::FORWARDED,
        listener: None,
        virtual_host: None,
        rules: Vec::new(),
        rules_not_tried: 0,
        unreachable: Vec::new(),
        action: None,
        destinations: Vec::new(),
        authorization: None,
        tracing: None,
        hints: Vec::new(),
    }
}

/// Chooses the requested listener, else the one with the URL's port, else one that serves the host, else the first.
pub(super) fn choose_listener<'s>(
    question: &Question,
    host: &str,
    snapshot: &'s Snapshot,
    gateways: &GatewaySettings,
) -> Option<(&'s Arc<Listener>, ListenerChoice)> {
    let all = || snapshot.listeners.values();
    let serves = |listener: &&Arc<Listener>| {
        let name = question.server_name.as_deref().unwrap_or(host);
        let connection = downstream(listener, name, question.address, None);
        let hosts = listener.http(connection.security());
        let named = chain(listener, &connection).is_some();
        let local = connection.client.destination.ip();
        let has = |hosts: &HttpHosts| hosts.find(host).is_some() || hosts.at(local).is_some();
        named || hosts.is_some_and(|hosts| has(hosts))
    };
    let with_port = |port: u16| {
        if let Some(listener) = dialed_listener(question, port, snapshot) {
            return Some(listener);
        }
        let fitting = || all().filter(move |l| l.key.address.port() == port);
        // several addresses can share a port; outbound listeners are preferred to inbound ones
        let leaving = fitting().filter(|listener| listener.direction != Direction::Inbound);
        let mut serving = leaving.chain(fitting()).filter(serves);
        serving.next().or_else(|| fitting().next())
    };
    let (listener, reason) = match (question.listener, question.port) {
        (Some(ListenerWish::Address(address)), _) => {
            let listener = all().find(|listener| listener.key.address.ip() == Some(address))?;
            (listener, "selected by --listener".to_owned())
        }
        (Some(ListenerWish::Port(port)), _) => {
            (with_port(port)?, "selected by --listener".to_owned())
        }
        (None, port) => match port
            .and_then(|port| with_port(gateways.opened(port)).or_else(|| with_port(port)))
        {
            Some(listener) => {
                let port = listener.key.address.port();
                (listener, format!("the URL leads to port {port}"))
            }
            None => {
                let why = port.map_or_else(
                    || "the URL names no port".to_owned(),
                    |port| format!("none has the URL's port {port}"),
                );
                let leaving = all().filter(|listener| listener.direction != Direction::Inbound);
                match leaving.chain(all()).find(serves) {
                    _ if snapshot.listeners.len() == 1 => {
                        (all().next()?, format!("the only one; {why}"))
                    }
                    Some(first) => (first, format!("the first that serves the host; {why}")),
                    None => (all().next()?, format!("the first; {why}")),
                }
            }
        },
    };
    let (listener, reason) = match listener.service {
        Service::HttpProxy => proxied(question, snapshot, reason)?,
        _ => (listener, reason),
    };
    let others = all().filter(|other| other.key != listener.key);
    let choice = ListenerChoice {
        address: listener.key.to_string(),
        reason,
        sources: listener.provenance.iter().map(Source::from).collect(),
        others: others.map(|other| other.key.to_string()).collect(),
    };
    Some((listener, choice))
}

/// Returns the listener of the HTTP proxy for the port of the URL.
fn proxied<'s>(
    question: &Question,
    snapshot: &'s Snapshot,
    reason: String,
) -> Option<(&'s Arc<Listener>, String)> {
    let port = question.port.unwrap_or(80);
    let reason = format!("{reason}; of the HTTP proxy, the one for port {port}");
    Some((snapshot.proxied(port)?, reason))
}

/// Returns the listener for exactly the address of the URL, which is preferred for a captured connection as well.
fn dialed_listener<'s>(
    question: &Question,
    port: u16,
    snapshot: &'s Snapshot,
) -> Option<&'s Arc<Listener>> {
    let dialed = SocketAddr::new(question.address?, port);
    let mut leaving = snapshot
        .listeners
        .values()
        .filter(|listener| listener.direction != Direction::Inbound);
    leaving.find(|listener| listener.key.address.ip() == Some(dialed))
}

fn without_listener(
    mut answer: Explanation,
    question: &Question,
    snapshot: &Snapshot,
    survey: &Survey<'_>,
) -> Explanation {
    let reason = match question.listener {
        Some(wish) if !snapshot.listeners.is_empty() => format!("no listener is on {wish}"),
        _ => "nothing listens".to_owned(),
    };
    answer.outcome = Outcome::closed("", reason);
    let addresses: Vec<String> = snapshot
        .listeners
        .keys()
        .map(|key| key.address.to_string())
        .collect();
    answer.hints = if addresses.is_empty() {
        survey.idle_gateways().into_iter().map(note).collect()
    } else {
        vec![plain(format!("listeners: {}", addresses.join(", ")))]
    };
    if answer.hints.is_empty() {
        let why = "the configuration has no Gateway with a server for HTTP or HTTP2";
        answer.hints.push(plain(why));
    }
    answer
}

fn refused(
    answer: &mut Explanation,
    refusal: &LocalReply,
    tables: Option<Tables<'_>>,
    scheme: Scheme,
    request: &Request<()>,
) {
    let reason = if *refusal == LocalReply::NO_HOST {
        "the request names no host; give a whole URL, or -H 'Host: NAME'".to_owned()
    } else if *refusal == LocalReply::BAD_PATH {
        "the path has no normal form: it holds `%00`, or a dot segment with parameters (`..;`)"
            .to_owned()
    } else if *refusal == LocalReply::BAD_CONNECTION_HEADER {
        "the Connection header names a header that it must not name, or too many".to_owned()
    } else if *refusal == LocalReply::MISDIRECTED {
        let host = &answer.request.host;
        format!("the server of {host} asks for other client certificates than that of the SNI")
    } else if request.method() == Method::CONNECT {
        "CONNECT is not served".to_owned()
    } else if let Some(tables) = tables {
        answer.rules = tables.tried(None, scheme, request);
        let name = &tables.first().name;
        format!("no rule of virtual host {name} matches the request")
    } else {
        format!("no virtual host serves {}", answer.request.host)
    };
    answer.outcome = Outcome::Rejected {
        status: Some(refusal.status.as_u16()),
        flags: refusal.flags.to_string(),
        reason,
    };
}

/// Returns hints for a host that no virtual host serves.
fn host_hints(
    host: &str,
    hosts: Option<&HttpHosts>,
    part: &Part<'_>,
    survey: &Survey<'_>,
) -> Vec<Note> {
    let idle = survey.idle_services(part, host);
    let mut hints: Vec<Note> = idle.into_iter().map(note).collect();
    hints.extend(survey.unnamed(part, host).into_iter().map(note));
    let hosts = hosts.into_iter().flat_map(|hosts| &hosts.virtual_hosts);
    let mut names: Vec<&str> = hosts.map(|one| &*one.name).collect();
    if names.is_empty() {
        hints.push(plain("no VirtualService is bound to the listener"));
        return hints;
    }
    if let Some(near) = nearest_host(host, names.iter().copied()) {
        hints.push(plain(format!("did you mean {near}?")));
    }
    let more = names.len().saturating_sub(HOSTS_LISTED_MAX);
    names.truncate(HOSTS_LISTED_MAX);
    let mut listed = format!("the listener serves {}", names.join(", "));
    if more > 0 {
        listed.push_str(&format!(" and {more} more"));
    }
    hints.push(plain(listed));
    hints
}

fn note(idle: UnusedObject) -> Note {
    Note {
        source: Some((&idle.provenance).into()),
        text: idle.reason,
    }
}

fn plain(text: impl Into<String>) -> Note {
    Note {
        source: None,
        text: text.into(),
    }
}
