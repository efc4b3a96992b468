//! External authorization: policies of action CUSTOM ask their providers.
//!
//! Comes before tokens are verified and other policies judge, as in Istio: what a provider changes in a request, those
//! see. A request that cannot be checked is denied, unless its provider says `failOpen`.

mod answer;
mod check;
mod grpc;
mod http;
mod messages;

use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use hyper::body::Body as _;
use hyper::header::UPGRADE;
use hyper::{Request, Version};

use super::authorize::{bad_provider, count, judged_request, matched, of_connection, of_request};
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
use traffic::authz::{ExtAuthz, Rule, RuleSet};
use traffic::error::Kind;
use traffic::route::normalize_host;

/// Time in which the part of a body has to arrive that a provider gets.
const BODY_TIMEOUT: Duration = Duration::from_secs(300);

/// Whether policies that ask a provider apply to the requests of a connection.
pub(super) fn applies(snapshot: &SnapshotRef, connection: &Connection) -> bool {
    let authorization = snapshot.authorization.as_ref();
    authorization.is_some_and(|policies| !policies.http.custom.is_empty())
        && snapshot.judges(&connection.listener, connection.client.destination)
}

/// Result of [`find`], and the cleaned head.
type Checked<'a> = (Result<Found, LocalReply>, Cleaned<'a>);

/// Finds the rule for a request, if providers, its tokens and policies allow it. Boxed, since few requests need the
/// memory.
pub(super) fn find<'a: 'f, 'f>(
    context: LookupContext<'f>,
    request: &'f mut Request<DownstreamBody>,
    cleaned: Cleaned<'a>,
    record: &'f mut Record,
) -> Pin<Box<dyn Future<Output = Checked<'a>> + 'f>> {
    Box::pin(find_checked(context, request, cleaned, record))
}

async fn find_checked<'a>(
    context: LookupContext<'_>,
    request: &mut Request<DownstreamBody>,
    mut cleaned: Cleaned<'a>,
    record: &mut Record,
) -> Checked<'a> {
    let LookupContext {
        snapshot,
        connection,
        origin,
    } = context;
    let scheme = origin.scheme;
    let mut response = HeaderChanges::default();
    let found = find_route(snapshot, connection, scheme, request, &mut cleaned);
    let mut found = limit::admit_early(found, origin, request, record);
    if super::authorize::is_judged(&found) {
        let worker = Rc::clone(record.worker());
        let asked = ask(&worker, context, request, &mut cleaned, &mut response).await;
        found = match asked {
            Err(denied) => {
                if let Ok(found) = &found {
                    record.record_denial(snapshot, found.route());
                }
                Err(denied)
            }
            Ok(is_rerouted) => {
                let before = (!is_rerouted).then_some(found);
                judged_request(context, request, &mut cleaned, before, record)
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
    worker: &Rc<Worker>,
    context: LookupContext<'_>,
    request: &mut Request<DownstreamBody>,
    cleaned: &mut Cleaned<'_>,
    response: &mut HeaderChanges,
) -> Result<bool, LocalReply> {
    let (snapshot, connection, origin) = (context.snapshot, context.connection, context.origin);
    let custom = snapshot
        .authorization
        .iter()
        .flat_map(|one| &*one.http.custom);
    let mut is_rerouted = false;
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
        let sent = body(provider, request).await?;
        let asking = Asking {
            client: connection.client,
            remote: origin.client,
            principal: connection.peer().principal(),
            own_principal: connection.tls.as_deref().and_then(Handshake::own_principal),
            server_name: connection.server_name(),
        };
        let call = ServiceCall {
            worker,
            snapshot,
            service: &provider.service,
            client: connection.client,
            timeout: provider.settings.timeout,
        };
        let settings = &*provider.settings;
        let answer = match &settings.http {
            Some(check) => http::ask(&call, check, request, &sent).await,
            None => grpc::ask(&call, &asking, origin.scheme, request, &sent).await,
        };
        let answer = answered(settings, answer);
        let is_denied = !matches!(answer, Some(Answer::Allowed(_)));
        let passes = is_denied && answer.is_none() && settings.fail_open;
        count(worker, Stage::Custom, is_denied && !passes, false);
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
            None if passes => worker.count(Counter::ExtAuthzFailedOpen),
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
    let host = normalize_host(authority(request).unwrap_or_default());
    rules.first_match(&of_request(request, connection, origin, &host))
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

/// Asks all providers whose rules match a connection of another protocol than HTTP.
///
/// # Errors
///
/// The reason for closing the connection, for the access log.
pub(super) async fn authorize_connection(
    worker: &Rc<Worker>,
    snapshot: &SnapshotRef,
    client: Client,
    tls: Option<&Handshake>,
    server_name: Option<&str>,
) -> Result<(), String> {
    let custom = snapshot
        .authorization
        .iter()
        .flat_map(|one| &*one.tcp.custom);
    for (name, rules) in custom {
        // a provider over HTTP has no effect on connections, as in Istio
        let provider = snapshot.provider(name);
        if provider.is_some_and(|provider| provider.settings.http.is_some()) {
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
        let asking = Asking {
            client,
            remote: client.source,
            principal: peer.principal(),
            own_principal: tls.and_then(Handshake::own_principal),
            server_name,
        };
        let call = ServiceCall {
            worker,
            snapshot,
            service: &provider.service,
            client,
            timeout: provider.settings.timeout,
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
