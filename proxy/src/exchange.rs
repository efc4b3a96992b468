//! The path of one request from its head to the last byte of its response.
//!
//! [`run`] has all steps in their order; what it calls (`route`, `filter`, `cluster`) returns values, and sending
//! (`pool`) returns a response or an error.

mod admit;
pub mod attempt;
pub(crate) mod authenticate;
pub(crate) mod authorize;
pub mod body;
pub mod connect;
mod counted;
mod direct;
pub mod downstream;
pub mod early;
mod ext_authz;
pub mod forward;
mod grpc_web;
mod limit;
pub mod message;
mod own_request;
mod recheck;
pub mod record;
pub mod select;
pub(crate) mod service_call;
pub mod settings;
pub mod simulated;
pub mod tcp;
mod token_cache;
mod trace;
pub mod trace_parts;
pub mod worker;

use std::rc::Rc;

use hyper::header::{CONNECTION, HeaderValue, SERVER};
use hyper::{Request, Response};

pub use downstream::body::DownstreamBody;
pub use downstream::connection::Connection;
pub use forward::reply_body::ReplyBody;
pub use worker::{Worker, WorkerParts};

use crate::telemetry::Counter;
use authorize::{Judged, judged_request};
use downstream::connection::DownstreamProtocol;
use downstream::origin::Origin;
use message::clean::{self, Cleaned};
use message::local_reply::LocalReply;
use record::log::LogFields;
use record::log_choice::LogChoice;
use record::spans::Spans;
use record::tapped::TapInput;
use record::{Ending, Record};
use select::context::{LookupContext, RequestContext};
use select::find_route::{self, Found};
use settings::ExchangeSettings;
use traffic::filter::grpc_web::Text;
use wire::fields;
use worker::SnapshotRef;

/// Handles one request: all steps in their order.
///
/// Never fails: every error becomes a local reply. Owns its data, and awaits as few futures in a row as possible: each
/// of them is copied into the enclosing one.
#[expect(
    clippy::manual_async_fn,
    reason = "the parameters of an `async fn` are copied once more"
)]
pub fn run(
    worker: Rc<Worker>,
    connection: Rc<Connection>,
    mut request: Request<DownstreamBody>,
) -> impl Future<Output = Response<ReplyBody>> {
    async move {
        let (worker, connection, request) = (&worker, &connection, &mut request);
        let mut snapshot = worker.snapshot();
        if connect::is_for(request, &snapshot, connection) {
            let response = Box::pin(connect::run(worker, &snapshot, connection, request)).await;
            return finish_head(connection, response);
        }
        worker.count(Counter::RequestsStarted);
        let (hops, is_sidecar) = worker.setting(ExchangeSettings::trust);
        let origin = Origin::of(connection, hops, is_sidecar, request.headers());
        let context = LookupContext::new(&snapshot, connection, &origin);
        let judged = Judged::of(context, request.headers_mut());
        let (cleaned, mut record) = begin(worker, &snapshot, connection, &origin, request);
        let (mut lookup, cleaned) = match ext_authz::asked(judged) {
            Some(asked) => ext_authz::find(asked, request, cleaned, &mut record).await,
            None => find(context, judged, request, cleaned, &mut record),
        };
        if matches!(&lookup, Ok(found) if found.needs_address(&snapshot)) {
            // boxed: few requests name a host that only DNS knows
            Box::pin(find_address(worker, &mut snapshot, &mut lookup)).await;
        }
        let found = match &mut lookup {
            Err(refusal) => {
                let response = refuse(record, refusal, &snapshot, request);
                return finish_head(connection, response);
            }
            Ok(found) => record.show_forced(found).drawn(worker),
        };
        record.record_found(found);
        let context = RequestContext {
            worker,
            connection,
            origin: &origin,
            snapshot: &snapshot,
            found,
        };
        let cleaned = match found.route().reads_request_headers() {
            true => cleaned.shown(request.headers_mut()),
            false => cleaned,
        };
        let filters = &found.route().filters;
        let response = if let Some(text) = grpc_web::translate(found, request, &mut record) {
            // boxed: used only on ports with gRPC-Web
            Box::pin(translated(text, context, request, cleaned, record)).await
        } else if let Some(early) = &filters.early {
            // boxed: few rules have faults or CORS, and all others would hold its memory
            Box::pin(early::run(early, context, request, cleaned, record)).await
        } else if let Some(response) = direct::answer(&context, request, &record) {
            direct::finish(&context, request, response, record)
        } else {
            // as `forward::run` does
            match &mut forward::prepare(&context, request, cleaned, &mut record) {
                Ok(prepared) => {
                    let forwarded = &mut prepared.forwarded;
                    let attempted = attempt::run(&context, forwarded, &mut record).await;
                    forward::finish(&context, prepared, attempted, record)
                }
                Err(refused) => forward::refuse(&context, refused, record),
            }
        };
        finish_head(connection, change(&lookup, response))
    }
}

/// Resolves the host that a client of the HTTP proxy named; the snapshot is the newest one afterwards.
async fn find_address(
    worker: &Worker,
    snapshot: &mut SnapshotRef,
    found: &mut Result<Found, LocalReply>,
) {
    let Ok(route) = found else {
        return;
    };
    let resolved = route.find_address(&worker.names, snapshot).await;
    *snapshot = worker.snapshot();
    if let Err(refusal) = resolved {
        *found = Err(refusal);
    }
}

/// Responds to a request that was translated from gRPC-Web to gRPC.
async fn translated(
    text: Text,
    context: RequestContext<'_>,
    request: &mut Request<DownstreamBody>,
    cleaned: Cleaned<'_>,
    record: Box<Record>,
) -> Response<ReplyBody> {
    let filters = &context.found.route().filters;
    let response = match (&filters.early, direct::answer(&context, request, &record)) {
        (Some(early), _) => early::run(early, context, request, cleaned, record).await,
        (None, Some(response)) => direct::finish(&context, request, response, record),
        (None, None) => forward::run(context, request, cleaned, record).await,
    };
    grpc_web::respond(response, text).await
}

/// Cleans the head of a request and begins its record.
fn begin<'a>(
    worker: &Rc<Worker>,
    snapshot: &SnapshotRef,
    connection: &'a Rc<Connection>,
    origin: &Origin,
    request: &mut Request<DownstreamBody>,
) -> (Cleaned<'a>, Box<Record>) {
    let settings = &worker.settings();
    let mut cleaned = worker.random(|rng| clean::clean(request, connection, origin, settings, rng));
    let (key, local) = (&connection.listener, connection.client.destination);
    let traced = snapshot.tracing_at(key, local);
    let trace = traced.map(|traced| trace::begin(worker, traced, request, &mut cleaned));
    let choice = LogChoice::of(worker, snapshot, key, local);
    if choice.is_some() {
        cleaned.show(request.headers_mut());
    }
    let log = LogFields::begin(choice, origin.client, request);
    let mut record = Record::begin(worker, connection, log, request);
    if let Some((traced, trace)) = traced.zip(trace) {
        let id = cleaned.request_id(request.headers());
        record.begin_trace(trace, traced, || Spans::begin(traced, origin, request, id));
    }
    let handshake_micros = connection.tls.as_ref().map_or(0, |tls| tls.micros.take());
    if let Some(open) = worker.taps() {
        let id = cleaned.request_id(request.headers());
        let input = TapInput {
            open,
            snapshot,
            origin,
            id,
            handshake_micros,
        };
        record.begin_tap(input, request);
    }
    (cleaned, record)
}

/// Finds the rule for a request, if its tokens are valid and policies allow it. Takes and returns the cleaned head, so
/// that the request does not hold it while it is forwarded.
fn find<'a>(
    context: LookupContext<'_>,
    judged: Option<Judged<'_>>,
    request: &mut Request<DownstreamBody>,
    mut cleaned: Cleaned<'a>,
    record: &mut Record,
) -> (Result<Found, LocalReply>, Cleaned<'a>) {
    let LookupContext {
        snapshot,
        connection,
        origin,
    } = context;
    let scheme = origin.scheme;
    let Some(judged) = judged else {
        let found = find_route::find_route(snapshot, connection, scheme, request, &mut cleaned);
        return (found, cleaned);
    };
    let mut before = None;
    if record
        .worker()
        .setting(|all| all.limits_before_authorization)
    {
        let found = find_route::find_route(snapshot, connection, scheme, request, &mut cleaned);
        let found = limit::admit_early(found, origin, request, record);
        if limit::is_refused(&found) {
            return (found, cleaned);
        }
        before = Some(found);
    }
    let found = judged_request(judged, request, &mut cleaned, before, record);
    (found, cleaned)
}

/// Replies to a request without a rule.
fn refuse(
    mut record: Box<Record>,
    refusal: &LocalReply,
    snapshot: &SnapshotRef,
    request: &mut Request<DownstreamBody>,
) -> Response<ReplyBody> {
    let response = record.reply(refusal).map(ReplyBody::from);
    record.record_logged_head(response.headers());
    let response = grpc_web::refuse(response, snapshot, record.connection(), request);
    record.finish(Ending::Complete);
    response
}

/// Changes a response as providers of external authorization asked for.
fn change(
    lookup: &Result<Found, LocalReply>,
    mut response: Response<ReplyBody>,
) -> Response<ReplyBody> {
    if let Ok(found) = lookup {
        found.change_response(&mut response);
    }
    response
}

/// Adds the headers of every response, including local replies.
fn finish_head(connection: &Connection, mut response: Response<ReplyBody>) -> Response<ReplyBody> {
    if let Some(server) = &connection.server_header {
        fields::set(response.headers_mut(), &SERVER, server);
    }
    if connection.draining.get() && connection.protocol == DownstreamProtocol::Http1 {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
