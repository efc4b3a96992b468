//! Settings of an HTTPRoute that the API has no field for.

use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use traffic::authz::RouteCheck;

use crate::resource::istio::Pattern;

/// Settings of an HTTPRoute from its `strait.io/` annotations. They apply to all rules.
#[derive(Clone, Debug, Default)]
pub struct RouteExtensions {
    /// Sources of which a client must have one; empty for all.
    pub allowed_sources: Vec<IpNet>,
    /// Maximum number of bytes of a request's body.
    pub body_max: Option<u64>,
    /// Check of each request by another service.
    pub check: Option<Arc<RouteCheck>>,
    /// Rate of requests of each client address.
    pub client_rate: Option<ClientRate>,
    /// Sources of which a client has none.
    pub denied_sources: Vec<IpNet>,
    /// Expression of all hosts of the route, if `*` means one label.
    pub hosts: Option<Pattern>,
    /// Time without a byte of the response after which a request is given up.
    pub idle_timeout: Option<Duration>,
    /// Whether backends get HTTP/2, whatever their ports declare.
    pub is_http2: bool,
    /// Whether a backend that does not exist answers 503.
    pub missing_is_unavailable: bool,
    /// Whether expressions match the beginning of a path, without regard to case, and rank among prefixes.
    pub path_prefix_expressions: bool,
    /// Whether requests beyond the rate get a response with status 503 in place of 429.
    pub rate_is_unavailable: bool,
    /// New path of requests whose path an expression matches; `\1` to `\9` are its groups.
    pub rewritten_path: Option<Arc<str>>,
}

impl RouteExtensions {
    /// Annotation: networks of which a client must be in one.
    pub const ALLOWED_SOURCES: &str = "strait.io/allowed-sources";
    /// Annotation: protocol of backends.
    pub const BACKEND_PROTOCOL: &str = "strait.io/backend-protocol";
    /// Annotation: rate of requests of each client address.
    pub const CLIENT_RATE: &str = "strait.io/client-rate";
    /// Annotation: status of requests beyond the rate.
    pub const CLIENT_RATE_STATUS: &str = "strait.io/client-rate-status";
    /// Annotation: networks of which a client must be in none.
    pub const DENIED_SOURCES: &str = "strait.io/denied-sources";
    /// Annotation: URL of the service that checks requests.
    pub const EXT_AUTHZ: &str = "strait.io/ext-authz";
    /// Annotation: statuses of responses that get the cookies of checks.
    pub const EXT_AUTHZ_COOKIES: &str = "strait.io/ext-authz-cookies";
    /// Annotation: headers of the check's response that requests get.
    pub const EXT_AUTHZ_HEADERS: &str = "strait.io/ext-authz-headers";
    /// Annotation: method of checks.
    pub const EXT_AUTHZ_METHOD: &str = "strait.io/ext-authz-method";
    /// Annotation: URL to which clients are redirected that have to sign in.
    pub const EXT_AUTHZ_SIGN_IN: &str = "strait.io/ext-authz-sign-in";
    /// Annotation: time without a byte of the response.
    pub const IDLE_TIMEOUT: &str = "strait.io/idle-timeout";
    /// Annotation: status of requests whose backend does not exist.
    pub const MISSING_BACKEND: &str = "strait.io/missing-backend";
    /// Annotation: part of a path that an expression matches.
    pub const PATH_EXPRESSIONS: &str = "strait.io/path-expressions";
    /// Annotation: maximum number of bytes of a body.
    pub const REQUEST_BYTES: &str = "strait.io/max-request-bytes";
    /// Annotation: new path of requests that an expression matches.
    pub const REWRITE_PATH: &str = "strait.io/rewrite-path";
    /// Annotation: meaning of a wildcard in a host.
    pub const WILDCARD: &str = "strait.io/wildcard";

    /// Annotations that have an effect on an HTTPRoute.
    pub const ANNOTATIONS: [&str; 16] = [
        Self::ALLOWED_SOURCES,
        Self::BACKEND_PROTOCOL,
        Self::CLIENT_RATE,
        Self::CLIENT_RATE_STATUS,
        Self::DENIED_SOURCES,
        Self::EXT_AUTHZ,
        Self::EXT_AUTHZ_COOKIES,
        Self::EXT_AUTHZ_HEADERS,
        Self::EXT_AUTHZ_METHOD,
        Self::EXT_AUTHZ_SIGN_IN,
        Self::IDLE_TIMEOUT,
        Self::MISSING_BACKEND,
        Self::PATH_EXPRESSIONS,
        Self::REQUEST_BYTES,
        Self::REWRITE_PATH,
        Self::WILDCARD,
    ];
}

/// Rate of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientRate {
    /// Requests that may come at once.
    pub requests: u32,
    /// Time in which as many further ones may come.
    pub unit: Duration,
}
