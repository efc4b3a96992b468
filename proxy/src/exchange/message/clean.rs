//! Cleans the head of a request before any decision is based on it.
//!
//! Rules, hash keys, CORS and explanations read the head that the endpoint will get: headers that only the proxy may
//! set are removed first, as are hop-by-hop headers and every header that `Connection` names; lines that form one value
//! are joined, and the fields that the proxy adds are available. Envoy's connection manager does the same with
//! `use_remote_address`.

use http::{HeaderMap, HeaderName, HeaderValue, Request, Version};
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, COOKIE, EXPECT,
    IF_NONE_MATCH, ORIGIN, REFERER, UPGRADE, USER_AGENT, VIA,
};
use rand::Rng;

use super::added::{
    Added, X_ENVOY_ATTEMPT_COUNT, X_FORWARDED_CLIENT_CERT, X_FORWARDED_PORT, X_REQUEST_ID,
    insert_trace,
};
use super::headers::{X_FORWARDED_HOST, X_STRAIT_FROM_CLUSTER};
use crate::exchange::downstream::connection::Connection;
use crate::exchange::downstream::origin::{Origin, Trust, X_FORWARDED_FOR, X_FORWARDED_PROTO};
use crate::exchange::settings::ExchangeSettings;
use traffic::filter::{hop_by_hop, uuid};
use traffic::trace::TraceContext;
use wire::fields;

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
    /// Whether its `Connection` header is invalid; the request gets 400.
    pub is_refused: bool,
    /// Whether the request id is the client's.
    pub is_id_kept: bool,
    /// Fields that the proxy adds; `None` once they are among the headers.
    added: Option<Added<'a>>,
}

/// Request for another protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Upgrade {
    /// None.
    None,
    /// By the header `Upgrade`.
    Asked,
    /// By an HTTP/2 extended CONNECT, for a protocol that is not supported.
    Refused,
}

impl<'a> Cleaned<'a> {
    /// A head without an upgrade, whose fields are all among the headers.
    fn with(trust: Trust) -> Self {
        Self {
            trust,
            upgrade: Upgrade::None,
            is_refused: false,
            is_id_kept: false,
            added: None,
        }
    }

    /// Inserts the fields that the proxy adds into the headers, for matching and edits. Excludes the number of the
    /// attempt, which no rule may see.
    pub fn show(&mut self, headers: &mut HeaderMap) {
        if let Some(added) = self.added.take() {
            added.show(headers);
        }
    }

    /// Inserts the fields and returns the result.
    pub fn shown(mut self, headers: &mut HeaderMap) -> Self {
        self.show(headers);
        self
    }

    /// The request id that goes upstream.
    pub fn request_id<'h>(&'h self, headers: &'h HeaderMap) -> Option<&'h [u8]> {
        let added = self.added.as_ref();
        let made = added.and_then(|added| added.request_id.as_ref());
        let kept = || fields::first(headers, &X_REQUEST_ID).map(HeaderValue::as_bytes);
        made.map(|id| &id[..]).or_else(kept)
    }

    /// Replaces the request id.
    pub fn set_request_id(&mut self, headers: &mut HeaderMap, id: [u8; 36]) {
        match &mut self.added {
            Some(added) => added.request_id = Some(id),
            None => {
                let id = HeaderValue::from_bytes(&id);
                let id = id.expect("a mark replaces one digit of a valid value");
                headers.insert(X_REQUEST_ID, id);
            }
        }
    }

    /// Adds a trace context.
    pub fn add_trace(&mut self, headers: &mut HeaderMap, context: TraceContext) {
        match &mut self.added {
            Some(added) => added.trace = Some(context),
            None => insert_trace(headers, &context, context.child(1)),
        }
    }

    /// Completes the fields for sending: returns all of them, or `None` if they were inserted already and only the
    /// number of the attempt is added here.
    pub fn complete(
        &mut self,
        headers: &mut HeaderMap,
        settings: &ExchangeSettings,
    ) -> Option<Added<'a>> {
        if self.added.is_none() && !settings.omitted.attempt_count {
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
    // the proxy's own codec sends the 100 response once the body is read
    fields::remove(headers, &EXPECT);
    // if there are as many names as values, no header has a second line
    if headers.keys_len() != headers.len() {
        join_lines(headers, version);
    }
    // as in Envoy, an empty cookie of HTTP/2 is none
    if version == Version::HTTP_2
        && fields::first(headers, &COOKIE).is_some_and(HeaderValue::is_empty)
    {
        fields::remove(headers, &COOKIE);
    }
    let is_refused = stripped.is_err();
    Cleaned {
        upgrade,
        is_refused,
        ..forward(headers, connection, origin, settings, rng)
    }
}

fn upgrade(headers: &HeaderMap, version: Version) -> Upgrade {
    if !fields::has(headers, &UPGRADE) {
        return Upgrade::None;
    }
    let is_asked = version >= Version::HTTP_11 && hop_by_hop::asks_to_upgrade(headers);
    match is_asked {
        true => Upgrade::Asked,
        // in HTTP/2, the CONNECT was only for the upgrade
        false if version == Version::HTTP_2 => Upgrade::Refused,
        false => Upgrade::None,
    }
}

/// Joins lines that form one value: of the headers in [`JOINED`], and of HTTP/2 cookies (RFC 9113, section 8.2.3).
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

/// Edits the headers of a request for the next hop; returns the trust in the remaining ones, and the fields that the
/// proxy adds unless they are among the headers already. Looks at no upgrade.
///
/// At a gateway, the peer's address is appended to `x-forwarded-for`, and the scheme is that of `origin`: the client's
/// own values are not trusted. A request is internal if it comes directly from an internal address; only then are its
/// `x-envoy-` controls kept. A sidecar passes on the address and scheme of the first client and the request id in the
/// headers, and only the certificate that this proxy has verified.
fn forward<'a>(
    headers: &mut HeaderMap,
    connection: &'a Connection,
    origin: &Origin,
    settings: &ExchangeSettings,
    rng: &mut impl Rng,
) -> Cleaned<'a> {
    // many requests have none of the headers below, which one pass determines
    let extended = headers.keys().any(|name| name.as_str().starts_with("x-"));
    let passed_on = extended && headers.contains_key(X_FORWARDED_FOR);
    let internal = settings.internal_addresses.include(connection, passed_on);
    let mut added = Added::to(connection, origin, settings, internal);
    let is_verified = added.certificate.is_some();
    let certificates = settings.client_cert_header;
    added.certificate = added.certificate.filter(|_| certificates.has_own());
    let made_id = |rng| (!settings.omitted.request_id).then(|| uuid(rng));
    if !extended {
        added.request_id = made_id(rng);
        let trust = Trust {
            internal,
            controls: false,
            from_cluster: false,
        };
        return Cleaned {
            added: Some(added),
            ..Cleaned::with(trust)
        };
    }
    let controls = remove_envoy_controls(headers, internal);
    let from_cluster = headers.remove(X_STRAIT_FROM_CLUSTER).is_some();
    // only the proxy that terminates TLS knows the client's certificate, unless a gateway trusts its client
    if !certificates.keeps(is_verified) {
        headers.remove(X_FORWARDED_CLIENT_CERT);
    } else if let Some(own) = added.certificate
        && headers.contains_key(X_FORWARDED_CLIENT_CERT)
    {
        append(headers, X_FORWARDED_CLIENT_CERT, own);
        added.certificate = None;
    }
    if passed_on && let Some(peer) = added.forwarded_for.take() {
        append(headers, X_FORWARDED_FOR, peer);
    }
    if settings.is_sidecar && headers.contains_key(X_FORWARDED_PROTO) {
        added.scheme = None;
    }
    if settings.is_sidecar && headers.contains_key(X_FORWARDED_PORT) {
        added.port = None;
    }
    let keeps_id = settings.is_sidecar || internal || settings.keep_request_id;
    let is_id_kept = keeps_id && headers.contains_key(X_REQUEST_ID);
    if !is_id_kept {
        added.request_id = made_id(rng);
    }
    added.show(headers);
    let trust = Trust {
        internal,
        controls,
        from_cluster,
    };
    Cleaned {
        is_id_kept,
        ..Cleaned::with(trust)
    }
}

/// Appends a value to the lines of a header, as a single line, like Envoy: not every server keeps the order of several
/// lines.
fn append(headers: &mut HeaderMap, name: HeaderName, value: &HeaderValue) {
    let mut joined = Vec::new();
    for line in headers.get_all(&name) {
        joined.extend_from_slice(line.as_bytes());
        joined.push(b',');
    }
    joined.extend_from_slice(value.as_bytes());
    let joined = HeaderValue::from_bytes(&joined).unwrap_or_else(|_| value.clone());
    headers.insert(name, joined);
}

/// Removes headers that only this proxy or a trusted caller may set; returns whether headers of a caller are left.
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

/// Whether an internal caller may set this request control.
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
