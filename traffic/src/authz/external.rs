//! Providers of external authorization, which policies of action CUSTOM and single routes ask.

use std::sync::Arc;
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, Method, StatusCode};

use super::{Pattern, UrlTemplate};

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

/// Check of the requests of a route, each by a request to a fixed URL.
///
/// A status of 200 to 299 allows a request, and 401 and 403 deny it. Every other result is a failure: the client gets 500.
/// Source: the annotations `auth-url` and others of ingress-nginx; `auth_request` of nginx.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteCheck {
    /// Whether it is sent over TLS only. Its settings are those of the service's cluster.
    pub needs_tls: bool,
    /// Host of the service.
    pub host: Arc<str>,
    /// Port of the service.
    pub port: u16,
    /// Path and query of the check.
    pub target: PathAndQuery,
    /// Method of the check.
    pub method: Method,
    /// Headers of the check and of its response.
    pub headers: HttpCheck,
    /// URL to which a client is redirected by a status of 401; `None` for a response with this status.
    pub sign_in: Option<UrlTemplate>,
    /// Whether cookies of the check are set on responses of every status, rather than of 200 to 399.
    pub always_sets_cookies: bool,
}

impl RouteCheck {
    /// Time limit of a check: what nginx waits for a response by default.
    pub const TIMEOUT: Duration = Duration::from_secs(60);

    /// Returns the URL of the check.
    pub fn url(&self) -> String {
        let scheme = if self.needs_tls { "https" } else { "http" };
        format!("{scheme}://{}:{}{}", self.host, self.port, self.target)
    }
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
