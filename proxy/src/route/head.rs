//! The part of a request that rules look at.

use http::{HeaderMap, Method};

/// The part of a request that rules look at, borrowed from it.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// Request method.
    pub method: &'a Method,
    /// `http` or `https`: of `x-forwarded-proto` when that is trusted, otherwise of the connection.
    pub scheme: &'a str,
    /// Host header or `:authority` as sent: with its port, in its own case.
    pub authority: &'a str,
    /// The authority lower-cased, without port and without a trailing dot; see [`super::normalize_host`].
    pub host: &'a str,
    /// Path without query, after [`super::normalize_path`].
    pub path: &'a str,
    /// The raw query, behind the first `?`; `None` without a `?`.
    pub query: Option<&'a str>,
    /// Header fields.
    pub headers: &'a HeaderMap,
}
