//! Limits on requests and on their bodies, by the policy of the route.

mod described;
mod messages;
pub(super) mod service;

use std::sync::Arc;

use hyper::body::Body;
use hyper::header::{HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Request, StatusCode, Version};

use self::described::{Described, describe};
use super::downstream::body::{BODY_TOO_LARGE, DownstreamBody};
use super::downstream::origin::Origin;
use super::message::clean::Cleaned;
use super::message::local_reply::LocalReply;
use super::record::Record;
use super::select::context::RequestContext;
use super::select::find_route::{Found, authority, matched_head};
use crate::runtime::clock;
use crate::telemetry::Counter;
use crate::upstream::Protocol;
use traffic::cluster::Split;
use traffic::limit::{CountedRequest, Part, Refusal, RouteLimits};
use traffic::route::normalize_host;

const X_RATELIMIT_LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const X_RATELIMIT_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const X_RATELIMIT_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Counts a request whose route has limits, and limits its body. Returns its description for the rate limit service.
///
/// # Errors
///
/// The reply to a request that is refused: 403, 429 or 413.
pub(super) fn admit<'a>(
    limits: &'a Arc<RouteLimits>,
    context: &RequestContext<'_>,
    request: &mut Request<DownstreamBody>,
    cleaned: &mut Cleaned<'_>,
    record: &mut Record,
) -> Result<Described<'a>, LocalReply> {
    if !limits.sources.admits(context.origin.client.ip()) {
        return Err(LocalReply::DENIED);
    }
    if limits.reads_added {
        cleaned.show(request.headers_mut());
    }
    let part = match record.was_counted_by(limits) {
        true => Part::Late,
        false => Part::All,
    };
    let described = count(limits, part, context.origin, request, record)?;
    // a stream of gRPC has any number of messages
    let is_stream = || record.is_grpc() && is_http2(request.version(), context);
    if let Some(most) = limits.body_max.filter(|_| !is_stream()) {
        limit_body(most, request, record)?;
    }
    Ok(described)
}

/// Whether a request came by HTTP/2, and all of its destinations speak it, as clients and services of gRPC do. What a
/// client says of its request does not make it a stream of messages.
fn is_http2(version: Version, context: &RequestContext<'_>) -> bool {
    let route = context.found.route();
    let destinations = route.split.iter().flat_map(Split::entries);
    let mut speak_it = destinations.map(|(_, one)| {
        let cluster = context.snapshot.cluster(one.cluster);
        cluster.is_some_and(|cluster| cluster.protocol == Protocol::Http2)
    });
    version == Version::HTTP_2 && (route.filters.is_http2 || speak_it.all(|speaks_it| speaks_it))
}

/// Counts a request before its token is verified and policies judge it, by the rules that read only its address, method,
/// path and query, with `--rate-limit-before-authorization`. Returns what was found for it, or the reply to a request that is refused.
pub(super) fn admit_early<B>(
    found: Result<Found, LocalReply>,
    origin: &Origin,
    request: &Request<B>,
    record: &mut Record,
) -> Result<Found, LocalReply> {
    let found = found?;
    let early = found.route().filters.early.as_ref();
    if let Some(limits) = early.and_then(|early| early.limits.as_ref())
        && record
            .worker()
            .setting(|all| all.limits_before_authorization)
    {
        count(limits, Part::Early, origin, request, record)?;
        record.record_counted(limits);
    }
    Ok(found)
}

/// Whether a limit has refused a request.
pub(super) fn is_refused(found: &Result<Found, LocalReply>) -> bool {
    let refusal = found.as_ref().err();
    refusal.is_some_and(|reply| reply.details == LocalReply::RATE_LIMITED.details)
}

/// Counts a request by the rules of this proxy, and describes it for those of the rate limit service.
fn count<'a, B>(
    limits: &'a RouteLimits,
    part: Part,
    origin: &Origin,
    request: &Request<B>,
    record: &Record,
) -> Result<Described<'a>, LocalReply> {
    let worker = record.worker();
    let authority = authority(request).unwrap_or_default();
    let host = normalize_host(authority);
    let head = matched_head(request, origin.scheme, authority, &host);
    let prefix = worker.setting(|all| all.ipv6_client_prefix);
    let request = CountedRequest::new(head, origin.client.ip(), prefix);
    let counted = limits.count(&request, part, clock::now());
    for _ in 0..counted.overflowed {
        worker.count(Counter::RateLimitKeysOverflowed);
    }
    for _ in 0..counted.shadowed {
        worker.count(Counter::RateLimitShadowDenied);
    }
    match counted.refusal {
        Some(refusal) => {
            worker.count(Counter::RateLimitDenied);
            let mut reply = LocalReply::rate_limited(&refusal);
            if limits.is_unavailable {
                reply.status = StatusCode::SERVICE_UNAVAILABLE;
            }
            Err(reply)
        }
        None => {
            if counted.is_counted {
                worker.count(Counter::RateLimitAllowed);
            }
            Ok(match part {
                Part::Early => Described::default(),
                Part::All | Part::Late => describe(limits, &request),
            })
        }
    }
}

/// Refuses a body whose declared length is too large, and ends one without a length when it becomes so.
fn limit_body(
    most: u64,
    request: &mut Request<DownstreamBody>,
    record: &mut Record,
) -> Result<(), LocalReply> {
    match request.body().size_hint().exact() {
        Some(length) if length <= most => Ok(()),
        Some(_) => {
            record.share_body_fault().set(Some(BODY_TOO_LARGE));
            Err(LocalReply::BODY_TOO_LARGE)
        }
        None => {
            request.body_mut().limit(most, record.share_body_fault());
            Ok(())
        }
    }
}

impl LocalReply {
    /// A rate limit of this proxy refuses the request.
    fn rate_limited(refusal: &Refusal<'_>) -> Self {
        let wait = refusal.exhausted.wait;
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        let limit = refusal.rule.buckets.rate().tokens;
        let values = limit_headers(limit, refusal.exhausted.left, seconds);
        Self::RATE_LIMITED.with_headers(HeaderMap::from_iter(values))
    }
}

/// Returns the headers of a refusal: the limit, what is left of it, and the seconds until there is more.
fn limit_headers(limit: u32, left: u64, seconds: u64) -> [(HeaderName, HeaderValue); 4] {
    [
        (X_RATELIMIT_LIMIT, limit.into()),
        (X_RATELIMIT_REMAINING, left.into()),
        (X_RATELIMIT_RESET, seconds.into()),
        (RETRY_AFTER, seconds.into()),
    ]
}
