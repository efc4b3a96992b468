//! Authorization of requests and connections, by the policies that apply to the proxy.
//!
//! Called by [`run`](super::run) after the route was looked up and before it is used, so that a denied client learns
//! nothing of the routes, and by [`tcp::open`](super::tcp::open) before a destination is chosen. A sidecar judges
//! inbound traffic only, and a gateway all of it.

use std::net::SocketAddr;
use std::time::Instant;

use hyper::header::HeaderMap;
use hyper::{Request, StatusCode};

use super::authenticate::{authenticate, strip_outputs};
use super::downstream::body::DownstreamBody;
use super::downstream::connection::{Connection, PeerIdentity};
use super::downstream::origin::Origin;
use super::message::clean::Cleaned;
use super::message::local_reply::LocalReply;
use super::record::Record;
use super::select::context::LookupContext;
use super::select::find_route::{Found, authority, find_route, matched_head};
use super::worker::{SnapshotRef, Worker};
use crate::snapshot::{Listener, ListenerPolicies};
use crate::telemetry::{Decided, Stage};
use crate::upstream::Client;
use traffic::authz::{Authorization, Decision, DryRun, Policies, Rule, Subject};
use traffic::claims::Claims;
use traffic::route::normalize_host;

/// Number of decisions of a worker of which the time of one is measured.
const SAMPLED_OF: u64 = 1_024;

/// Context of a request to which policies apply.
#[derive(Clone, Copy)]
pub(super) struct Judged<'a> {
    pub(super) context: LookupContext<'a>,
    pub(super) policies: &'a ListenerPolicies,
}

impl<'a> Judged<'a> {
    /// Returns the context of a request; `None` if no policies apply to it. Removes headers that only tokens may set, before
    /// anything reads them: routes, limits, providers or the access log.
    pub(super) fn of(context: LookupContext<'a>, headers: &mut HeaderMap) -> Option<Self> {
        let connection = context.connection;
        let local = connection.client.destination;
        let policies = context.snapshot.policies_at(&connection.listener, local)?;
        if let Some(authentication) = &policies.authentication {
            strip_outputs(authentication, headers);
        }
        Some(Self { context, policies })
    }
}

/// Verifies the tokens of a request, finds its rule, and authorizes it. A rule that was found `before` is kept, unless
/// claims, or headers that only tokens may set, could lead to another one.
pub(super) fn judged_request(
    judged: Judged<'_>,
    request: &mut Request<DownstreamBody>,
    cleaned: &mut Cleaned<'_>,
    before: Option<Result<Found, LocalReply>>,
    record: &mut Record,
) -> Result<Found, LocalReply> {
    let LookupContext {
        snapshot,
        connection,
        origin,
    } = judged.context;
    let scheme = origin.scheme;
    let authenticated = authenticate(record.worker(), judged.policies, scheme, request);
    let has_claims = matches!(authenticated, Ok(Some(_)));
    let before = before.filter(|found| match found {
        _ if judged.policies.sets_headers() => false,
        Ok(found) => !(has_claims && found.virtual_host().table.reads_claims()),
        Err(_) => !has_claims,
    });
    let found = match before {
        Some(found) => found,
        None => find_route(snapshot, connection, scheme, request, cleaned),
    };
    if !is_judged(&found) {
        return found;
    }
    let decided = authenticated.and_then(|verified| {
        let claims = verified.as_ref().map(|verified| &*verified.claims);
        authorize_request(judged, request, cleaned, claims, record)
    });
    match decided {
        Ok(()) => found,
        Err(denied) => {
            if let Ok(found) = &found {
                record.record_denial(snapshot, found.route());
            }
            Err(denied)
        }
    }
}

/// Authorizes a request.
///
/// # Errors
///
/// The reply to a client that is denied: 403, `RBAC: access denied`.
fn authorize_request(
    judged: Judged<'_>,
    request: &mut Request<DownstreamBody>,
    cleaned: &mut Cleaned<'_>,
    claims: Option<&Claims>,
    record: &mut Record,
) -> Result<(), LocalReply> {
    let Judged { context, policies } = judged;
    let Some(authorization) = &policies.authorization else {
        return Ok(());
    };
    let policies = &authorization.http;
    if policies.reads_added {
        cleaned.show(request.headers_mut());
    }
    let LookupContext {
        connection, origin, ..
    } = context;
    let authority = authority(request).unwrap_or_default();
    let host = normalize_host(authority);
    let subject = Subject {
        claims,
        ..of_request(request, connection, origin, authority, &host)
    };
    if let Some(rule) = policies.audit.first_match(&subject) {
        matched(record.worker(), Some(rule));
        record.record_audit(&rule.policy.name);
    }
    match judge(record.worker(), policies, &subject) {
        None => Ok(()),
        Some(details) => Err(LocalReply::denied(details)),
    }
}

/// Authorizes a connection of another protocol than HTTP.
///
/// # Errors
///
/// The reason for closing the connection, for the access log.
pub(super) fn authorize_connection(
    worker: &Worker,
    policies: &Policies,
    client: Client,
    peer: PeerIdentity<'_>,
    server_name: Option<&str>,
) -> Result<(), String> {
    let subject = of_connection(client, peer, server_name);
    matched(worker, policies.audit.first_match(&subject));
    judge(worker, policies, &subject).map_or(Ok(()), Err)
}

/// Returns the policies for the traffic of a listener that allow or deny; `None` if none apply.
pub(crate) fn of_listener<'a>(
    snapshot: &'a SnapshotRef,
    listener: &'a Listener,
) -> Option<&'a Authorization> {
    snapshot.policies_of(listener)?.authorization.as_deref()
}

/// Whether policies judge a request: it is valid, with or without a route.
pub(crate) fn is_judged(found: &Result<Found, LocalReply>) -> bool {
    match found {
        Ok(_) => true,
        Err(reply) => matches!(
            reply.status,
            StatusCode::NOT_FOUND | StatusCode::MISDIRECTED_REQUEST
        ),
    }
}

/// Returns the facts of a request without a token that policies compare. `host` is its `authority`, normalized.
pub(crate) fn of_request<'a, B>(
    request: &'a Request<B>,
    connection: &'a Connection,
    origin: &Origin,
    authority: &'a str,
    host: &'a str,
) -> Subject<'a> {
    Subject {
        request: Some(matched_head(request, origin.scheme, authority, host)),
        remote_ip: origin.client.ip().to_canonical(),
        ..of_connection(
            connection.client,
            connection.peer(),
            connection.server_name(),
        )
    }
}

/// Returns the facts of a connection that policies compare.
pub(crate) fn of_connection<'a>(
    client: Client,
    peer: PeerIdentity<'a>,
    server_name: Option<&'a str>,
) -> Subject<'a> {
    let Client {
        source,
        destination,
    } = client;
    let source_ip = source.ip().to_canonical();
    Subject {
        peer: peer.of_mesh(),
        source_ip,
        remote_ip: source_ip,
        destination: SocketAddr::new(destination.ip().to_canonical(), destination.port()),
        sni: server_name.unwrap_or_default(),
        request: None,
        claims: None,
    }
}

/// Judges a client again that was admitted before. Returns the reason of a denial.
pub(super) fn deny_again(
    worker: &Worker,
    policies: &Policies,
    subject: &Subject<'_>,
) -> Option<String> {
    match policies.decide(subject) {
        Decision::Allowed(_) => None,
        Decision::Denied(_) => judge(worker, policies, subject),
    }
}

/// Judges by DENY and ALLOW policies. Returns the reason of a denial, in Envoy's words.
fn judge(worker: &Worker, policies: &Policies, subject: &Subject<'_>) -> Option<String> {
    let is_tcp = subject.request.is_none();
    let count = |stage, is_denied| count(worker, stage, is_denied, is_tcp);
    if let Some(dry_run) = &policies.dry_run {
        judge_in_dry_run(worker, dry_run, subject, count);
    }
    let number = worker.decisions.get();
    worker.decisions.set(number.wrapping_add(1));
    let started = number.is_multiple_of(SAMPLED_OF).then(Instant::now);
    let decision = policies.decide(subject);
    if let Some(started) = started {
        let took = started.elapsed();
        worker.telemetry.evaluations.observe(worker.id, took);
    }
    let (stage, rule) = match decision {
        Decision::Allowed(rule) => {
            if policies.allow.is_some() || !policies.deny.is_empty() {
                count(Stage::Allow, false);
            }
            matched(worker, rule);
            return None;
        }
        Decision::Denied(Some(rule)) => (Stage::Deny, Some(rule)),
        Decision::Denied(None) => (Stage::Allow, None),
    };
    count(stage, true);
    matched(worker, rule);
    Some(details(rule.map_or("none", |rule| &rule.name)))
}

/// Counts a decision.
pub(super) fn count(worker: &Worker, stage: Stage, is_denied: bool, is_tcp: bool) {
    let decided = Decided {
        stage,
        is_denied,
        is_tcp,
    };
    worker.telemetry.decisions.count(worker.id, decided.index());
}

/// Counts a match of a rule, if there is one.
pub(super) fn matched(worker: &Worker, rule: Option<&Rule>) {
    if let Some(rule) = rule {
        rule.policy.matches.count(worker.id, 0);
    }
}

/// Returns the reason of a denial where a rule's provider is unknown, or cannot be asked about this kind of traffic.
pub(crate) fn bad_provider(rule: &Rule) -> String {
    details(&format!("{}-deny-due-to-bad-CUSTOM-action", rule.name))
}

fn details(name: &str) -> String {
    format!("rbac_access_denied_matched_policy[{name}]")
}

/// Counts and logs the decision that policies in dry run would make.
#[cold]
fn judge_in_dry_run(
    worker: &Worker,
    dry_run: &DryRun,
    subject: &Subject<'_>,
    count: impl Fn(Stage, bool),
) {
    matched(worker, dry_run.custom.first_match(subject));
    let has_rules = dry_run.allow.is_some() || !dry_run.deny.is_empty();
    if !has_rules {
        return;
    }
    match dry_run.decide(subject) {
        Decision::Denied(Some(rule)) => {
            count(Stage::DryRunDeny, true);
            matched(worker, Some(rule));
            tracing::debug!(rule = &*rule.name, "would be denied by a policy in dry run");
        }
        Decision::Denied(None) => {
            count(Stage::DryRunAllow, true);
            tracing::debug!("would be denied: no ALLOW policy in dry run matches");
        }
        Decision::Allowed(rule) => {
            count(Stage::DryRunAllow, false);
            matched(worker, rule);
        }
    }
}

impl LocalReply {
    /// A policy denies the request.
    pub(super) fn denied(details: String) -> Self {
        Self {
            details: details.into(),
            ..Self::DENIED
        }
    }
}
