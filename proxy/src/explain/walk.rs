//! Explanation of one request: its path through a snapshot.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use http::header::HOST;
use http::{Method, Request};
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::answer::{
    Condition, Explanation, HostChoice, ListenerChoice, Note, Outcome, RequestSummary, RuleTried,
    Source,
};
use super::connection::ExplainedConnection;
use super::effect::ExplainedRequest;
use super::question::ListenerWish;
use super::{Question, authorization, cluster, connection, effect, secret};
use crate::compile::Survey;
use crate::compile::survey::{Part, UnusedObject, nearest_host};
use crate::exchange::authorize;
use crate::exchange::downstream::connection::Handshake;
use crate::exchange::downstream::connection::{Connection, DownstreamProtocol};
use crate::exchange::downstream::origin::Origin;
use crate::exchange::message::clean;
use crate::exchange::message::local_reply::LocalReply;
use crate::exchange::select::find_route::{self, Found};
use crate::exchange::settings::ExchangeSettings;
use crate::exchange::worker::SnapshotRef;
use crate::snapshot::{
    Chain, Direction, HttpHosts, Listener, ListenerKey, Security, Service, Snapshot, VirtualHost,
};
use traffic::authz::{Authorization, Subject};
use traffic::filter::Scheme;
use traffic::route::{self, Rule, RuleIdx, normalize_host};

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
    let name = question.server_name.clone();
    let name = name.unwrap_or_else(|| answer.request.host.clone());
    let Some((listener, choice)) = choose_listener(question, &answer.request.host, snapshot) else {
        return without_listener(answer, question, snapshot, survey);
    };
    answer.listener = Some(choice);
    answer.hints.extend(rejected_policies(listener, survey));
    let connection = downstream(listener, &name, question.address, question.client);
    let shared: SnapshotRef = Rc::new(Arc::clone(snapshot));
    let policies = authorize::of_listener(&shared, listener).map(|one| (one, &**snapshot));
    let explained = ExplainedConnection::new(&name, question.client, connection.dialed());
    if connection::explain(&mut answer, listener, explained, &shared, survey) {
        let (peer, name) = (connection.peer(), connection.server_name());
        let subject = authorize::of_connection(connection.client, peer, name);
        judged(&mut answer, policies, question.identified(subject));
        return answer;
    }
    let part = Part {
        listener: &listener.key,
        chain: chain(listener, &connection).map(|chain| &*chain.id),
    };
    let hint = scheme_hint(question, listener, &connection);
    answer.hints.extend(hint);
    let (found, origin) = find(&mut request, &connection, &shared, settings);
    request.uri().path().clone_into(&mut answer.request.path);
    let hosts = listener.http(connection.security()).map(|hosts| &**hosts);
    let local = connection.client.destination.ip();
    let virtual_host = hosts.and_then(|hosts| host_at(hosts, &answer.request.host, local));
    if let Some(host) = virtual_host {
        answer.virtual_host = Some(host_choice(host));
        let left_out = survey.left_out(&part, &host.name);
        answer.unreachable.extend(left_out.into_iter().map(note));
    }
    let policies = policies.filter(|_| authorize::is_judged(&found));
    match found {
        Ok(found) => {
            let host = &answer.request.host;
            answer.virtual_host = Some(chosen(&found, hosts, host));
            let request = ExplainedRequest {
                connection: &connection,
                scheme: origin.scheme,
                client: origin.client.ip(),
                head: &request,
            };
            won(&mut answer, &found, &shared, survey, request);
        }
        Err(refusal) => {
            let virtual_host = virtual_host.map(|host| &**host);
            refused(&mut answer, &refusal, virtual_host, origin.scheme, &request);
            if virtual_host.is_none() && refusal == LocalReply::NO_ROUTE {
                let hints = host_hints(&answer.request.host, hosts, &part, survey);
                answer.hints.extend(hints);
            }
        }
    }
    let host = answer.request.host.clone();
    let subject = authorize::of_request(&request, &connection, &origin, &host);
    judged(&mut answer, policies, question.identified(subject));
    let closed = chain(listener, &connection).and_then(connection::without_certificate);
    answer.outcome = closed.unwrap_or(answer.outcome);
    answer
}

/// Returns the virtual host for a host, else the one at the address that the client dialed.
fn host_at<'a>(hosts: &'a HttpHosts, host: &str, local: IpAddr) -> Option<&'a Arc<VirtualHost>> {
    hosts.find(host).or_else(|| hosts.at(local))
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
        answer.outcome = Outcome::Rejected {
            status: Some(LocalReply::DENIED.status.as_u16()),
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
/// address if the listener accepts any, and from this client.
fn downstream(
    listener: &Listener,
    name: &str,
    address: Option<IpAddr>,
    client: Option<IpAddr>,
) -> Connection {
    let client = client.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let peer = SocketAddr::new(client, 0);
    let mut local = listener.key.address.ip_or_loopback();
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
        hints: Vec::new(),
    }
}

/// Chooses the requested listener, else the one with the URL's port, else one that serves the host, else the first.
fn choose_listener<'s>(
    question: &Question,
    host: &str,
    snapshot: &'s Snapshot,
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
        (None, port) => match port.and_then(|port| Some((port, with_port(port)?))) {
            Some((port, listener)) => (listener, format!("the URL leads to port {port}")),
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
    let (listener, reason) = match (&listener.service, question.port.unwrap_or(80)) {
        (Service::HttpProxy, port) => {
            let of_port = snapshot.proxied(port)?;
            let reason = format!("{reason}; of the HTTP proxy, the one for port {port}");
            (of_port, reason)
        }
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

fn host_choice(host: &VirtualHost) -> HostChoice {
    let reason = match &*host.name {
        "*" => "serves hosts without a virtual host of their own",
        wildcard if wildcard.starts_with('*') => "longest wildcard that matches",
        _ => "exact match",
    };
    HostChoice {
        name: host.name.to_string(),
        reason: reason.to_owned(),
        rules: host.table.rules().len(),
        translates_grpc_web: host.is_grpc_web,
        rebuilt_because: host.cause.as_ref().map(ToString::to_string),
    }
}

/// Describes the virtual host of a request, and the reason for the choice.
fn chosen(found: &Found, hosts: Option<&HttpHosts>, host: &str) -> HostChoice {
    let is_it = |other: &Arc<VirtualHost>| std::ptr::eq(&**other, found.virtual_host());
    let exports = hosts.and_then(|hosts| hosts.exports.as_ref());
    let named = hosts.and_then(|hosts| hosts.find(host));
    let mut choice = host_choice(found.virtual_host());
    if exports.is_some_and(is_it) {
        choice.reason = "what is exported to other clusters, whatever the host".to_owned();
    } else if !named.is_some_and(is_it) {
        choice.reason =
            "no virtual host has this name; the connection is to this address of a service"
                .to_owned();
    }
    choice
}

/// Evaluates the rules from the first up to `last` for the request.
fn tried(
    virtual_host: &VirtualHost,
    last: Option<RuleIdx>,
    scheme: Scheme,
    request: &Request<()>,
) -> Vec<RuleTried> {
    let rules = virtual_host.table.rules();
    let end = last.map_or(rules.len(), |last| last.index() + 1);
    let authority = find_route::authority(request).unwrap_or_default();
    let host = normalize_host(authority);
    let matched = find_route::matched_head(request, scheme, authority, &host);
    let one = |(position, rule): (usize, &Rule)| RuleTried {
        number: position + 1,
        name: rule.name.to_string(),
        source: (&rule.provenance).into(),
        matched: last.is_some_and(|last| last.index() == position),
        conditions: route::explain::explain(rule, &matched)
            .into_iter()
            .map(|line| Condition {
                expected: secret::wanted(&line.field, line.wanted),
                field: line.field,
                actual: line.got,
                matched: line.held,
                hint: line.hint.map(str::to_owned),
            })
            .collect(),
    };
    rules[..end].iter().enumerate().map(one).collect()
}

fn won(
    answer: &mut Explanation,
    found: &Found,
    snapshot: &SnapshotRef,
    survey: &Survey<'_>,
    request: ExplainedRequest<'_>,
) {
    let virtual_host = found.virtual_host();
    answer.rules = tried(
        virtual_host,
        Some(found.rule()),
        request.scheme,
        request.head,
    );
    answer.rules_not_tried = virtual_host.table.rules().len() - answer.rules.len();
    let (action, outcome) = effect::of(found.route(), snapshot, request);
    answer.action = Some(action);
    answer.outcome = outcome;
    answer.destinations = cluster::destinations(found, snapshot, survey, request);
}

fn refused(
    answer: &mut Explanation,
    refusal: &LocalReply,
    virtual_host: Option<&VirtualHost>,
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
    } else if let Some(found) = virtual_host {
        answer.rules = tried(found, None, scheme, request);
        format!("no rule of virtual host {} matches the request", found.name)
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
