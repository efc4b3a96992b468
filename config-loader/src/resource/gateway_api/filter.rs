//! Filters of rules and backends.

use std::sync::Arc;
use std::time::Duration;

use super::BackendRef;
use crate::resource::Percent;
use crate::resource::istio::Scheme;
use crate::span::Line;

/// Filter of a rule or a backend.
#[derive(Clone, Debug)]
pub enum Filter {
    /// CORS policy.
    Cors(Box<Cors>),
    /// Copies of requests.
    Mirror(RequestMirror),
    /// Redirect of the client.
    Redirect(Redirect),
    /// Edits of request headers.
    RequestHeaders(HeaderEdits),
    /// Edits of response headers.
    ResponseHeaders(HeaderEdits),
    /// Response of the proxy itself.
    Respond(Respond),
    /// Rewrite of host and path.
    Rewrite(Rewrite),
    /// Filter that cannot be applied. Requests of its rule or backend get a response with status 500, because leaving out a
    /// filter could admit what it denies.
    Unusable(Unusable),
}

impl Filter {
    /// Whether it changes requests that are forwarded.
    pub fn edits_requests(&self) -> bool {
        matches!(self, Self::RequestHeaders(_) | Self::Rewrite(_))
    }
}

/// Response of the proxy itself, without a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Respond {
    /// Status, from 200 to 599.
    pub status: u16,
    /// Source line within the document.
    pub line: Line,
}

/// Filter that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unusable {
    /// Type of the filter as written.
    pub filter_type: Arc<str>,
    /// Source line within the document.
    pub line: Line,
}

/// Edits of headers: removals, then `set`, then `add`. Names are in lower case, values are literal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderEdits {
    /// Headers to set. Each name once.
    pub set: Vec<(Arc<str>, Arc<str>)>,
    /// Headers that get a further field line.
    pub add: Vec<(Arc<str>, Arc<str>)>,
    /// Headers to remove.
    pub remove: Vec<Arc<str>>,
    /// Source line within the document.
    pub line: Line,
}

/// Copies of requests to one backend.
#[derive(Clone, Debug)]
pub struct RequestMirror {
    /// Backend that gets the copies.
    pub target: BackendRef,
    /// Percentage of requests that are copied.
    pub percentage: Percent,
    /// Source line within the document.
    pub line: Line,
}

/// Redirect of the client.
#[derive(Clone, Debug)]
pub struct Redirect {
    /// Scheme; `None` keeps that of the request.
    pub scheme: Option<Scheme>,
    /// Host; `None` keeps that of the request.
    pub hostname: Option<Arc<str>>,
    /// Port; `None` for that of `scheme`, or else that of the listener.
    pub port: Option<u16>,
    /// Path.
    pub path: PathModifier,
    /// Status: 301, 302, 303, 307 or 308.
    pub status: u16,
    /// Source line within the document.
    pub line: Line,
}

/// Rewrite of host and path.
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// New host; `None` keeps that of the request.
    pub hostname: Option<Arc<str>>,
    /// New path.
    pub path: PathModifier,
    /// Source line within the document.
    pub line: Line,
}

/// Change of a path. The query is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PathModifier {
    /// Replaces the whole path.
    Full(Arc<str>),
    /// Keeps the path.
    #[default]
    Keep,
    /// Replaces the segments of the match by these, without the `/` at the end. The only match of the rule is
    /// [`PathMatch::Segments`](super::PathMatch::Segments).
    Segments(Arc<str>),
}

/// CORS policy.
#[derive(Clone, Debug)]
pub struct Cors {
    /// Allowed origins, of which any must match.
    pub allow_origins: Vec<CorsOrigin>,
    /// Whether requests may include credentials.
    pub allow_credentials: bool,
    /// Allowed methods; only `*` for the requested method.
    pub allow_methods: Vec<Arc<str>>,
    /// Allowed request headers; only `*` for the requested headers.
    pub allow_headers: Vec<Arc<str>>,
    /// Response headers that scripts may read.
    pub expose_headers: Vec<Arc<str>>,
    /// Time that a client may cache a preflight response.
    ///
    /// Unit: time, whole seconds. Default: 5 s.
    pub max_age: Duration,
    /// Source line within the document.
    pub line: Line,
}

/// Origin that a CORS policy allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CorsOrigin {
    /// Every origin: `*`.
    Any,
    /// Origins with this scheme, host and port. Without a port as written, it is that of the scheme.
    Of(Scheme, OriginHost, u16),
}

/// Host of an allowed origin, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OriginHost {
    /// Every host: `*`.
    Any,
    /// This host.
    Exact(Arc<str>),
    /// Every host below this domain: `*.` and the domain.
    Under(Arc<str>),
}
