//! Prepares a request for its first attempt: destination, endpoint, head and body as they go upstream.

use std::rc::Rc;

use hyper::body::Body;
use hyper::header::{EXPECT, HeaderMap, HeaderValue, UPGRADE};
use hyper::{Request, Version};
use smallvec::SmallVec;

use super::edits::{self, RequestSnapshot, SentRequest};
use super::mirror;
use super::upgrade;
use crate::error::Kind;
use crate::exchange::attempt::policy::RequestPolicy;
use crate::exchange::attempt::request::ForwardedRequest;
use crate::exchange::attempt::send::{Outgoing, SendOptions};
use crate::exchange::body::upstream::{Extras, UpstreamBody};
use crate::exchange::downstream::body::{DownstreamBody, Switched};
use crate::exchange::downstream::origin::Trust;
use crate::exchange::message::added::Added;
use crate::exchange::message::headers::{self, X_STRAIT_FROM_CLUSTER};
use crate::exchange::message::local_reply::LocalReply;
use crate::exchange::message::readdress::readdress;
use crate::exchange::record::Record;
use crate::exchange::select::affinity::Affinity;
use crate::exchange::select::context::RequestContext;
use crate::exchange::select::find_route::authority;
use crate::exchange::select::proxied::is_loop;
use crate::exchange::select::target::{PickedEndpoint, Target};
use crate::fields;
use crate::filter::hop_by_hop;
use crate::filter::retry::Controls;
use crate::snapshot::Destination;
use crate::upstream::Protocol;

/// A request that is ready for its first attempt.
pub(in crate::exchange) struct Prepared<'a> {
    /// The request.
    pub(in crate::exchange) forwarded: ForwardedRequest<'a>,
    /// What its response needs.
    pub(in crate::exchange) response: ResponseContext,
}

/// What the response to a forwarded request needs.
pub(in crate::exchange) struct ResponseContext {
    /// The request that response edits refer to, if the route has any.
    pub(in crate::exchange) snapshot: Option<Box<RequestSnapshot>>,
    /// The downstream side of an upgrade.
    pub(in crate::exchange) switch: Option<Switched>,
    /// Whether a timeout is answered with 204.
    pub(in crate::exchange) alt_response: bool,
    /// The cookie that the response sets.
    pub(in crate::exchange) cookie: Option<Box<HeaderValue>>,
}

/// A request that is not sent upstream.
pub(in crate::exchange) struct Refused<'a> {
    /// The destination that was drawn.
    pub(in crate::exchange) destination: Option<&'a Destination>,
    /// The request that response edits refer to, if the route has any.
    pub(in crate::exchange) snapshot: Option<Box<RequestSnapshot>>,
    /// What the client gets.
    pub(in crate::exchange) reply: LocalReply,
}

/// Draws a destination, picks an endpoint and makes the request that goes there. The request is used up if that succeeds.
pub(in crate::exchange) fn prepare<'a>(
    context: &RequestContext<'a>,
    request: &mut Request<DownstreamBody>,
    record: &mut Record,
) -> Result<Prepared<'a>, Refused<'a>> {
    let route = context.found.route();
    let keeps_responses = route.filters.leaves_response_headers();
    let snapshot = (!keeps_responses).then(|| Box::new(RequestSnapshot::of(request)));
    let Some(split) = &route.split else {
        return Err(Refused {
            destination: None,
            snapshot,
            reply: LocalReply::from_kind(Kind::NoCluster),
        });
    };
    let destination = context.worker.random(|rng| split.pick(rng));
    let admitted = pick(context, destination, request, record)
        .and_then(|(picked, cookie)| Ok((admit(&picked, request)?, picked, cookie)));
    let (admitted, picked, cookie) = match admitted {
        Ok(admitted) => admitted,
        Err(reply) => {
            return Err(Refused {
                destination: Some(destination),
                snapshot,
                reply,
            });
        }
    };
    let mut response = ResponseContext {
        snapshot,
        switch: None,
        alt_response: false,
        cookie,
    };
    let sent_to = (destination, picked, admitted);
    Ok(Prepared {
        forwarded: forwarded(context, sent_to, request, (record, &mut response)),
        response,
    })
}

/// Finds the destination's cluster and picks one of its endpoints; also makes the session affinity cookie.
fn pick<B>(
    context: &RequestContext<'_>,
    destination: &Destination,
    request: &Request<B>,
    record: &mut Record,
) -> Result<(PickedEndpoint, Option<Box<HeaderValue>>), LocalReply> {
    let Some(target) = Target::find(context.snapshot, destination.cluster) else {
        return Err(Target::unknown(context.snapshot, destination.cluster));
    };
    record.target(&target);
    let Affinity { ask, cookie, visit } = Affinity::of(context, &target, request, record.started());
    let target = context.dialed(target.asking(ask), authority(request));
    let was_sent = || request.headers().contains_key(X_STRAIT_FROM_CLUSTER);
    if target.cluster().federation.is_some() && was_sent() {
        let at_home = target.at_home(context.worker);
        return Ok((at_home.ok_or(LocalReply::LOOP)?, cookie));
    }
    let picked = target
        .pick_for(visit, context.worker)
        .ok_or_else(|| target.no_endpoint_reply())?;
    if context.found.is_proxied() && is_loop(&picked.endpoint().address, context.snapshot) {
        return Err(LocalReply::PROXY_ITSELF);
    }
    // without a federation policy, endpoints of remote clusters are endpoints of the one cluster
    if picked.endpoint().hop.is_some() && was_sent() {
        return Err(LocalReply::LOOP);
    }
    Ok((picked, cookie))
}

/// The protocol for the endpoint; an upgrade that it cannot carry is refused.
fn upstream_protocol<B>(
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

/// What is known of a request that can go to its endpoint.
struct Admitted {
    protocol: Protocol,
    /// Whether it is an upgrade.
    upgrading: bool,
    /// The downstream side of an upgrade.
    switch: Option<Switched>,
    /// The authority of its target; without one, Host stays as it is.
    authority: Option<HeaderValue>,
}

/// Whether the request can go to this endpoint; takes its hop-by-hop headers out.
fn admit(
    picked: &PickedEndpoint,
    request: &mut Request<DownstreamBody>,
) -> Result<Admitted, LocalReply> {
    let version = request.version();
    let upgrading = version >= Version::HTTP_11 && upgrade::requested(request.headers());
    let protocol = upstream_protocol(picked, request, upgrading)?;
    let switch = upgrading.then(|| request.body_mut().take_switched());
    let authority = request.uri().authority();
    let authority = authority.and_then(|text| HeaderValue::from_str(text.as_str()).ok());
    hop_by_hop::strip_request(request.headers_mut(), upgrading)
        .map_err(|_| LocalReply::BAD_CONNECTION_HEADER)?;
    Ok(Admitted {
        protocol,
        upgrading,
        switch: switch.flatten(),
        authority,
    })
}

/// Edits the headers as a gateway or a sidecar has to. The fields that are added are among them then if something looks at
/// them there: the route, or who keeps (`kept`) what went out.
fn headers<'a>(
    context: &RequestContext<'a>,
    headers: &mut HeaderMap,
    kept: bool,
) -> (Trust, Option<Added<'a>>) {
    let RequestContext {
        worker,
        connection,
        origin,
        ..
    } = *context;
    let (trust, added) =
        worker.random(|rng| headers::forward(headers, connection, origin, &worker.settings, rng));
    let route = context.found.route();
    let leaves = route.filters.leaves_request_headers() && route.mirrors.is_none();
    match added {
        Some(added) if kept || !leaves => {
            added.insert_into(headers);
            (trust, None)
        }
        added => (trust, added),
    }
}

/// Turns the downstream request into the one that goes upstream: our own headers in, then the route's edits, the authority
/// and the path.
fn forwarded<'a>(
    context: &RequestContext<'a>,
    (destination, picked, admitted): (&'a Destination, PickedEndpoint, Admitted),
    request: &mut Request<DownstreamBody>,
    (record, response): (&mut Record, &mut ResponseContext),
) -> ForwardedRequest<'a> {
    let version = request.version();
    let request = std::mem::replace(request, Request::new(DownstreamBody::Empty));
    let (mut parts, incoming) = request.into_parts();
    let Admitted {
        protocol,
        upgrading,
        switch,
        authority,
    } = admitted;
    response.switch = switch;
    // answered by our own codec once the body is wanted
    fields::remove(&mut parts.headers, &EXPECT);
    let kept = response.snapshot.is_some() || record.log_mut().is_some();
    let (trust, added) = headers(context, &mut parts.headers, kept);
    let controls = trust.controls.then(|| Controls::take(&mut parts.headers));
    let controls = controls.flatten();
    let request_policy = RequestPolicy::of(context, controls.as_ref(), &mut parts.headers, record);
    response.alt_response = controls.is_some_and(|controls| controls.alt_response);
    let authority = edits::request(
        context,
        (destination, &picked),
        (&mut parts, record),
        authority,
    );
    if let Some(snapshot) = &mut response.snapshot {
        snapshot.sent = SentRequest::of(&parts, protocol);
    }
    let bodiless = incoming.is_end_stream();
    let copies = if upgrading {
        SmallVec::new()
    } else {
        mirror::begin(context, &parts, authority.as_ref(), bodiless)
    };
    readdress(&mut parts, protocol, context.origin.scheme, authority);
    if let Some(log) = record.log_mut() {
        log.forwarded(&parts);
    }
    let extras = Extras {
        memory: (request_policy.retriable || picked.is_member())
            .then(|| Rc::clone(&context.worker.replay)),
        copies,
    };
    let (body, progress) = UpstreamBody::new(incoming, extras);
    let options = SendOptions {
        version,
        protocol,
        retriable: request_policy.retriable,
        host: picked.host(context.worker, &parts),
        moves: picked.is_member(),
    };
    record.went_to(picked.clone(), &progress);
    let head = (&mut parts, added, picked.endpoint().hop.as_ref());
    let outgoing = Outgoing::new(context, options, head, body);
    ForwardedRequest {
        destination,
        picked,
        outgoing,
        deadline: request_policy.times.watch(&progress),
        policy: request_policy.policy,
        moves: 0,
    }
}
