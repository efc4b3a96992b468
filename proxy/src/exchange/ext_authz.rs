//! External authorization: policies of action CUSTOM ask their providers, and single routes their service (`route`).
//!
//! Comes before tokens are verified and other policies judge, as in Istio: what a provider changes in a request, those
//! see. A request that cannot be checked is denied, unless its provider says `failOpen`.

mod answer;
mod check;
mod grpc;
mod http;
mod messages;
pub(super) mod route;

use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use hyper::body::Body as _;
use hyper::header::UPGRADE;
use hyper::{Request, Version};

use super::authenticate::strip_outputs;
use super::authorize::{
    Judged, bad_provider, count, judged_request, matched, of_connection, of_request,
};
use super::downstream::body::{DownstreamBody, PrefixError};
use super::downstream::connection::{Connection, Handshake, PeerIdentity};
use super::downstream::origin::Origin;
use super::limit;
use super::message::clean::Cleaned;
use super::message::header_changes::HeaderChanges;
use super::message::local_reply::LocalReply;
use super::record::Record;
use super::select::context::LookupContext;
use super::select::find_route::{Found, authority, find_route};
use super::service_call::{CallError, ServiceCall};
use super::worker::{SnapshotRef, Worker};
use crate::snapshot::Provider;
use crate::telemetry::{Counter, Stage};
use crate::upstream::Client;
use answer::Answer;
use check::{Asking, Sent};
use traffic::authz::{ExtAuthz, Policies, Rule, RuleSet};
use traffic::error::Kind;
use traffic::route::normalize_host;

/// Time in which the part of a body has to arrive that a provider gets.
const BODY_TIMEOUT: Duration = Duration::from_secs(300);

/// Returns the context of a request for which policies ask a provider. A guard of a match would keep it in the future.
pub(super) fn asked(judged: Option<Judged<'_>>) -> Option<Judged<'_>> {
    judged.filter(|judged| applies(*judged))
}

/// Whether policies that ask a provider apply to a request.
fn applies(judged: Judged<'_>) -> bool {
    let authorization = judged.policies.authorization.as_ref();
    authorization.is_some_and(|policies| !policies.http.custom.is_empty())
}

/// Result of [`find`], and the cleaned head.
type Checked<'a> = (Result<Found, LocalReply>, Cleaned<'a>);

/// Finds the rule for a request, if providers, its tokens and policies allow it. Boxed, since few requests need the
/// memory.
pub(super) fn find<'a: 'f, 'f>(
    judged: Judged<'f>,
    request: &'f mut Request<DownstreamBody>,
    cleaned: Cleaned<'a>,
    record: &'f mut Record,
) -> Pin<Box<dyn Future<Output = Checked<'a>> + 'f>> {
    Box::pin(find_checked(judged, request, cleaned, record))
}

async fn find_checked<'a>(
    judged: Judged<'_>,
    request: &mut Request<DownstreamBody>,
    mut cleaned: Cleaned<'a>,
    record: &mut Record,
) -> Checked<'a> {
    let LookupContext {
        snapshot,
        connection,
        origin,
    } = judged.context;
    let scheme = origin.scheme;
    let mut response = HeaderChanges::default();
    let found = find_route(snapshot, connection, scheme, request, &mut cleaned);
    let mut found = limit::admit_early(found, origin, request, record);
    if super::authorize::is_judged(&found) {
        let asked = ask(record, judged, request, &mut cleaned, &mut response).await;
        found = match asked {
            Err(denied) => {
                if let Ok(found) = &found {
                    record.record_denial(snapshot, found.route());
                }
                Err(denied)
            }
            Ok(is_rerouted) => {
                // a provider may not set them either
                if let Some(authentication) = &judged.policies.authentication {
                    strip_outputs(authentication, request.headers_mut());
                }
                let before = (!is_rerouted).then_some(found);
                judged_request(judged, request, &mut cleaned, before, record)
            }
        };
    }
    if !response.0.is_empty() {
        match &mut found {
            Ok(found) => found.changes = Some(Box::new(response)),
            Err(reply) => {
                let own = reply.own.get_or_insert_default();
                response.apply(&mut own.headers);
            }
        }
    }
    (found, cleaned)
}

/// Asks all providers whose rules match a request. Returns whether its route has to be looked up again.
async fn ask(
    record: &Record,
    judged: Judged<'_>,
    request: &mut Request<DownstreamBody>,
    cleaned: &mut Cleaned<'_>,
    response: &mut HeaderChanges,
) -> Result<bool, LocalReply> {
    let LookupContext {
        snapshot,
        connection,
        origin,
    } = judged.context;
    let policies = judged.policies.authorization.iter();
    let custom = policies.flat_map(|one| &*one.http.custom);
    let (worker, mut is_rerouted) = (record.worker(), false);
    // providers get the fields that the proxy adds
    cleaned.show(request.headers_mut());
    for (name, rules) in custom {
        let Some(rule) = matching(rules, request, connection, origin) else {
            continue;
        };
        matched(worker, Some(rule));
        let Some(provider) = snapshot.provider(name) else {
            count(worker, Stage::Custom, true, false);
            return Err(LocalReply::denied(bad_provider(rule)));
        };
        let (sent, settings) = (body(provider, request).await?, &*provider.settings);
        let asking = Asking {
            client: connection.client,
            remote: origin.client,
            principal: connection.peer().mesh_principal(),
            own_principal: connection.tls.as_deref().and_then(Handshake::own_principal),
            server_name: connection.server_name(),
        };
        let call = ServiceCall {
            worker,
            snapshot,
            service: &provider.service,
            client: connection.client,
            timeout: provider.settings.timeout,
            needs_tls: false,
            record: Some(record),
        };
        let answer = match &settings.http {
            Some(check) => http::ask(&call, check, request, &sent).await,
            None => grpc::ask(&call, &asking, origin.scheme, request, &sent).await,
        };
        let answer = answered(settings, answer);
        let is_denied = !matches!(answer, Some(Answer::Allowed(_)));
        let is_refused = is_denied && !(answer.is_none() && settings.fail_open);
        count(worker, Stage::Custom, is_refused, false);
        is_rerouted |= !is_refused && http::strip(settings.http.as_ref(), request.headers_mut());
        match answer {
            Some(Answer::Allowed(changes)) => {
                is_rerouted |= changes.apply(request) && settings.clears_route_cache;
                response.0.extend(changes.response.0);
            }
            Some(Answer::Denied {
                status,
                headers,
                body,
            }) => return Err(LocalReply::denied_by_provider(status, headers, body)),
            None if !is_refused => worker.count(Counter::ExtAuthzFailedOpen),
            None => {
                worker.count(Counter::ExtAuthzFailedClosed);
                return Err(LocalReply::provider_failed(settings.status_on_error));
            }
        }
    }
    Ok(is_rerouted)
}

/// Returns the first rule that a request matches.
fn matching<'r>(
    rules: &'r RuleSet,
    request: &Request<DownstreamBody>,
    connection: &Connection,
    origin: &Origin,
) -> Option<&'r Rule> {
    let authority = authority(request).unwrap_or_default();
    let host = normalize_host(authority);
    rules.first_match(&of_request(request, connection, origin, authority, &host))
}

/// Returns the answer of a provider; `None` if there is none.
fn answered<T>(settings: &ExtAuthz, answer: Result<T, CallError>) -> Option<T> {
    let provider = &*settings.name;
    answer
        .inspect_err(|error| tracing::debug!(provider, %error, "external authorization failed"))
        .ok()
}

/// Reads the part of a request's body that a provider gets, and puts it back.
async fn body(
    provider: &Provider,
    request: &mut Request<DownstreamBody>,
) -> Result<Sent, LocalReply> {
    let Some(limits) = provider.settings.body else {
        return Ok(Sent::default());
    };
    let is_tunnel = request.version() == Version::HTTP_2 || request.body().is_end_stream();
    if request.headers().contains_key(UPGRADE) && is_tunnel {
        return Ok(Sent::default());
    }
    let prefix = request
        .body_mut()
        .prefix(limits.bytes_max, limits.allows_part);
    let (mut body, is_whole) = match tokio::time::timeout(BODY_TIMEOUT, prefix).await {
        Ok(Ok(read)) => read,
        Ok(Err(PrefixError)) => return Err(LocalReply::from_kind(Kind::DownstreamBody)),
        Err(_) => return Err(LocalReply::body_timed_out()),
    };
    if !is_whole && !limits.allows_part {
        return Err(LocalReply::BODY_TOO_LARGE);
    }
    body.truncate(limits.bytes_max);
    Ok(Sent {
        is_partial: Some(!is_whole),
        body,
        as_bytes: limits.as_bytes,
    })
}

/// Facts of a connection: its handshake, and the name of the server that the client asks for.
#[derive(Clone, Copy)]
pub(super) struct Facts<'a> {
    pub(super) tls: Option<&'a Handshake>,
    pub(super) server_name: Option<&'a str>,
    /// Whether the port takes requests as well, so that the client has chosen to send none.
    pub(super) is_detected: bool,
}

/// Asks all providers whose rules match a connection of another protocol than HTTP.
///
/// # Errors
///
/// The reason for closing the connection, for the access log.
pub(super) async fn authorize_connection(
    worker: &Rc<Worker>,
    snapshot: &SnapshotRef,
    policies: &Policies,
    client: Client,
    facts: Facts<'_>,
) -> Result<(), String> {
    let Facts {
        tls,
        server_name,
        is_detected,
    } = facts;
    for (name, rules) in &policies.custom {
        let provider = snapshot.provider(name);
        let over_http = provider.is_some_and(|provider| provider.settings.http.is_some());
        // a provider over HTTP has no effect on ports without requests, as in Istio
        if over_http && !is_detected {
            continue;
        }
        let peer = PeerIdentity::new(tls);
        let subject = of_connection(client, peer, server_name);
        let Some(rule) = rules.first_match(&subject) else {
            continue;
        };
        matched(worker, Some(rule));
        let Some(provider) = provider else {
            count(worker, Stage::Custom, true, true);
            return Err(bad_provider(rule));
        };
        if over_http {
            count(worker, Stage::Custom, true, true);
            return Err("ext_authz_close".to_owned());
        }
        let asking = Asking {
            client,
            remote: client.source,
            principal: peer.mesh_principal(),
            own_principal: tls.and_then(Handshake::own_principal),
            server_name,
        };
        let call = ServiceCall {
            worker,
            snapshot,
            service: &provider.service,
            client,
            timeout: provider.settings.timeout,
            needs_tls: false,
            record: None,
        };
        let settings = &*provider.settings;
        let answer = answered(settings, grpc::ask_about_connection(&call, &asking).await);
        let is_allowed = answer.unwrap_or(settings.fail_open);
        count(worker, Stage::Custom, !is_allowed, true);
        match (answer, is_allowed) {
            (None, true) => worker.count(Counter::ExtAuthzFailedOpen),
            (None, false) => worker.count(Counter::ExtAuthzFailedClosed),
            (Some(_), _) => {}
        }
        if !is_allowed {
            return Err("ext_authz_close".to_owned());
        }
    }
    Ok(())
}
