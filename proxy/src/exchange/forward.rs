//! Forwarding: destination, endpoint, request head, attempt, response head.

mod edits;
pub mod mirror;
pub mod reply_body;
pub mod upgrade;

use std::rc::Rc;

use hyper::body::Body;
use hyper::header::{EXPECT, HeaderValue, SET_COOKIE, UPGRADE};
use hyper::{Request, Response, StatusCode, Version};
use smallvec::SmallVec;

use self::edits::{RequestSnapshot, SentRequest};
use self::upgrade::Switch;
use crate::error::{Error, Kind};
use crate::exchange::attempt::deadline::Deadline;
use crate::exchange::attempt::policy::RequestPolicy;
use crate::exchange::attempt::retries;
use crate::exchange::attempt::send::{Outgoing, SendOptions};
use crate::exchange::body::progress::Progress;
use crate::exchange::body::upstream::{Extras, UpstreamBody};
use crate::exchange::downstream::body::DownstreamBody;
use crate::exchange::downstream::connection::Connection;
use crate::exchange::downstream::origin::Origin;
use crate::exchange::forward::reply_body::{ReplyBody, StreamBody};
use crate::exchange::message::headers::{
    self, X_ENVOY_UPSTREAM_SERVICE_TIME, X_STRAIT_FROM_CLUSTER,
};
use crate::exchange::message::local_reply::LocalReply;
use crate::exchange::message::readdress::readdress;
use crate::exchange::record::{Ending, Record};
use crate::exchange::select::affinity::Affinity;
use crate::exchange::select::find_route::Found;
use crate::exchange::select::target::{PickedEndpoint, RequestTarget};
use crate::exchange::worker::{SnapshotRef, Worker};
use crate::filter::retry::Controls;
use crate::filter::{RetryPolicy, hop_by_hop};
use crate::pool;
use crate::snapshot::Destination;
use crate::telemetry::ResponseFlags;
use crate::upstream::Protocol;

/// What a forwarded exchange works with.
pub struct Forward<'a> {
    /// The worker's parts.
    pub worker: &'a Rc<Worker>,
    /// Where the request came from.
    pub connection: &'a Rc<Connection>,
    /// Who sent it, as far as that can be believed.
    pub origin: &'a Origin,
    /// The configuration that the request began with.
    pub snapshot: &'a SnapshotRef,
    /// The route that took it.
    pub found: &'a Found,
}

/// Sends the request to a destination of the route and returns its response, or a local reply.
pub async fn run(
    forward: Forward<'_>,
    request: &mut Option<Request<DownstreamBody>>,
    mut record: Box<Record>,
) -> Response<ReplyBody> {
    let mut forwarded = match begin(&forward, request.take(), &mut record) {
        Ok(forwarded) => forwarded,
        Err(Refused {
            destination,
            keep,
            reply,
        }) => return refuse(&forward, destination, keep, *record, &reply),
    };
    match retries::run(&forward, &mut forwarded, &mut record).await {
        Ok(response) => pass(&forward, forwarded, response, record),
        Err(error) => {
            let cause = std::error::Error::source(&error);
            tracing::debug!(cluster = &*forwarded.destination.name, %error, cause, "attempt failed");
            let reply = forwarded.reply(&error, &record);
            if let (Some(log), Some(reason)) = (record.log_mut(), error.transport()) {
                log.transport_failed(reason);
            }
            refuse(
                &forward,
                Some(forwarded.destination),
                forwarded.keep,
                *record,
                &reply,
            )
        }
    }
}

/// A request on its way.
pub struct ForwardedRequest<'a> {
    /// Where it goes.
    pub destination: &'a Destination,
    keep: Option<Box<RequestSnapshot>>,
    /// The endpoint that it goes to.
    pub picked: PickedEndpoint,
    /// The request.
    pub outgoing: Outgoing,
    /// The downstream side of an upgrade.
    switch: Option<Switch>,
    /// From the end of the request to the end of the response.
    pub deadline: Option<Box<Deadline>>,
    /// What is tried again, if that is not what the route says.
    pub policy: Option<Box<RetryPolicy>>,
    /// Whether a timeout is answered with 204.
    alt_response: bool,
    /// The cookie that is issued.
    cookie: Option<Box<HeaderValue>>,
}

impl ForwardedRequest<'_> {
    /// What the client is told when the last try fails.
    fn reply(&self, error: &Error, record: &Record) -> LocalReply {
        let mut reply = LocalReply::from_error(error);
        if error.kind() == Kind::NoHealthyUpstream {
            reply.details = self.picked.target().no_endpoint_reply().details;
        }
        if self.alt_response && matches!(error.kind(), Kind::RequestTimeout | Kind::TryTimeout) {
            reply.status = StatusCode::NO_CONTENT;
            reply.body = "";
        }
        reply.retried = record.tries() > 1;
        reply
    }
}

/// Why a request did not go on its way.
struct Refused<'a> {
    destination: Option<&'a Destination>,
    keep: Option<Box<RequestSnapshot>>,
    reply: LocalReply,
}

/// Everything before the first byte goes upstream: destination, endpoint, request head.
fn begin<'a>(
    forward: &Forward<'a>,
    request: Option<Request<DownstreamBody>>,
    record: &mut Record,
) -> Result<ForwardedRequest<'a>, Refused<'a>> {
    let route = forward.found.route();
    let responds_plainly = route.filters.leaves_response_headers();
    let mut keep = match &request {
        Some(request) if !responds_plainly => Some(Box::new(RequestSnapshot::of(request))),
        _ => None,
    };
    let (Some(request), Some(split)) = (request, &route.split) else {
        return Err(Refused {
            destination: None,
            keep,
            reply: LocalReply::from_kind(Kind::NoCluster),
        });
    };
    let destination = forward.worker.random(|rng| split.pick(rng));
    let ready = pick(forward, destination, &request, record).and_then(|(picked, cookie)| {
        let ready = prepare(forward, destination, &picked, request, record)?;
        Ok((picked, ready, cookie))
    });
    match ready {
        Ok((picked, ready, cookie)) => {
            record.went_to(picked.clone(), &ready.progress);
            if let Some(keep) = &mut keep {
                keep.sent = ready.sent;
            }
            Ok(ForwardedRequest {
                destination,
                keep,
                picked,
                outgoing: ready.outgoing,
                switch: ready.switch,
                deadline: ready.deadline,
                policy: ready.policy,
                alt_response: ready.alt_response,
                cookie,
            })
        }
        Err(reply) => Err(Refused {
            destination: Some(destination),
            keep,
            reply,
        }),
    }
}

/// Finds the destination's cluster and picks one of its endpoints; the cookie that the client is to have, too.
fn pick<B>(
    forward: &Forward<'_>,
    destination: &Destination,
    request: &Request<B>,
    record: &mut Record,
) -> Result<(PickedEndpoint, Option<Box<HeaderValue>>), LocalReply> {
    let Some(target) = RequestTarget::find(forward.snapshot, destination.cluster) else {
        return Err(RequestTarget::unknown(
            forward.snapshot,
            destination.cluster,
        ));
    };
    record.target(&target);
    let Affinity { ask, cookie, visit } = Affinity::of(forward, &target, request, record.started());
    let target = target.asking(ask);
    let was_sent = || request.headers().contains_key(X_STRAIT_FROM_CLUSTER);
    if target.cluster().federation.is_some() && was_sent() {
        let at_home = target.at_home(forward.worker);
        return Ok((at_home.ok_or(LocalReply::LOOP)?, cookie));
    }
    let picked = target
        .pick_for(visit, forward.worker)
        .ok_or_else(|| target.no_endpoint_reply())?;
    // without a policy the endpoints of all clusters are one cluster
    if picked.endpoint().hop.is_some() && was_sent() {
        return Err(LocalReply::LOOP);
    }
    Ok((picked, cookie))
}

/// A request that is ready to go upstream.
struct Ready {
    /// For edits of the response.
    sent: SentRequest,
    outgoing: Outgoing,
    progress: Rc<Progress>,
    switch: Option<Switch>,
    deadline: Option<Box<Deadline>>,
    policy: Option<Box<RetryPolicy>>,
    alt_response: bool,
}

/// What the endpoint is spoken; an upgrade that it cannot carry is refused.
fn spoken<B>(
    picked: &PickedEndpoint,
    request: &Request<B>,
    upgrading: bool,
) -> Result<Protocol, LocalReply> {
    let version = request.version();
    let protocol = picked.protocol(version, upgrading);
    // by HTTP/2 an upgrade is all that a CONNECT was for
    let refused =
        !upgrading && version == Version::HTTP_2 && request.headers().contains_key(UPGRADE);
    if refused || (upgrading && protocol != Protocol::Http1) {
        return Err(LocalReply::UPGRADE_REFUSED);
    }
    Ok(protocol)
}

/// Turns the downstream request into the one that goes upstream: hop-by-hop headers out, our own in, then the
/// route's edits, the authority and the path.
fn prepare(
    forward: &Forward<'_>,
    destination: &Destination,
    picked: &PickedEndpoint,
    mut request: Request<DownstreamBody>,
    record: &mut Record,
) -> Result<Ready, LocalReply> {
    let version = request.version();
    let upgrading = version >= Version::HTTP_11 && upgrade::requested(request.headers());
    let protocol = spoken(picked, &request, upgrading)?;
    let switch = upgrading.then(|| Switch::of(&mut request));
    // without one, Host stays as it is
    let authority = request.uri().authority();
    let authority = authority.and_then(|text| HeaderValue::from_str(text.as_str()).ok());
    let (mut parts, incoming) = request.into_parts();
    hop_by_hop::strip_request(&mut parts.headers, upgrading)
        .map_err(|_| LocalReply::BAD_CONNECTION_HEADER)?;
    // answered by our own codec once the body is wanted
    parts.headers.remove(EXPECT);
    let (worker, connection) = (forward.worker, forward.connection);
    let headers = &mut parts.headers;
    let trust = worker
        .random(|rng| headers::forward(headers, connection, forward.origin, &worker.settings, rng));
    let controls = if trust.controls {
        Controls::take(&mut parts.headers)
    } else {
        None
    };
    let request_policy = RequestPolicy::of(forward, controls.as_ref(), &mut parts.headers, record);
    let authority = edits::request(
        forward,
        (destination, picked),
        (&mut parts, record),
        authority,
    );
    let sent = SentRequest::of(forward, &parts, protocol);
    let bodiless = incoming.is_end_stream();
    let copies = if upgrading {
        SmallVec::new()
    } else {
        mirror::begin(forward, &parts, authority.as_ref(), bodiless)
    };
    readdress(&mut parts, protocol, forward.origin.scheme, authority);
    if let Some(log) = record.log_mut() {
        log.forwarded(&parts);
    }
    let extras = Extras {
        memory: (request_policy.retriable || picked.is_member())
            .then(|| Rc::clone(&forward.worker.replay)),
        copies,
    };
    let (body, progress) = UpstreamBody::new(incoming, extras);
    let options = SendOptions {
        version,
        protocol,
        retriable: request_policy.retriable,
        host: picked.host(worker, &parts),
        moves: picked.is_member(),
    };
    let head = (parts, picked.endpoint().hop.as_ref());
    Ok(Ready {
        sent,
        outgoing: Outgoing::new(forward, options, head, body),
        deadline: request_policy.times.watch(&progress),
        progress,
        switch,
        policy: request_policy.policy,
        alt_response: controls.is_some_and(|controls| controls.alt_response),
    })
}

/// Makes a local reply on a matched route, with the route's response edits.
fn refuse(
    forward: &Forward<'_>,
    destination: Option<&Destination>,
    kept: Option<Box<RequestSnapshot>>,
    mut record: Record,
    reply: &LocalReply,
) -> Response<ReplyBody> {
    let mut response = record.reply(reply);
    if let Some(kept) = kept {
        forward.edit_response((destination, None), &kept, &record, &mut response);
    }
    record.finish(Ending::Complete);
    response.map(ReplyBody::from)
}

/// Passes the upstream's response on: hop-by-hop headers out, our own in, then the route's edits; the body streams.
fn pass(
    forward: &Forward<'_>,
    mut forwarded: ForwardedRequest<'_>,
    mut response: Response<pool::Incoming>,
    mut record: Box<Record>,
) -> Response<ReplyBody> {
    forwarded.outgoing.settle();
    let took = record.upstream_took();
    if let Some(log) = record.log_mut() {
        log.carried_by(response.body().ends());
    }
    let switch = forwarded.switch.filter(|_| upgrade::accepted(&response));
    *response.version_mut() = Version::HTTP_11;
    let headers = response.headers_mut();
    hop_by_hop::strip_response(headers, switch.is_some());
    if let Some(took) = took {
        headers.insert(X_ENVOY_UPSTREAM_SERVICE_TIME, headers::millis(took));
    }
    if let Some(cookie) = forwarded.cookie {
        headers.append(SET_COOKIE, *cookie);
    }
    record.saw_headers(headers);
    record.responded(
        response.status().as_u16(),
        ResponseFlags::NONE,
        "via_upstream",
    );
    if let Some(keep) = &forwarded.keep {
        let ends = Rc::clone(response.body().ends());
        let way = (Some(forwarded.destination), Some(&*ends));
        forward.edit_response(way, keep, &record, &mut response);
    }
    let (parts, incoming) = response.into_parts();
    let body = match switch {
        Some(downstream) => {
            record.tunnels();
            if let Some(upstream) = incoming.into_upgraded() {
                upgrade::tunnel(forward.worker, downstream, upstream, record);
            }
            ReplyBody::Empty
        }
        None => ReplyBody::Stream(Box::new(StreamBody::new(
            incoming,
            record,
            forwarded.deadline,
        ))),
    };
    debug_assert!(!parts.headers.contains_key(UPGRADE) || parts.status.is_informational());
    Response::from_parts(parts, body)
}
