//! Header fields that the proxy adds to upstream requests.
//!
//! Inserting into a `HeaderMap` is costly, and for most requests these fields are only written after the others. So
//! they are inserted into the map only if something reads them there: a rule, a hash key, an edit, a mirror, a log
//! line, or the HTTP/2 encoder.

use std::borrow::Cow;
use std::net::IpAddr;

use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::exchange::downstream::connection::Connection;
use crate::exchange::downstream::origin::{Origin, X_FORWARDED_FOR, X_FORWARDED_PROTO};
use crate::exchange::settings::ExchangeSettings;
use traffic::filter::Scheme;
use traffic::trace::{self, TraceContext};

/// Request id, forwarded and logged.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Number of the attempt, starting at 1.
pub const X_ENVOY_ATTEMPT_COUNT: HeaderName = HeaderName::from_static("x-envoy-attempt-count");
pub(super) const X_FORWARDED_CLIENT_CERT: HeaderName =
    HeaderName::from_static("x-forwarded-client-cert");
const X_ENVOY_EXTERNAL_ADDRESS: HeaderName = HeaderName::from_static("x-envoy-external-address");
/// Port that the client dialed.
pub(super) const X_FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
const X_ENVOY_INTERNAL: HeaderName = HeaderName::from_static("x-envoy-internal");

/// Header fields that the proxy adds to an upstream request.
#[derive(Clone, Debug)]
pub struct Added<'a> {
    /// Peer address for `x-forwarded-for`.
    pub(super) forwarded_for: Option<&'a HeaderValue>,
    /// `x-forwarded-client-cert` of the verified client certificate.
    pub(super) certificate: Option<&'a HeaderValue>,
    /// `x-envoy-external-address` or `x-envoy-internal`; only at a gateway.
    caller: Option<Caller<'a>>,
    /// Scheme of the client.
    pub(super) scheme: Option<Scheme>,
    /// Port that the client dialed, if it is forwarded.
    pub(super) port: Option<u16>,
    /// Whether the number of the attempt is added.
    counts_attempts: bool,
    /// Request id.
    pub(super) request_id: Option<[u8; 36]>,
    /// Trace context.
    pub(super) trace: Option<TraceContext>,
}

/// Kind of the client.
#[derive(Clone, Debug)]
enum Caller<'a> {
    /// A client outside of the internal addresses, with its address.
    External(Cow<'a, HeaderValue>),
    /// A client at an internal address.
    Internal,
}

impl<'a> Added<'a> {
    /// Determines the fields of a request with this origin, except for its id.
    pub(super) fn to(
        connection: &'a Connection,
        origin: &Origin,
        settings: &ExchangeSettings,
        internal: bool,
    ) -> Self {
        let is_sidecar = settings.is_sidecar;
        let handshake = connection.tls.as_deref();
        let caller = || match internal {
            true => Caller::Internal,
            false => Caller::External(address(connection, origin)),
        };
        Self {
            forwarded_for: (!is_sidecar).then_some(&connection.remote_ip),
            certificate: handshake.and_then(|handshake| handshake.client_cert.as_ref()),
            caller: (!is_sidecar).then(caller),
            scheme: Some(origin.scheme),
            port: (settings.forwarded_port).then(|| connection.client.destination.port()),
            counts_attempts: !settings.omitted.attempt_count,
            request_id: None,
            trace: None,
        }
    }

    /// Inserts the fields into the headers of an upstream request, replacing those with the same names.
    pub fn insert_into(self, headers: &mut HeaderMap) {
        let counts_attempts = self.counts_attempts;
        self.show(headers);
        if counts_attempts {
            headers.insert(X_ENVOY_ATTEMPT_COUNT, HeaderValue::from_static("1"));
        }
    }

    /// Inserts the fields for matching and edits, without the number of the attempt.
    pub(super) fn show(self, headers: &mut HeaderMap) {
        if let Some(peer) = self.forwarded_for {
            headers.insert(X_FORWARDED_FOR, peer.clone());
        }
        if let Some(certificate) = self.certificate {
            headers.insert(X_FORWARDED_CLIENT_CERT, certificate.clone());
        }
        match self.caller {
            Some(Caller::External(address)) => {
                headers.insert(X_ENVOY_EXTERNAL_ADDRESS, address.into_owned());
            }
            Some(Caller::Internal) => {
                headers.insert(X_ENVOY_INTERNAL, HeaderValue::from_static("true"));
            }
            None => {}
        }
        if let Some(scheme) = self.scheme {
            headers.insert(X_FORWARDED_PROTO, HeaderValue::from_static(scheme.as_str()));
        }
        if let Some(port) = self.port {
            headers.insert(X_FORWARDED_PORT, HeaderValue::from(port));
        }
        if let Some(id) = &self.request_id {
            let id = HeaderValue::from_bytes(id);
            let id = id.expect("hexadecimal digits and dashes are visible ASCII");
            headers.insert(X_REQUEST_ID, id);
        }
        if let Some(context) = &self.trace {
            insert_trace(headers, context, context.child(1));
        }
    }

    /// Writes the fields as lines of a head, which must contain none of them.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        let mut line = |name: &[u8], value: &[u8]| {
            out.extend_from_slice(name);
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        };
        if let Some(peer) = self.forwarded_for {
            line(b"x-forwarded-for: ", peer.as_bytes());
        }
        if let Some(certificate) = self.certificate {
            line(b"x-forwarded-client-cert: ", certificate.as_bytes());
        }
        match &self.caller {
            Some(Caller::External(address)) => {
                line(b"x-envoy-external-address: ", address.as_bytes());
            }
            Some(Caller::Internal) => line(b"x-envoy-internal: ", b"true"),
            None => {}
        }
        match self.scheme {
            Some(Scheme::Http) => line(b"x-forwarded-proto: ", b"http"),
            Some(Scheme::Https) => line(b"x-forwarded-proto: ", b"https"),
            None => {}
        }
        if let Some(port) = self.port {
            line(b"x-forwarded-port: ", HeaderValue::from(port).as_bytes());
        }
        if let Some(id) = &self.request_id {
            line(b"x-request-id: ", id);
        }
        if self.counts_attempts {
            line(b"x-envoy-attempt-count: ", b"1");
        }
        if let Some(context) = &self.trace {
            trace::headers::each(context, context.child(1), |name, value| {
                for part in [name.as_str().as_bytes(), b": ", value, b"\r\n"] {
                    out.extend_from_slice(part);
                }
            });
        }
    }
}

/// Inserts the headers of a trace context for a request whose span has this id.
pub fn insert_trace(headers: &mut HeaderMap, context: &TraceContext, span: [u8; 8]) {
    trace::headers::each(context, span, |name, value| {
        headers.insert(name, trace_value(value));
    });
}

/// Header value of a trace context.
pub fn trace_value(value: &[u8]) -> HeaderValue {
    HeaderValue::from_bytes(value).expect("hexadecimal digits and dashes are visible ASCII")
}

/// The client's address as a header value; borrows the peer's unless a trusted hop reported another one.
fn address<'a>(connection: &'a Connection, origin: &Origin) -> Cow<'a, HeaderValue> {
    if origin.client == connection.client.source {
        return Cow::Borrowed(&connection.remote_ip);
    }
    let ip: IpAddr = origin.client.ip().to_canonical();
    Cow::Owned(HeaderValue::try_from(ip.to_string()).expect("an IP address is visible ASCII"))
}
