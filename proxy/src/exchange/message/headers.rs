//! The headers that a gateway adds to, and takes from, what it forwards.
//!
//! `x-forwarded-for`, `x-forwarded-proto`, `x-request-id` and the `x-envoy-` family, as Envoy's connection manager
//! sets them with `use_remote_address`.

use std::time::Duration;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use rand::Rng;

use super::added::{Added, X_FORWARDED_CLIENT_CERT};
pub use super::added::{X_ENVOY_ATTEMPT_COUNT, X_REQUEST_ID};
use crate::exchange::downstream::connection::Connection;
use crate::exchange::downstream::origin::{Origin, Trust, X_FORWARDED_FOR, X_FORWARDED_PROTO};
use crate::exchange::settings::ExchangeSettings;
use crate::filter::{timeout, uuid};

/// Milliseconds between the last request byte and the first response byte.
pub const X_ENVOY_UPSTREAM_SERVICE_TIME: HeaderName =
    HeaderName::from_static("x-envoy-upstream-service-time");

/// On a request that comes through the gateway of another cluster: the key of that cluster. It goes no further than here.
pub const X_STRAIT_FROM_CLUSTER: HeaderName = HeaderName::from_static("x-strait-from-cluster");

/// The client's host, sent when a rule changes the host.
pub const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Edits the headers of a request that is forwarded; returns which of the remaining ones are trusted, and the fields that
/// are to be added, unless they are among the headers already.
///
/// At a gateway, the peer's address is appended to `x-forwarded-for`, and the scheme is that of `origin`: a client's own
/// claims are not believed. A request is internal when it comes straight from one of the internal addresses; only then are
/// its `x-envoy-` controls kept. A sidecar passes on what the headers say of the first client's address and scheme and of the
/// request's id, and of a certificate only what this proxy has verified.
pub fn forward<'a>(
    headers: &mut HeaderMap,
    connection: &'a Connection,
    origin: &Origin,
    settings: &ExchangeSettings,
    rng: &mut impl Rng,
) -> (Trust, Option<Added<'a>>) {
    // Many requests have none of the headers that are looked for below, which one pass tells for all of them.
    let extended = headers.keys().any(|name| name.as_str().starts_with("x-"));
    let passed_on = extended && headers.contains_key(X_FORWARDED_FOR);
    let internal = settings.internal_addresses.include(connection, passed_on);
    let mut added = Added::to(connection, origin, settings.is_sidecar, internal);
    if !extended {
        added.request_id = Some(uuid(rng));
        let trust = Trust {
            internal,
            controls: false,
        };
        return (trust, Some(added));
    }
    let controls = remove_envoy_controls(headers, internal);
    headers.remove(X_STRAIT_FROM_CLUSTER);
    // Only who saw the client's certificate may speak of it.
    headers.remove(X_FORWARDED_CLIENT_CERT);
    if passed_on && let Some(peer) = added.forwarded_for.take() {
        append_forwarded_for(headers, peer);
    }
    if settings.is_sidecar && headers.contains_key(X_FORWARDED_PROTO) {
        added.scheme = None;
    }
    let keeps_id = settings.is_sidecar || internal || settings.keep_request_id;
    if !(keeps_id && headers.contains_key(X_REQUEST_ID)) {
        added.request_id = Some(uuid(rng));
    }
    added.insert_into(headers);
    (Trust { internal, controls }, None)
}

/// Headers that describe a retry or a failover replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptHeaders {
    /// Its number, from 1.
    pub number: u32,
    /// Its timeout.
    pub time: Option<Duration>,
    /// Whether the client speaks gRPC.
    pub grpc: bool,
}

impl AttemptHeaders {
    /// Gives each header, with its value, to `set`.
    pub fn each(&self, mut set: impl FnMut(HeaderName, HeaderValue)) {
        set(X_ENVOY_ATTEMPT_COUNT, HeaderValue::from(self.number));
        if let Some(time) = self.time {
            set(timeout::EXPECTED_TIMEOUT, timeout::millis(time));
            if self.grpc {
                set(timeout::GRPC_TIMEOUT, timeout::format_grpc_timeout(time));
            }
        }
    }

    /// Changes the headers that exist: a rule may have removed one.
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
    /// The values of most responses, ready-made.
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

/// Appends the peer to `x-forwarded-for`, on one line, as Envoy sends it: the order of several lines is not kept by every
/// server behind us.
fn append_forwarded_for(headers: &mut HeaderMap, peer: &HeaderValue) {
    let mut joined = Vec::new();
    for line in headers.get_all(X_FORWARDED_FOR) {
        joined.extend_from_slice(line.as_bytes());
        joined.push(b',');
    }
    joined.extend_from_slice(peer.as_bytes());
    let joined = HeaderValue::from_bytes(&joined).unwrap_or_else(|_| peer.clone());
    headers.insert(X_FORWARDED_FOR, joined);
}

/// Removes what only this proxy or a trusted caller may set; returns whether anything is left that a caller set.
fn remove_envoy_controls(headers: &mut HeaderMap, internal: bool) -> bool {
    let mut kept = false;
    let unwanted: smallvec::SmallVec<[HeaderName; 4]> = headers
        .keys()
        .filter(|name| {
            let ours = name.as_str().starts_with("x-envoy-");
            let keep = ours && internal && is_control(name);
            kept |= keep;
            ours && !keep
        })
        .cloned()
        .collect();
    for name in unwanted {
        headers.remove(name);
    }
    kept
}

/// The request controls that an internal caller may use.
fn is_control(name: &HeaderName) -> bool {
    !matches!(
        name.as_str(),
        "x-envoy-internal"
            | "x-envoy-external-address"
            | "x-envoy-attempt-count"
            | "x-envoy-original-path"
    )
}

/// A random UUID.
pub fn request_id(rng: &mut impl Rng) -> HeaderValue {
    let text = uuid(rng);
    HeaderValue::from_bytes(&text).expect("hexadecimal digits and dashes are visible ASCII")
}

#[cfg(test)]
mod tests;
