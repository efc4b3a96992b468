//! Providers of external authorization, which policies of action CUSTOM ask.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, StatusCode};

use super::Pattern;

/// Provider of external authorization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtAuthz {
    /// Name, which policies of action CUSTOM refer to.
    pub name: Arc<str>,
    /// Host of the service.
    pub host: Arc<str>,
    /// Port of the service.
    pub port: u16,
    /// Time limit of a check.
    pub timeout: Duration,
    /// Whether requests pass that could not be checked.
    pub fail_open: bool,
    /// Status for requests that could not be checked.
    pub status_on_error: StatusCode,
    /// Whether the route is looked up again after a check that changed headers.
    pub clears_route_cache: bool,
    /// Part of the request's body that is sent; `None` for none.
    pub body: Option<CheckedBody>,
    /// Protocol of the service; `None` for gRPC.
    pub http: Option<HttpCheck>,
}

/// Part of a request's body that is sent to a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedBody {
    /// Largest number of bytes.
    pub bytes_max: usize,
    /// Whether the beginning of a longer body is sent. Otherwise, its request gets 413.
    pub allows_part: bool,
    /// Whether it is sent as bytes, rather than as text. Only in gRPC.
    pub as_bytes: bool,
}

/// Settings of a check over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpCheck {
    /// Text before the path of the request.
    pub path_prefix: Arc<str>,
    /// Names of request headers that are sent, beside `authorization`.
    pub request_headers: HeaderNames,
    /// Headers of every check.
    pub added: Vec<(HeaderName, HeaderValue)>,
    /// Names of response headers that are set on an allowed request.
    pub to_upstream: HeaderNames,
    /// Names of response headers that a denied client gets; empty for all.
    pub to_denied: HeaderNames,
    /// Names of response headers that are set on the response to an allowed request.
    pub to_client: HeaderNames,
}

/// Patterns of header names, in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderNames(pub Box<[Pattern]>);

impl HeaderNames {
    /// Whether there is no pattern.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a name matches one of the patterns.
    pub fn include(&self, name: &HeaderName) -> bool {
        let name = name.as_str().as_bytes();
        self.0.iter().any(|pattern| pattern.matches(name, false))
    }
}
