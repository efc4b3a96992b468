//! Settings of an HTTPRoute that the API has no field for.

use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

use crate::resource::istio::Pattern;

/// Settings of an HTTPRoute from its `strait.io/` annotations. They apply to all rules.
#[derive(Clone, Debug, Default)]
pub struct RouteExtensions {
    /// Sources of which a client must have one; empty for all.
    pub allowed_sources: Vec<IpNet>,
    /// Maximum number of bytes of a request's body.
    pub body_max: Option<u64>,
    /// Rate of requests of each client address.
    pub client_rate: Option<ClientRate>,
    /// Sources of which a client has none.
    pub denied_sources: Vec<IpNet>,
    /// Expression of all hosts of the route, if `*` means one label.
    pub hosts: Option<Pattern>,
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

/// Rate of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientRate {
    /// Requests that may come at once.
    pub requests: u32,
    /// Time in which as many further ones may come.
    pub unit: Duration,
}
