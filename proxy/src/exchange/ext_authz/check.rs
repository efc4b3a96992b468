//! Facts that a provider gets, beside the head of a request.

use std::net::SocketAddr;

use bytes::Bytes;
use hyper::header::HeaderName;

use crate::upstream::Client;

/// Header of a check with whether it has only a part of the body.
pub(super) const PARTIAL_BODY: HeaderName = HeaderName::from_static("x-envoy-auth-partial-body");

/// Part of a request's body that a provider gets.
#[derive(Default)]
pub(super) struct Sent {
    /// The bytes.
    pub body: Bytes,
    /// Whether they are sent as bytes, rather than as text.
    pub as_bytes: bool,
    /// Whether it is only a part; `None` if no body is sent.
    pub is_partial: Option<bool>,
}

/// Facts of a connection that a provider gets.
pub(super) struct Asking<'a> {
    /// Addresses of the connection.
    pub client: Client,
    /// Address of the client, as far as it can be trusted.
    pub remote: SocketAddr,
    /// First URI of the client's certificate.
    pub principal: Option<&'a str>,
    /// First URI of the proxy's certificate.
    pub own_principal: Option<&'a str>,
    /// SNI of the client.
    pub server_name: Option<&'a str>,
}
