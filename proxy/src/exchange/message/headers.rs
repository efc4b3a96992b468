//! Names and values of headers that the proxy sets on forwarded messages.

use std::time::Duration;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use super::added::trace_value;
pub use super::added::{X_ENVOY_ATTEMPT_COUNT, X_REQUEST_ID};
use traffic::filter::timeout;
use traffic::trace::{self, TraceContext};

/// Milliseconds between the last request byte and the first response byte.
pub const X_ENVOY_UPSTREAM_SERVICE_TIME: HeaderName =
    HeaderName::from_static("x-envoy-upstream-service-time");

/// Key of the cluster whose gateway forwarded the request. Removed before the request goes further.
pub const X_STRAIT_FROM_CLUSTER: HeaderName = HeaderName::from_static("x-strait-from-cluster");

/// The client's host, sent when a rule changes the host.
pub const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Headers that describe a retry or a failover replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptHeaders {
    /// Number of the attempt, starting at 1.
    pub number: u32,
    /// Timeout of the attempt.
    pub time: Option<Duration>,
    /// Whether the client speaks gRPC.
    pub grpc: bool,
    /// Trace context of the request.
    pub trace: Option<TraceContext>,
    /// Request id, if it has changed since the first attempt.
    pub request_id: Option<[u8; 36]>,
}

impl AttemptHeaders {
    /// Passes each header with its value to `set`.
    pub fn each(&self, mut set: impl FnMut(HeaderName, HeaderValue)) {
        set(X_ENVOY_ATTEMPT_COUNT, HeaderValue::from(self.number));
        if let Some(time) = self.time {
            set(timeout::EXPECTED_TIMEOUT, timeout::millis(time));
            if self.grpc {
                set(timeout::GRPC_TIMEOUT, timeout::format_grpc_timeout(time));
            }
        }
        if let Some(context) = &self.trace {
            trace::headers::each(context, context.child(self.number), |name, value| {
                set(name.clone(), trace_value(value));
            });
        }
        if let Some(id) = &self.request_id {
            set(X_REQUEST_ID, trace_value(id));
        }
    }

    /// Replaces the headers that exist; a rule may have removed some.
    pub fn apply(&self, headers: &mut HeaderMap) {
        self.each(|name, value| {
            if headers.contains_key(&name) {
                headers.insert(name, value);
            }
        });
    }
}

/// Whole milliseconds as a header value.
pub fn millis(time: Duration) -> HeaderValue {
    const fn ready(text: &'static str) -> HeaderValue {
        HeaderValue::from_static(text)
    }
    /// Prebuilt values for most responses.
    static SMALL: [HeaderValue; 8] = [
        ready("0"),
        ready("1"),
        ready("2"),
        ready("3"),
        ready("4"),
        ready("5"),
        ready("6"),
        ready("7"),
    ];
    let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let small = usize::try_from(millis)
        .ok()
        .and_then(|millis| SMALL.get(millis));
    small.cloned().unwrap_or_else(|| HeaderValue::from(millis))
}
