//! Forwards a request: prepares it, sends it, and returns the response.

mod edits;
pub mod mirror;
mod prepare;
pub mod reply_body;
pub mod upgrade;

use std::rc::Rc;

use hyper::header::{SET_COOKIE, UPGRADE};
use hyper::{Request, Response, StatusCode, Version};

use self::edits::CameFrom;
pub(super) use self::prepare::{Prepared, Refused, prepare};
use self::reply_body::{ReplyBody, StreamBody};
use super::attempt;
use super::attempt::deadline::Deadline;
use super::attempt::request::AttemptResult;
use super::downstream::body::DownstreamBody;
use super::downstream::connection::{DownstreamProtocol, Unreached};
use super::message::clean::Cleaned;
use super::message::headers::{self, X_ENVOY_UPSTREAM_SERVICE_TIME};
use super::message::local_reply::LocalReply;
use super::record::{Ending, Record};
use super::select::context::RequestContext;
use crate::pool;
use crate::snapshot::Direction;
use crate::telemetry::ResponseFlags;
use traffic::error::{Error, Kind};
use traffic::filter::hop_by_hop;

/// Sends the request to a destination of the route and returns its response, or a local reply.
pub async fn run(
    context: RequestContext<'_>,
    request: &mut Request<DownstreamBody>,
    cleaned: Cleaned<'_>,
    mut record: Box<Record>,
) -> Response<ReplyBody> {
    match &mut prepare(&context, request, cleaned, &mut record) {
        Ok(prepared) => {
            let attempted = attempt::run(&context, &mut prepared.forwarded, &mut record).await;
            finish(&context, prepared, attempted, record)
        }
        Err(refused) => refuse(&context, refused, record),
    }
}

/// Turns the result of the attempts into a response. `prepared` is passed by reference, since it is large.
pub(super) fn finish(
    context: &RequestContext<'_>,
    prepared: &mut Prepared<'_>,
    attempted: AttemptResult,
    record: Box<Record>,
) -> Response<ReplyBody> {
    match attempted {
        Ok(response) => pass(context, prepared, response, record),
        Err(error) => fail(context, prepared, &error, record),
    }
}

/// Replies to a request whose last attempt failed.
#[cold]
fn fail(
    context: &RequestContext<'_>,
    prepared: &mut Prepared<'_>,
    error: &Error,
    mut record: Box<Record>,
) -> Response<ReplyBody> {
    let destination = prepared.forwarded.destination;
    let cause = std::error::Error::source(error);
    tracing::debug!(cluster = &*destination.name, %error, cause, "attempt failed");
    let reply = failure_reply(context, prepared, error, &record);
    if let (Some(log), Some(reason)) = (record.log_mut(), error.transport()) {
        log.record_transport_failure(reason);
    }
    let mut refused = Refused {
        destination: Some(destination),
        snapshot: prepared.response.snapshot.take(),
        reply,
    };
    let mut response = refuse(context, &mut refused, record);
    if is_unreached(context, prepared, error) {
        response.extensions_mut().insert(Unreached);
    }
    response
}

/// Whether the workload of a sidecar refuses connections, and the client may send the request elsewhere.
fn is_unreached(context: &RequestContext<'_>, prepared: &Prepared<'_>, error: &Error) -> bool {
    let connection = context.connection;
    let listener = (context.snapshot).listener(&connection.listener, connection.client.destination);
    let is_inbound = listener.is_some_and(|found| found.direction == Direction::Inbound);
    let is_refused = error.kind() == Kind::ConnectFailed && error.transport().is_none();
    let is_safe = connection.protocol == DownstreamProtocol::Http2
        || prepared.forwarded.outgoing.is_idempotent();
    is_inbound && is_refused && is_safe
}

/// The reply after the last attempt has failed.
fn failure_reply(
    context: &RequestContext<'_>,
    prepared: &Prepared<'_>,
    error: &Error,
    record: &Record,
) -> LocalReply {
    let mut reply = LocalReply::from_error(error);
    if error.kind() == Kind::NoHealthyUpstream
        && let Some(target) = prepared.forwarded.picked.target().newest(context.worker)
    {
        reply.details = target.no_endpoint_reply().details;
    }
    if let Some(details) = record.body_fault()
        && error.kind() == Kind::DownstreamBody
    {
        reply = LocalReply::bad_body(details);
    }
    let timed_out = matches!(error.kind(), Kind::RequestTimeout | Kind::AttemptTimeout);
    if prepared.response.alt_response && timed_out {
        reply.status = StatusCode::NO_CONTENT;
        reply.body = "".into();
    }
    reply.retried = record.attempts() > 1;
    reply
}

/// Creates a local reply on a matched route, with the route's response edits.
pub(super) fn refuse(
    context: &RequestContext<'_>,
    refused: &mut Refused<'_>,
    mut record: Box<Record>,
) -> Response<ReplyBody> {
    let mut response = record.reply(&refused.reply);
    if let Some(snapshot) = refused.snapshot.take() {
        context.edit_local(refused.destination, &snapshot, &record, &mut response);
    }
    record.record_logged_head(response.headers());
    record.finish(Ending::Complete);
    response.map(ReplyBody::from)
}

/// Passes on the upstream's response: removes hop-by-hop headers, adds the proxy's, then applies the route's edits; the
/// body streams.
fn pass(
    context: &RequestContext<'_>,
    prepared: &mut Prepared<'_>,
    mut response: Response<pool::Incoming>,
    mut record: Box<Record>,
) -> Response<ReplyBody> {
    let Prepared {
        forwarded,
        response: kept,
    } = prepared;
    forwarded.outgoing.release_saved();
    let took = record.record_upstream_response();
    if let Some(log) = record.log_mut() {
        log.record_connection(response.body().ends());
    }
    let switch = kept.switch.take();
    let switch = switch.filter(|_| upgrade::accepted(&response));
    *response.version_mut() = Version::HTTP_11;
    let headers = response.headers_mut();
    hop_by_hop::strip_response(headers, switch.is_some());
    if let Some(took) = took.filter(|_| !context.worker.setting(|all| all.omitted.debug)) {
        headers.insert(X_ENVOY_UPSTREAM_SERVICE_TIME, headers::millis(took));
    }
    if let Some(cookie) = kept.cookie.take() {
        headers.append(SET_COOKIE, *cookie);
    }
    record.record_grpc_status(headers);
    record.record_response_head(
        response.status().as_u16(),
        ResponseFlags::NONE,
        "via_upstream",
    );
    if let Some(snapshot) = kept.snapshot.take() {
        let ends = Rc::clone(response.body().ends());
        let came_from = CameFrom {
            destination: Some(forwarded.destination),
            ends: Some(&ends),
        };
        context.edit_response(came_from, &snapshot, &record, &mut response);
    }
    record.record_logged_head(response.headers());
    let (parts, incoming) = response.into_parts();
    let body = match switch {
        Some(downstream) => {
            record.record_tunnel();
            if let Some(upstream) = incoming.into_upgraded() {
                upgrade::tunnel(context.worker, downstream, upstream, record);
            }
            ReplyBody::Empty
        }
        None => ReplyBody::Stream(Box::new(StreamBody::new(
            incoming,
            record,
            forwarded.deadline.take().map(Deadline::in_response),
        ))),
    };
    debug_assert!(!parts.headers.contains_key(UPGRADE) || parts.status.is_informational());
    Response::from_parts(parts, body)
}
