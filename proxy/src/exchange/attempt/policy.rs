//! Timeouts and retries of a request, from its route and from a trusted client.

use std::time::Duration;

use hyper::header::HeaderMap;

use crate::exchange::attempt::deadline::Times;
use crate::exchange::record::Record;
use crate::exchange::select::context::RequestContext;
use traffic::filter::retry::Controls;
use traffic::filter::{RetryPolicy, RouteFilters, timeout};

/// Timeouts and retries that the route and a trusted client ask for.
pub struct RequestPolicy {
    /// Timeouts of the request and of each attempt.
    pub times: Times,
    /// Time until the whole request has been read.
    pub receive: Option<Duration>,
    /// Retry policy of the client, in place of the route's.
    pub policy: Option<Box<RetryPolicy>>,
    /// Whether more than one attempt may be made.
    pub retriable: bool,
}

impl RequestPolicy {
    /// Combines those of the route and of the client, and sets the header with the time that the upstream has.
    pub fn of(
        context: &RequestContext<'_>,
        controls: Option<&Controls>,
        headers: &mut HeaderMap,
        record: &Record,
    ) -> Self {
        let filters = &context.found.route().filters;
        let route = filters.retry.as_deref();
        let own = controls.and_then(|controls| controls.policy(route));
        let policy = own.as_ref().or(route);
        let mut timeout = filters.timeout;
        let mut per_try = policy.and_then(|policy| policy.per_try_timeout);
        if let Some(controls) = controls {
            timeout = controls.timeout(timeout);
            per_try = controls.per_try_timeout(per_try);
        }
        let grpc = record.is_grpc();
        let client = if grpc {
            timeout::grpc_timeout(headers)
        } else {
            None
        };
        let settings = context.worker.settings();
        let timeout = timeout::effective(timeout, client);
        let times = times(filters, timeout, per_try, settings.request_time_max);
        if let Some(time) = times.first_attempt() {
            if !settings.omitted.debug {
                headers.insert(timeout::EXPECTED_TIMEOUT, timeout::millis(time));
            }
            if grpc {
                headers.insert(timeout::GRPC_TIMEOUT, timeout::format_grpc_timeout(time));
            }
        }
        Self {
            times,
            receive: settings.request_receive_max,
            retriable: policy.is_some_and(|policy| policy.attempts > 0),
            policy: own.map(Box::new),
        }
    }
}

/// Combines the timeouts of a request, as the route or its client sets them, with those of the route and the proxy.
pub(in crate::exchange) fn times(
    filters: &RouteFilters,
    timeout: Option<Duration>,
    per_try: Option<Duration>,
    request_time_max: Option<Duration>,
) -> Times {
    let timeout = timeout.into_iter().chain(request_time_max).min();
    Times {
        idle: filters.idle_timeout,
        ..Times::new(timeout, per_try)
    }
}
