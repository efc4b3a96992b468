//! Cleans the head of a request before anything is decided by it.
//!
//! Rules, hash keys, CORS and explanations read what the endpoint will get: headers that only this proxy may set are
//! removed first, hop-by-hop headers and every header that `Connection` names are gone, lines that are one value are joined, and
//! what the proxy adds can be read. As Envoy's connection manager does it with `use_remote_address`.

use http::{HeaderMap, HeaderName, HeaderValue, Request, Version};
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, COOKIE, EXPECT,
    IF_NONE_MATCH, ORIGIN, REFERER, UPGRADE, USER_AGENT, VIA,
};
use rand::Rng;

use super::added::{Added, X_ENVOY_ATTEMPT_COUNT, X_FORWARDED_CLIENT_CERT, X_REQUEST_ID};
use super::headers::{X_FORWARDED_HOST, X_STRAIT_FROM_CLUSTER};
use crate::exchange::downstream::connection::Connection;
use crate::exchange::downstream::origin::{Origin, Trust, X_FORWARDED_FOR, X_FORWARDED_PROTO};
use crate::exchange::settings::ExchangeSettings;
use crate::fields;
use crate::filter::{hop_by_hop, uuid};

/// Headers whose lines are one value, joined by `,`, as in Envoy.
static JOINED: [HeaderName; 13] = [
    ACCEPT,
    ACCEPT_ENCODING,
    AUTHORIZATION,
    CACHE_CONTROL,
    CONTENT_TYPE,
    IF_NONE_MATCH,
    ORIGIN,
    REFERER,
    USER_AGENT,
    VIA,
    X_FORWARDED_FOR,
    X_FORWARDED_HOST,
    X_REQUEST_ID,
];

/// Result of cleaning the head of a request.
#[derive(Debug)]
pub struct Cleaned<'a> {
    /// Trust in the remaining headers.
    pub trust: Trust,
    /// Whether the request asks for another protocol.
    pub upgrade: Upgrade,
    /// Whether its `Connection` header names what it must not; the request is answered with 400.
    pub is_refused: bool,
    /// The fields that the proxy adds, unless they are among the headers already.
    added: Option<Added<'a>>,
}

/// Whether a request asks for another protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upgrade {
    /// It does not.
    None,
    /// It does, by `Upgrade`.
    Asked,
    /// An extended CONNECT of HTTP/2 is for a protocol that is never carried.
    Refused,
}

impl<'a> Cleaned<'a> {
    /// Puts the fields that the proxy adds among the headers, for what looks for them there. The number of the attempt is
    /// not among them: no rule sees it.
    pub fn show(&mut self, headers: &mut HeaderMap) {
        if let Some(added) = self.added.take() {
            added.show(headers);
        }
    }

    /// The same with all fields among the headers.
    pub fn shown(mut self, headers: &mut HeaderMap) -> Self {
        self.show(headers);
        self
    }

    /// The fields that are still to be added to a request that is sent: all of them, or none where they were shown and only
    /// the number of the attempt was missing.
    pub fn complete(&mut self, headers: &mut HeaderMap) -> Option<Added<'a>> {
        if self.added.is_none() {
            headers.insert(X_ENVOY_ATTEMPT_COUNT, HeaderValue::from_static("1"));
        }
        self.added.take()
    }
}

/// Cleans the head of a request.
pub fn clean<'a, B>(
    request: &mut Request<B>,
    connection: &'a Connection,
    origin: &Origin,
    settings: &ExchangeSettings,
    rng: &mut impl Rng,
) -> Cleaned<'a> {
    let version = request.version();
    let headers = request.headers_mut();
    let upgrade = upgrade(headers, version);
    let stripped = hop_by_hop::strip_request(headers, upgrade == Upgrade::Asked);
    // answered by our own codec once the body is wanted
    fields::remove(headers, &EXPECT);
    // as many names as values: no header has a second line
    if headers.keys_len() != headers.len() {
        join_lines(headers, version);
    }
    let (trust, added) = forward(headers, connection, origin, settings, rng);
    Cleaned {
        trust,
        upgrade,
        is_refused: stripped.is_err(),
        added,
    }
}

fn upgrade(headers: &HeaderMap, version: Version) -> Upgrade {
    if !fields::has(headers, &UPGRADE) {
        return Upgrade::None;
    }
    let is_asked = version >= Version::HTTP_11 && hop_by_hop::asks_to_upgrade(headers);
    match is_asked {
        true => Upgrade::Asked,
        // by HTTP/2 an upgrade is all that a CONNECT was for
        false if version == Version::HTTP_2 => Upgrade::Refused,
        false => Upgrade::None,
    }
}

/// Joins lines that are one value: of the headers of [`JOINED`], and the cookie crumbs of HTTP/2 (RFC 9113, section 8.2.3).
#[cold]
fn join_lines(headers: &mut HeaderMap, version: Version) {
    for name in JOINED.iter().chain([&UPGRADE]) {
        join(headers, name, b",");
    }
    if version == Version::HTTP_2 {
        join(headers, &COOKIE, b"; ");
    }
}

fn join(headers: &mut HeaderMap, name: &HeaderName, separator: &[u8]) {
    let mut lines = headers.get_all(name).iter();
    let (Some(first), Some(second)) = (lines.next(), lines.next()) else {
        return;
    };
    let mut is_sensitive = first.is_sensitive();
    let mut joined = first.as_bytes().to_vec();
    for line in std::iter::once(second).chain(lines) {
        // as in Envoy, an empty line adds nothing
        if !joined.is_empty() && !line.is_empty() {
            joined.extend_from_slice(separator);
        }
        joined.extend_from_slice(line.as_bytes());
        is_sensitive |= line.is_sensitive();
    }
    if let Ok(mut value) = HeaderValue::from_maybe_shared(bytes::Bytes::from(joined)) {
        value.set_sensitive(is_sensitive);
        headers.insert(name, value);
    }
}

/// Edits the headers of a request for the next hop; returns which of the remaining ones are trusted, and the fields that
/// are to be added, unless they are among the headers already.
///
/// At a gateway, the peer's address is appended to `x-forwarded-for`, and the scheme is that of `origin`: a client's own
/// claims are not believed. A request is internal when it comes straight from one of the internal addresses; only then are
/// its `x-envoy-` controls kept. A sidecar passes on what the headers say of the first client's address and scheme and of the
/// request's id, and of a certificate only what this proxy has verified.
fn forward<'a>(
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
            from_cluster: false,
        };
        return (trust, Some(added));
    }
    let controls = remove_envoy_controls(headers, internal);
    let from_cluster = headers.remove(X_STRAIT_FROM_CLUSTER).is_some();
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
    added.show(headers);
    let trust = Trust {
        internal,
        controls,
        from_cluster,
    };
    (trust, None)
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
            | "x-envoy-original-host"
            | "x-envoy-original-path"
    )
}

#[cfg(test)]
mod tests;
