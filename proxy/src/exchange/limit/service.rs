//! Limits that a service counts for all proxies: `envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit`.
//!
//! All rules of a route that select a request are told to the service in one call, each with its limit, so that the
//! service needs to know only the domain. A request whose call fails or takes too long passes, unless the proxy fails
//! closed.

use hyper::Request;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::described::Described;
use super::limit_headers;
use super::messages::{Pair, RateLimitRequest, RateLimitResponse, Status};
use crate::exchange::downstream::body::DownstreamBody;
use crate::exchange::message::header_changes::is_copied;
use crate::exchange::message::local_reply::LocalReply;
use crate::exchange::record::Record;
use crate::exchange::select::context::RequestContext;
use crate::exchange::service_call::{CallError, ServiceCall};
use crate::snapshot::ServiceCluster;
use crate::telemetry::Counter;
use traffic::limit::GlobalRule;

const METHOD: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// Largest number of headers that the service adds to a message.
const HEADERS_MAX: usize = 32;

/// `OK` of `RateLimitResponse.Code`.
const OK: i32 = 1;

/// `OVER_LIMIT` of `RateLimitResponse.Code`.
const OVER_LIMIT: i32 = 2;

const X_ENVOY_RATELIMITED: HeaderName = HeaderName::from_static("x-envoy-ratelimited");

/// Asks the service about a request. Adds headers of the service to the request, and returns those for the response.
///
/// # Errors
///
/// The reply to a request that is refused: 429, or 500 if the service fails and the proxy fails closed.
pub(in crate::exchange) async fn ask(
    described: Described<'_>,
    service: &ServiceCluster,
    context: &RequestContext<'_>,
    request: &mut Request<DownstreamBody>,
    record: &Record,
) -> Result<HeaderMap, LocalReply> {
    let worker = context.worker;
    let settings = worker.settings();
    let Described { rules, descriptors } = described;
    let message = RateLimitRequest {
        domain: settings.rate_limit_domain.to_string(),
        descriptors,
    };
    let call = ServiceCall {
        worker,
        snapshot: context.snapshot,
        service,
        client: context.connection.client,
        timeout: settings.rate_limit_timeout,
        needs_tls: false,
        record: Some(record),
    };
    let answer: Result<RateLimitResponse, CallError> = call.grpc(METHOD, &message).await;
    let is_known = |answer: &RateLimitResponse| [OK, OVER_LIMIT].contains(&answer.overall_code);
    let answer = answer.and_then(|answer| match is_known(&answer) {
        true => Ok(answer),
        false => Err(CallError::Malformed),
    });
    let response = match answer {
        Ok(response) => response,
        Err(error) => {
            tracing::debug!(%error, "the rate limit service failed");
            let is_enforced = rules.iter().any(|rule| !rule.is_shadow);
            let is_closed = settings.rate_limit_fail_closed && is_enforced;
            worker.count(match is_closed {
                true => Counter::RateLimitFailureDenied,
                false => Counter::RateLimitFailureAllowed,
            });
            return match is_closed {
                true => Err(LocalReply::RATE_LIMITER_FAILED),
                false => Ok(HeaderMap::new()),
            };
        }
    };
    let headers = valid(response.response_headers_to_add);
    match refusal(&rules, &response.statuses, response.overall_code) {
        Err(shadowed) => {
            worker.count(Counter::RateLimitServiceAllowed);
            for _ in 0..shadowed {
                worker.count(Counter::RateLimitShadowDenied);
            }
            request
                .headers_mut()
                .extend(valid(response.request_headers_to_add));
            Ok(headers)
        }
        Ok(status) => {
            worker.count(Counter::RateLimitServiceDenied);
            Err(refused(status, headers))
        }
    }
}

/// Returns the status that refuses a request, if the answer as a whole does: of several, the one that lasts longest.
///
/// # Errors
///
/// The number of rules in shadow mode that would have refused it.
fn refusal(rules: &[&GlobalRule], statuses: &[Status], overall: i32) -> Result<Status, usize> {
    let over = rules
        .iter()
        .zip(statuses)
        .filter(|(_, status)| status.code == OVER_LIMIT);
    let enforced = over.clone().filter(|(rule, _)| !rule.is_shadow);
    let longest = enforced.max_by_key(|(_, status)| {
        let duration = status.duration_until_reset;
        duration.map(|duration| (duration.seconds, duration.nanos))
    });
    if let Some((_, status)) = longest.filter(|_| overall == OVER_LIMIT) {
        return Ok(*status);
    }
    // a service that does not say which of them
    let shadowed = over.count();
    let is_enforced = shadowed == 0 && rules.iter().any(|rule| !rule.is_shadow);
    match overall == OVER_LIMIT && is_enforced {
        true => Ok(Status::default()),
        false => Err(shadowed),
    }
}

fn refused(status: Status, mut headers: HeaderMap) -> LocalReply {
    headers.insert(X_ENVOY_RATELIMITED, HeaderValue::from_static("true"));
    if let (Some(limit), Some(reset)) = (status.current_limit, status.duration_until_reset) {
        let seconds = u64::try_from(reset.seconds).unwrap_or(0) + u64::from(reset.nanos > 0);
        headers.extend(limit_headers(
            limit.requests_per_unit,
            status.limit_remaining.into(),
            seconds,
        ));
    }
    LocalReply::RATE_LIMITED_BY_SERVICE.with_headers(headers)
}

/// Returns the headers that are valid and do not frame or address a message.
fn valid(pairs: Vec<Pair>) -> HeaderMap {
    let valid = pairs.into_iter().filter_map(|pair| {
        let name = HeaderName::try_from(pair.key).ok().filter(is_copied)?;
        Some((name, HeaderValue::try_from(pair.value).ok()?))
    });
    valid.take(HEADERS_MAX).collect()
}
