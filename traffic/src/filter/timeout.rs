//! Request timeouts: the route's timeout and the `grpc-timeout` of the client.

use std::fmt::Write;
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};

use wire::fields;

/// Request header with the timeout of a gRPC client.
pub const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Request header that tells the upstream the proxy's timeout in milliseconds.
pub const EXPECTED_TIMEOUT: HeaderName = HeaderName::from_static("x-envoy-expected-rq-timeout-ms");

/// Maximum number of digits in a `grpc-timeout`.
const DIGITS_MAX: usize = 8;

/// Units of `grpc-timeout` in nanoseconds, finest first.
const UNITS: [(u128, char); 6] = [
    (1, 'n'),
    (1_000, 'u'),
    (1_000_000, 'm'),
    (1_000_000_000, 'S'),
    (60 * 1_000_000_000, 'M'),
    (3_600 * 1_000_000_000, 'H'),
];

/// Whether a message is gRPC: content type `application/grpc` or `application/grpc+...`, as in Envoy.
pub fn is_grpc(headers: &HeaderMap) -> bool {
    let Some(content_type) = fields::first(headers, &CONTENT_TYPE) else {
        return false;
    };
    match content_type.as_bytes().strip_prefix(b"application/grpc") {
        Some(rest) => matches!(rest.first(), None | Some(b'+')),
        None => false,
    }
}

/// The effective timeout: the shorter one of the route's and, for a gRPC request, the client's.
pub fn effective(route: Option<Duration>, client: Option<Duration>) -> Option<Duration> {
    match (route, client) {
        (Some(route), Some(client)) => Some(route.min(client)),
        (route, client) => route.or(client),
    }
}

/// The timeout that a gRPC client requests.
///
/// `None` without the header, if it is malformed, and for zero, which represents no limit.
pub fn grpc_timeout(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(GRPC_TIMEOUT)?.to_str().ok()?;
    let unit_at = text.len().checked_sub(1)?;
    let (digits, unit) = text.split_at_checked(unit_at)?;
    if digits.is_empty()
        || digits.len() > DIGITS_MAX
        || !digits.bytes().all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    let (nanos, _) = UNITS.iter().find(|(_, letter)| unit.starts_with(*letter))?;
    // eight digits of hours are 3.6e20 ns, more than 64 bits; whole seconds fit
    let timeout = match u64::try_from(u128::from(number) * nanos) {
        Ok(nanos) => Duration::from_nanos(nanos),
        Err(_) => Duration::from_secs(number.saturating_mul((nanos / 1_000_000_000) as u64)),
    };
    (!timeout.is_zero()).then_some(timeout)
}

/// The `grpc-timeout` for the upstream: whole milliseconds, or the finest coarser unit that fits in eight digits.
///
/// At least one millisecond, otherwise rounded down: the upstream never assumes more time than there is.
pub fn format_grpc_timeout(timeout: Duration) -> HeaderValue {
    let nanos = timeout.as_nanos().max(1_000_000);
    let mut text = String::with_capacity(DIGITS_MAX + 1);
    for (unit_nanos, unit) in &UNITS[2..] {
        let number = nanos / unit_nanos;
        if number < 10_u128.pow(DIGITS_MAX as u32) {
            // writing to memory does not fail
            let _ = write!(text, "{number}{unit}");
            return HeaderValue::from_maybe_shared(bytes::Bytes::from(text))
                .expect("digits and a letter");
        }
    }
    HeaderValue::from_static("99999999H")
}

/// Whole milliseconds as a header value, for [`EXPECTED_TIMEOUT`]; at least 1.
pub fn millis(timeout: Duration) -> HeaderValue {
    let millis = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
    HeaderValue::from(millis.max(1))
}

#[cfg(test)]
mod tests;
