//! Rules of HTTPRoute and GRPCRoute.

use std::sync::Arc;
use std::time::Duration;

use super::{BackendRef, Filter};
use crate::resource::istio::{HeaderMatch, Pattern, QueryMatch, StringMatch};
use crate::span::Line;

/// Rule: an entry of `rules`, with matches `M`.
#[derive(Clone, Debug)]
pub struct RouteRule<M> {
    /// Name; `None` without one.
    pub name: Option<Arc<str>>,
    /// Matches, of which any must hold. Never empty.
    pub matches: Vec<M>,
    /// Filters, as written.
    pub filters: Vec<Filter>,
    /// Backends, by weight. Empty with a redirect, and otherwise the answer is 500.
    pub backends: Vec<Backend>,
    /// Timeout of a request with all attempts; `None` for no limit.
    pub timeout: Option<Duration>,
    /// Timeout of each attempt; `None` for no limit.
    pub attempt_timeout: Option<Duration>,
    /// Retries; `None` for the default of the mesh.
    pub retry: Option<Box<Retry>>,
    /// Source line within the document.
    pub line: Line,
}

/// Weighted backend of a rule.
#[derive(Clone, Debug)]
pub struct Backend {
    /// Reference to the backend.
    pub target: BackendRef,
    /// Weight relative to the other backends, 0 to 1,000,000. The sum may be 0.
    pub weight: u32,
    /// Filters of requests to this backend, which follow those of the rule. Empty in a TLSRoute or a TCPRoute.
    pub filters: Vec<Filter>,
}

impl Backend {
    /// Whether all filters edit headers.
    pub fn has_only_header_edits(&self) -> bool {
        let is_edit =
            |one: &Filter| matches!(one, Filter::RequestHeaders(_) | Filter::ResponseHeaders(_));
        self.filters.iter().all(is_edit)
    }

    /// Whether all filters are followed.
    pub fn is_followed(&self) -> bool {
        let is_not = |one: &Filter| matches!(one, Filter::Unusable(_));
        !self.filters.iter().any(is_not)
    }
}

/// Match of an HTTPRoute. All conditions must hold.
#[derive(Clone, Debug)]
pub struct HttpMatch {
    /// Path without query, normalized.
    pub path: PathMatch,
    /// Method; `None` for any.
    pub method: Option<Arc<str>>,
    /// Headers. Each name once.
    pub headers: Vec<HeaderMatch>,
    /// Query parameters. Each name once.
    pub query_params: Vec<QueryMatch>,
    /// Source line within the document.
    pub line: Line,
}

/// Condition on a path.
#[derive(Clone, Debug)]
pub enum PathMatch {
    /// Equal path.
    Exact(Arc<str>),
    /// Path that the regular expression matches in whole.
    Regex(Pattern),
    /// Path that begins with these segments: without the `/` at the end, so empty for every path.
    Segments(Arc<str>),
}

/// Match of a GRPCRoute. All conditions must hold.
#[derive(Clone, Debug)]
pub struct GrpcMatch {
    /// Service; `None` for any.
    pub service: Option<StringMatch>,
    /// Method; `None` for any.
    pub method: Option<StringMatch>,
    /// Request metadata. Each name once.
    pub headers: Vec<HeaderMatch>,
    /// Source line within the document.
    pub line: Line,
}

/// Retries of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Statuses that are retried, each once, from 400 to 599.
    pub codes: Vec<u16>,
    /// Number of retries after the first attempt.
    pub attempts: u32,
    /// Least pause before each retry; `None` for the proxy's default.
    pub backoff: Option<Duration>,
    /// Source line within the document.
    pub line: Line,
}
