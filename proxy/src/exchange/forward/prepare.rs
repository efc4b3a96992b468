//! Prepares a request for its first attempt: destination, endpoint, upstream head and body.

use std::rc::Rc;

use hyper::Request;
use hyper::body::Body;
use hyper::header::HeaderValue;
use hyper::http::request::Parts;
use smallvec::SmallVec;

use super::edits::{self, RequestSnapshot, SentTo};
use super::mirror;
use crate::exchange::attempt::policy::RequestPolicy;
use crate::exchange::attempt::request::ForwardedRequest;
use crate::exchange::attempt::send::{Outgoing, SendOptions};
use crate::exchange::body::upstream::{Extras, UpstreamBody};
use crate::exchange::downstream::body::{DownstreamBody, Switched};
use crate::exchange::message::clean::{Cleaned, Upgrade};
use crate::exchange::message::local_reply::LocalReply;
use crate::exchange::message::readdress::readdress;
use crate::exchange::recheck;
use crate::exchange::record::Record;
use crate::exchange::select::affinity::{self, Affinity, HashedHead};
use crate::exchange::select::context::RequestContext;
use crate::exchange::select::find_route::authority;
use crate::exchange::select::proxied::is_loop;
use crate::exchange::select::target::{PickedEndpoint, Target};
use crate::snapshot::Destination;
use crate::telemetry::ResponseFlags;
use crate::upstream::Protocol;
use traffic::balance::HashKey;
use traffic::error::Kind;
use traffic::filter::retry::Controls;

/// A request that is ready for its first attempt.
pub(in crate::exchange) struct Prepared<'a> {
    /// The request.
    pub(in crate::exchange) forwarded: ForwardedRequest<'a>,
    /// Data for its response.
    pub(in crate::exchange) response: ResponseContext,
}

/// Data for the response to a forwarded request.
pub(in crate::exchange) struct ResponseContext {
    /// The request for response edits, if the route has any.
    pub(in crate::exchange) snapshot: Option<Box<RequestSnapshot>>,
    /// The downstream side of an upgrade.
    pub(in crate::exchange) switch: Option<Switched>,
    /// Whether a timeout is reported with 204.
    pub(in crate::exchange) alt_response: bool,
    /// Session affinity cookie to set.
    pub(in crate::exchange) cookie: Option<Box<HeaderValue>>,
}

/// A request that is answered by a local reply.
pub(in crate::exchange) struct Refused<'a> {
    /// The selected destination.
    pub(in crate::exchange) destination: Option<&'a Destination>,
    /// The request for response edits, if the route has any.
    pub(in crate::exchange) snapshot: Option<Box<RequestSnapshot>>,
    /// The reply.
    pub(in crate::exchange) reply: LocalReply,
}

/// Selects a destination, picks an endpoint and makes the upstream request. Consumes the request on success.
pub(in crate::exchange) fn prepare<'a>(
    context: &RequestContext<'a>,
    request: &mut Request<DownstreamBody>,
    mut cleaned: Cleaned<'_>,
    record: &mut Record,
) -> Result<Prepared<'a>, Refused<'a>> {
    let cleaned = &mut cleaned;
    let route = context.found.route();
    let keeps_responses = route.filters.leaves_response_headers();
    let mut snapshot = (!keeps_responses).then(|| Box::new(RequestSnapshot::of(request)));
    let Some(split) = &route.split else {
        return Err(Refused {
            destination: None,
            snapshot,
            reply: LocalReply::from_kind(Kind::NoCluster),
        });
    };
    let destination = context.worker.random(|rng| split.pick(rng));
    if cleaned.upgrade == Upgrade::Asked && context.worker.setting(|all| all.recheck_tcp) {
        cleaned.show(request.headers_mut());
        let (connection, origin) = (context.connection, context.origin);
        let denial = recheck::of_request(context.worker, connection, origin, request);
        record.denial = Some(denial);
    }
    let admitted =
        pick(context, destination, request, cleaned, record).and_then(|(picked, cookie)| {
            let admitted = admit(context, &picked, request, cleaned.upgrade)?;
            Ok((admitted, picked, cookie))
        });
    let (admitted, picked, cookie) = match admitted {
        Ok(admitted) => admitted,
        Err(reply) => {
            if let Some(snapshot) = snapshot
                .as_deref_mut()
                .filter(|_| reply.flags == ResponseFlags::UH)
            {
                let (parts, authority) = edited(context, destination, request, cleaned, record);
                snapshot.sent(&parts, authority.as_ref(), Protocol::Http1);
            }
            return Err(Refused {
                destination: Some(destination),
                snapshot,
                reply,
            });
        }
    };
    let chosen = Chosen {
        destination,
        picked,
        admitted,
        snapshot,
        cookie,
    };
    Ok(prepared(context, chosen, request, cleaned, record))
}

/// Returns a copy of the head with the rule's edits, and its authority: as in Envoy, before an endpoint is picked.
#[cold]
fn edited<B>(
    context: &RequestContext<'_>,
    destination: &Destination,
    request: &Request<B>,
    cleaned: &mut Cleaned<'_>,
    record: &Record,
) -> (Parts, Option<HeaderValue>) {
    let mut parts = Request::new(()).into_parts().0;
    parts.method = request.method().clone();
    parts.uri = request.uri().clone();
    parts.version = request.version();
    parts.headers = request.headers().clone();
    let worker = context.worker;
    worker.setting(|settings| cleaned.complete(&mut parts.headers, settings));
    let authority = parts.uri.authority();
    let authority = authority.and_then(|text| HeaderValue::from_str(text.as_str()).ok());
    let sent_to = SentTo::by_route(context, destination, None);
    let authority = edits::request(context, sent_to, &mut parts, record, authority);
    (parts, authority)
}

/// Finds the destination's cluster and picks one of its endpoints; also creates the session affinity cookie.
fn pick<B>(
    context: &RequestContext<'_>,
    destination: &Destination,
    request: &mut Request<B>,
    cleaned: &mut Cleaned<'_>,
    record: &mut Record,
) -> Result<(PickedEndpoint, Option<Box<HeaderValue>>), LocalReply> {
    let Some(target) = Target::find(context.snapshot, destination.cluster) else {
        return Err(missing(context, destination, record));
    };
    record.record_target(&target);
    let head = (target.cluster().hash_key())
        .map(|_| hashed_head(context, destination, request, cleaned, record));
    let Affinity { ask, cookie, visit } = Affinity::of(context, &target, head, record.started());
    let target = context.dialed(target.asking(ask), authority(request));
    let was_sent = cleaned.trust.from_cluster;
    if target.cluster().federation.is_some() && was_sent {
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
    if picked.endpoint().hop.is_some() && was_sent {
        return Err(LocalReply::LOOP);
    }
    Ok((picked, cookie))
}

/// Returns the reply for a destination without a cluster.
#[cold]
fn missing(context: &RequestContext<'_>, destination: &Destination, record: &Record) -> LocalReply {
    let Some(backend) = destination.invalid_backend() else {
        return Target::unknown(context.snapshot, destination.cluster);
    };
    let is_grpc = record.replies_grpc();
    let mut reply = LocalReply::for_client(Kind::InvalidBackend, is_grpc);
    if is_grpc {
        reply.body = match backend {
            "" => "the route has no valid backend".into(),
            backend => format!("backend {backend} is not valid").into(),
        };
    }
    reply
}

/// Head for hash keys, edited only if a key reads it.
#[cold]
fn hashed_head<'r, B>(
    context: &RequestContext<'_>,
    destination: &Destination,
    request: &'r mut Request<B>,
    cleaned: &mut Cleaned<'_>,
    record: &Record,
) -> HashedHead<'r> {
    let split = context.found.route().split.as_ref();
    if !affinity::keys(split, context.snapshot).any(HashKey::is_of_head) {
        return HashedHead::of(request);
    }
    cleaned.show(request.headers_mut());
    edits::hashed_head(context, destination, request, record)
}

/// Properties of a request that its endpoint can serve.
struct Admitted {
    protocol: Protocol,
    /// Whether the request is an upgrade.
    upgrading: bool,
    /// The downstream side of an upgrade.
    switch: Option<Switched>,
    /// Authority for the request target; `None` to keep Host.
    authority: Option<HeaderValue>,
}

/// Checks that the endpoint can serve the request; refuses an upgrade that it does not support.
fn admit(
    context: &RequestContext<'_>,
    picked: &PickedEndpoint,
    request: &mut Request<DownstreamBody>,
    upgrade: Upgrade,
) -> Result<Admitted, LocalReply> {
    let upgrading = upgrade == Upgrade::Asked;
    let protocol = context.protocol(picked, request.version(), upgrading);
    if upgrade == Upgrade::Refused || (upgrading && protocol != Protocol::Http1) {
        return Err(LocalReply::UPGRADE_REFUSED);
    }
    let switch = upgrading.then(|| request.body_mut().take_switched());
    let authority = request.uri().authority();
    let authority = authority.and_then(|text| HeaderValue::from_str(text.as_str()).ok());
    Ok(Admitted {
        protocol,
        upgrading,
        switch: switch.flatten(),
        authority,
    })
}

/// Destination and endpoint of a request, and data for its response.
struct Chosen<'a> {
    destination: &'a Destination,
    picked: PickedEndpoint,
    admitted: Admitted,
    snapshot: Option<Box<RequestSnapshot>>,
    cookie: Option<Box<HeaderValue>>,
}

/// Turns the downstream request into the upstream request: the route's edits, authority and path.
fn prepared<'a>(
    context: &RequestContext<'a>,
    chosen: Chosen<'a>,
    request: &mut Request<DownstreamBody>,
    cleaned: &mut Cleaned<'_>,
    record: &mut Record,
) -> Prepared<'a> {
    let (destination, picked, admitted) = (chosen.destination, chosen.picked, chosen.admitted);
    let mut snapshot = chosen.snapshot;
    let version = request.version();
    let request = std::mem::replace(request, Request::new(DownstreamBody::Empty));
    let (mut parts, incoming) = request.into_parts();
    let protocol = admitted.protocol;
    let added = (context.worker).setting(|all| cleaned.complete(&mut parts.headers, all));
    let trusted = cleaned.trust.controls.then_some(&mut parts.headers);
    let controls = trusted.and_then(Controls::take);
    let request_policy = RequestPolicy::of(context, controls.as_ref(), &mut parts.headers, record);
    let alt_response = controls.is_some_and(|controls| controls.alt_response);
    let sent_to = SentTo::by_route(context, destination, Some(&picked));
    let unedited = mirror::unedited(context, &parts, admitted.authority.as_ref());
    let authority = edits::request(context, sent_to, &mut parts, record, admitted.authority);
    if let Some(snapshot) = &mut snapshot {
        snapshot.sent(&parts, authority.as_ref(), protocol);
    }
    let heads = mirror::Heads {
        parts: &parts,
        authority: authority.as_ref(),
        unedited: unedited.as_deref(),
    };
    let copies = match admitted.upgrading {
        true => SmallVec::new(),
        false => mirror::begin(context, heads, record, incoming.is_end_stream()),
    };
    readdress(&mut parts, protocol, context.origin.scheme, authority);
    record.record_sent(&parts, protocol);
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
        hop: picked.endpoint().hop.as_ref(),
    };
    record.record_first_endpoint(picked.clone(), &progress);
    let outgoing = Outgoing::new(context, options, &mut parts, added, body);
    Prepared {
        forwarded: ForwardedRequest {
            destination,
            picked,
            outgoing,
            deadline: request_policy
                .times
                .watch(&progress, request_policy.receive),
            policy: request_policy.policy,
            moves: 0,
        },
        response: ResponseContext {
            snapshot,
            switch: admitted.switch,
            alt_response,
            cookie: chosen.cookie,
        },
    }
}
