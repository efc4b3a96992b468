//! The properties of a request that rules match on.

use http::{HeaderMap, Method};

use crate::claims::Claims;

/// The properties of a request that rules match on, borrowed from it.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// Whether the request arrived by HTTP/2.
    pub is_http2: bool,
    /// Request method.
    pub method: &'a Method,
    /// `http` or `https`: from `x-forwarded-proto` if that is trusted, otherwise that of the connection.
    pub scheme: &'a str,
    /// Host header or `:authority` as sent, with its port and case.
    pub authority: &'a str,
    /// The authority lower-cased, without port and without a trailing dot; see [`super::normalize_host`].
    pub host: &'a str,
    /// Path without query, after [`super::normalize_path`].
    pub path: &'a str,
    /// The raw query after the first `?`; `None` without a `?`.
    pub query: Option<&'a str>,
    /// Header fields.
    pub headers: &'a HeaderMap,
    /// Claims of the verified token.
    pub claims: Option<&'a Claims>,
}
