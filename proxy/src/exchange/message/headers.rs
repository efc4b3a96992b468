//! The headers that a gateway adds to, and takes from, what it forwards.
//!
//! `x-forwarded-for`, `x-forwarded-proto`, `x-request-id` and the `x-envoy-` family, as Envoy's connection manager
//! sets them with `use_remote_address`.

use std::net::IpAddr;
use std::time::Duration;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use rand::Rng;

use crate::exchange::downstream::connection::Connection;
use crate::exchange::downstream::origin::{Origin, Trust, X_FORWARDED_FOR, X_FORWARDED_PROTO};
use crate::exchange::settings::ExchangeSettings;
use crate::filter::{Scheme, timeout, uuid};

/// Request id, forwarded and logged.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const X_ENVOY_INTERNAL: HeaderName = HeaderName::from_static("x-envoy-internal");
const X_ENVOY_EXTERNAL_ADDRESS: HeaderName = HeaderName::from_static("x-envoy-external-address");
/// Number of the attempt, from 1.
pub const X_ENVOY_ATTEMPT_COUNT: HeaderName = HeaderName::from_static("x-envoy-attempt-count");
/// Milliseconds between the last request byte and the first response byte.
pub const X_ENVOY_UPSTREAM_SERVICE_TIME: HeaderName =
    HeaderName::from_static("x-envoy-upstream-service-time");

/// On a request that comes through the gateway of another cluster: the key of that cluster. It goes no further than here.
pub const X_STRAIT_FROM_CLUSTER: HeaderName = HeaderName::from_static("x-strait-from-cluster");

const X_FORWARDED_CLIENT_CERT: HeaderName = HeaderName::from_static("x-forwarded-client-cert");

/// The client's host, sent when a rule changes the host.
pub const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

const HTTP: HeaderValue = HeaderValue::from_static("http");
const HTTPS: HeaderValue = HeaderValue::from_static("https");
const TRUE: HeaderValue = HeaderValue::from_static("true");
const ONE: HeaderValue = HeaderValue::from_static("1");

/// Edits the headers of a request that came to a gateway, and returns which of the remaining ones are trusted.
///
/// The peer's address is appended to `x-forwarded-for`, and the scheme is that of `origin`: a client's own claims are not
/// believed. A request is internal when it comes straight from one of the internal addresses; only then are its `x-envoy-`
/// controls kept.
pub fn forward(
    headers: &mut HeaderMap,
    connection: &Connection,
    origin: &Origin,
    settings: &ExchangeSettings,
    rng: &mut impl Rng,
) -> Trust {
    if settings.is_sidecar {
        return forward_beside_workload(headers, connection, origin, settings, rng);
    }
    // Many requests have none of the headers that are looked for below, which one pass tells for all of them.
    let extended = headers.keys().any(|name| name.as_str().starts_with("x-"));
    let passed_on = if extended {
        append_forwarded_for(headers, &connection.remote_ip)
    } else {
        headers.insert(X_FORWARDED_FOR, connection.remote_ip.clone());
        false
    };
    let mut trust = Trust {
        internal: settings.internal_addresses.include(connection, passed_on),
        controls: false,
    };
    let mut keep_id = false;
    if extended {
        trust.controls = remove_envoy_controls(headers, trust.internal);
        // Only who saw the client's certificate may speak of it.
        headers.remove(X_FORWARDED_CLIENT_CERT);
        headers.remove(X_STRAIT_FROM_CLUSTER);
        keep_id =
            (trust.internal || settings.keep_request_id) && headers.contains_key(X_REQUEST_ID);
    }
    if let Some(handshake) = &connection.tls
        && let Some(certificate) = &handshake.client_cert
    {
        headers.insert(X_FORWARDED_CLIENT_CERT, certificate.clone());
    }
    if trust.internal {
        headers.insert(X_ENVOY_INTERNAL, TRUE);
    } else {
        headers.insert(X_ENVOY_EXTERNAL_ADDRESS, address(connection, origin));
    }
    let scheme = match origin.scheme {
        Scheme::Http => HTTP,
        Scheme::Https => HTTPS,
    };
    headers.insert(X_FORWARDED_PROTO, scheme);
    if !keep_id {
        headers.insert(X_REQUEST_ID, request_id(rng));
    }
    headers.insert(X_ENVOY_ATTEMPT_COUNT, ONE);
    trust
}

/// As [`forward`], of a sidecar: what the headers say of the first client's address and scheme and of the request's id is
/// passed on, and of a certificate only what this proxy has verified.
fn forward_beside_workload(
    headers: &mut HeaderMap,
    connection: &Connection,
    origin: &Origin,
    settings: &ExchangeSettings,
    rng: &mut impl Rng,
) -> Trust {
    let passed_on = headers.contains_key(X_FORWARDED_FOR);
    let internal = settings.internal_addresses.include(connection, passed_on);
    let controls = remove_envoy_controls(headers, internal);
    headers.remove(X_STRAIT_FROM_CLUSTER);
    let handshake = connection.tls.as_ref();
    match handshake.and_then(|handshake| handshake.client_cert.clone()) {
        Some(certificate) => headers.insert(X_FORWARDED_CLIENT_CERT, certificate),
        None => headers.remove(X_FORWARDED_CLIENT_CERT),
    };
    let scheme = match origin.scheme {
        Scheme::Http => HTTP,
        Scheme::Https => HTTPS,
    };
    headers.entry(X_FORWARDED_PROTO).or_insert(scheme);
    if !headers.contains_key(X_REQUEST_ID) {
        headers.insert(X_REQUEST_ID, request_id(rng));
    }
    headers.insert(X_ENVOY_ATTEMPT_COUNT, ONE);
    Trust { internal, controls }
}

/// The client's address as a header value; prebuilt unless a trusted hop forwarded another address than the peer's.
fn address(connection: &Connection, origin: &Origin) -> HeaderValue {
    if origin.client == connection.client.source {
        return connection.remote_ip.clone();
    }
    let ip: IpAddr = origin.client.ip().to_canonical();
    HeaderValue::try_from(ip.to_string()).expect("an IP address is visible ASCII")
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

/// Appends the peer to `x-forwarded-for`; returns whether others were there before it.
fn append_forwarded_for(headers: &mut HeaderMap, peer: &HeaderValue) -> bool {
    let mut before = headers.get_all(X_FORWARDED_FOR).iter();
    let Some(first) = before.next() else {
        headers.insert(X_FORWARDED_FOR, peer.clone());
        return false;
    };
    // one line, as Envoy sends it: the order of several lines is not kept by every server behind us
    let mut joined = first.as_bytes().to_vec();
    for line in before {
        joined.push(b',');
        joined.extend_from_slice(line.as_bytes());
    }
    joined.push(b',');
    joined.extend_from_slice(peer.as_bytes());
    match HeaderValue::from_bytes(&joined) {
        Ok(value) => headers.insert(X_FORWARDED_FOR, value),
        Err(_) => headers.insert(X_FORWARDED_FOR, peer.clone()),
    };
    true
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
