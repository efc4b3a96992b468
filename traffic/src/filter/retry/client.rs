//! Request controls of trusted clients in `x-envoy-` headers. They are removed before the request is forwarded.

use std::time::Duration;

use http::{HeaderMap, HeaderName};

use super::RetryPolicy;
use super::conditions::{Condition, Conditions, LISTED_MAX};

const RETRY_ON: HeaderName = HeaderName::from_static("x-envoy-retry-on");
const RETRY_GRPC_ON: HeaderName = HeaderName::from_static("x-envoy-retry-grpc-on");
const MAX_RETRIES: HeaderName = HeaderName::from_static("x-envoy-max-retries");
const STATUS_CODES: HeaderName = HeaderName::from_static("x-envoy-retriable-status-codes");
const HEADER_NAMES: HeaderName = HeaderName::from_static("x-envoy-retriable-header-names");
const TIMEOUT: HeaderName = HeaderName::from_static("x-envoy-upstream-rq-timeout-ms");
const PER_TRY_TIMEOUT: HeaderName =
    HeaderName::from_static("x-envoy-upstream-rq-per-try-timeout-ms");
const ALT_RESPONSE: HeaderName =
    HeaderName::from_static("x-envoy-upstream-rq-timeout-alt-response");

/// Maximum number of retries that a client may request.
pub const CLIENT_ATTEMPTS_MAX: u32 = 10;

/// Request controls of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Controls {
    conditions: Conditions,
    attempts: Option<u32>,
    /// Timeout in place of the route's; zero for no timeout.
    timeout: Option<Duration>,
    per_try_timeout: Option<Duration>,
    /// Whether a timeout is reported with 204 rather than 504.
    pub alt_response: bool,
}

impl Controls {
    /// Removes the controls from the headers of a trusted client and returns them; `None` without any.
    pub fn take(headers: &mut HeaderMap) -> Option<Self> {
        let before = headers.len();
        let mut take = |name: HeaderName| headers.remove(name);
        let mut controls = Self::default();
        for (name, grpc) in [(RETRY_ON, false), (RETRY_GRPC_ON, true)] {
            let value = take(name);
            for word in value.iter().flat_map(words) {
                let condition = Condition::from_word(word);
                if let Some(condition) = condition.filter(|one| one.is_grpc() == grpc) {
                    controls.conditions.insert(condition);
                }
            }
        }
        let number = |value: http::HeaderValue| value.to_str().ok()?.trim().parse().ok();
        controls.attempts = take(MAX_RETRIES).and_then(number);
        let statuses = take(STATUS_CODES);
        for status in statuses.iter().flat_map(words).take(LISTED_MAX) {
            if let Ok(status) = status.parse() {
                controls.conditions.list_status(status);
            }
        }
        let names = take(HEADER_NAMES);
        for name in names.iter().flat_map(words).take(LISTED_MAX) {
            if let Ok(name) = name.parse() {
                controls.conditions.list_header(name);
            }
        }
        let millis = |value: http::HeaderValue| {
            let millis = value.to_str().ok()?.trim().parse().ok()?;
            Some(Duration::from_millis(millis))
        };
        controls.timeout = take(TIMEOUT).and_then(millis);
        controls.per_try_timeout = take(PER_TRY_TIMEOUT).and_then(millis);
        controls.alt_response = take(ALT_RESPONSE).is_some();
        (headers.len() < before).then_some(controls)
    }

    /// Timeout of the request, given that of its route.
    pub fn timeout(&self, route: Option<Duration>) -> Option<Duration> {
        let asked = self.timeout.or(route);
        asked.filter(|timeout| !timeout.is_zero())
    }

    /// Timeout of one attempt, given that of the route's policy.
    pub fn per_try_timeout(&self, policy: Option<Duration>) -> Option<Duration> {
        let asked = self.per_try_timeout.or(policy);
        asked.filter(|timeout| !timeout.is_zero())
    }

    /// Retry policy of the request, given that of its route; `None` to keep the route's.
    pub fn policy(&self, route: Option<&RetryPolicy>) -> Option<RetryPolicy> {
        let base = match route {
            None if self.conditions.is_empty() => return None,
            None => RetryPolicy::off(),
            Some(policy) => policy.clone(),
        };
        let attempts = self.attempts.map(|asked| asked.min(CLIENT_ATTEMPTS_MAX));
        let policy = RetryPolicy {
            attempts: attempts.unwrap_or(base.attempts),
            conditions: base.conditions.clone().with(&self.conditions),
            ..base
        };
        (Some(&policy) != route).then_some(policy)
    }
}

/// Items of a comma-separated list, trimmed.
fn words(value: &http::HeaderValue) -> impl Iterator<Item = &str> {
    let text = value.to_str().unwrap_or_default();
    text.split(',').map(str::trim)
}
