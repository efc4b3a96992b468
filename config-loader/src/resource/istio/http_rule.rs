//! HTTP rule: match conditions, action and modifications of requests.

use std::sync::Arc;
use std::time::Duration;

use super::{Destination, Headers, HttpAction, HttpDestination, HttpMatch, Pattern, StringMatch};
use crate::resource::Percent;
use crate::span::Line;

/// HTTP rule: an entry of `http`.
///
/// Fields that a delegate can inherit from its root are `Option`s; `None` means that the rule does not set the field.
#[derive(Clone, Debug)]
pub struct HttpRule {
    /// Name of the rule; may be empty.
    pub name: Arc<str>,
    /// Match blocks, of which any must match. Empty to match every request.
    pub matches: Vec<HttpMatch>,
    /// Action for matching requests.
    pub action: HttpAction,
    /// Rewrite of path and authority.
    pub rewrite: Option<Box<Rewrite>>,
    /// Timeout of the response, including all attempts.
    ///
    /// Unit: time, at least 1 ms. Default: no limit.
    pub timeout: Option<Duration>,
    /// Retry policy; `None` for the default of the mesh.
    pub retries: Option<Box<RetryPolicy>>,
    /// Fault injection.
    pub fault: Option<Box<Fault>>,
    /// Mirror destination, which receives copies of requests.
    pub mirror: Option<Box<Destination>>,
    /// Percentage of requests that `mirror` copies; `None` for all.
    pub mirror_percentage: Option<Percent>,
    /// Further mirror destinations. Never together with `mirror`.
    pub mirrors: Vec<Mirror>,
    /// CORS policy.
    pub cors: Option<Box<CorsPolicy>>,
    /// Header edits.
    pub headers: Option<Box<Headers>>,
    /// Source line within the document.
    pub line: Line,
}

impl HttpRule {
    /// Whether the rule handles every request that it matches. False for a rule that delegates: its delegate may match
    /// fewer.
    pub(crate) fn keeps_all(&self) -> bool {
        !matches!(self.action, HttpAction::Delegate(_))
    }

    /// Returns the destinations that requests are routed to, by weight; none for other actions.
    pub fn routes(&self) -> &[HttpDestination] {
        match &self.action {
            HttpAction::Route(routes) => routes,
            _ => &[],
        }
    }

    /// Returns every destination of requests and of their copies.
    pub fn destinations(&self) -> impl Iterator<Item = &Destination> {
        let routes = self.routes().iter().map(|route| &route.destination);
        let mirrors = self.mirrors.iter().map(|mirror| &mirror.destination);
        routes.chain(self.mirror.as_deref()).chain(mirrors)
    }
}

/// Rewrite of path and authority (`rewrite`).
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// New authority, as a literal text.
    pub authority: Option<Arc<str>>,
    /// Rewrite of the path.
    pub path: RewritePath,
    /// Source line within the document.
    pub line: Line,
}

/// Rewrite of a path. The query is kept.
#[derive(Clone, Debug, Default)]
pub enum RewritePath {
    /// Keeps the path.
    #[default]
    Keep,
    /// Replaces every match of a regular expression.
    Regex(RegexRewrite),
    /// Replaces the part that the rule's `uri` matched: a prefix, or the whole path for an exact or regex match.
    Matched(Arc<str>),
}

/// Path rewrite with a regular expression (`uriRegexRewrite`).
#[derive(Clone, Debug)]
pub struct RegexRewrite {
    /// Regular expression to replace. Not anchored.
    pub pattern: Pattern,
    /// Replacement; `\1` to `\9` insert groups.
    pub replacement: Arc<str>,
}

/// Retry policy (`retries`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Maximum number of retries; 0 turns retries off.
    pub attempts: u32,
    /// Timeout of one attempt; `None` for the route's timeout.
    pub per_try_timeout: Option<Duration>,
    /// Retry conditions, of which any must be true.
    pub retry_on: Vec<RetryCondition>,
    /// Whether retries avoid the localities of earlier attempts.
    pub remote_localities: bool,
    /// Whether retries avoid endpoints of earlier attempts; `None` for yes, except with a consistent hash.
    pub ignore_previous_hosts: Option<bool>,
    /// Base interval of the backoff between attempts.
    ///
    /// Unit: time, at least 1 ms. Default: [`RetryPolicy::BACKOFF_DEFAULT`].
    pub backoff: Duration,
    /// Source line within the document.
    pub line: Line,
}

impl RetryPolicy {
    /// Default base interval of the backoff.
    pub const BACKOFF_DEFAULT: Duration = Duration::from_millis(25);

    /// Default retry conditions.
    pub const RETRY_ON_DEFAULT: [RetryCondition; 4] = [
        RetryCondition::ConnectFailure,
        RetryCondition::RefusedStream,
        RetryCondition::Unavailable,
        RetryCondition::Cancelled,
    ];
}

/// Retry condition: a token of `retryOn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RetryCondition {
    /// `cancelled`: gRPC status 1 in the response headers.
    Cancelled,
    /// `connect-failure`
    ConnectFailure,
    /// `deadline-exceeded`: gRPC status 4 in the response headers.
    DeadlineExceeded,
    /// `envoy-ratelimited`
    EnvoyRatelimited,
    /// `5xx`: any 5xx, or no response.
    FiveXx,
    /// `gateway-error`: 502, 503, 504, or no response.
    GatewayError,
    /// `http3-post-connect-failure`; no effect without HTTP/3.
    Http3PostConnectFailure,
    /// `internal`: gRPC status 13 in the response headers.
    Internal,
    /// `refused-stream`
    RefusedStream,
    /// `reset`: the upstream closed without a response.
    Reset,
    /// `reset-before-request`: as `reset`, but no part of the request was sent.
    ResetBeforeRequest,
    /// `resource-exhausted`: gRPC status 8 in the response headers.
    ResourceExhausted,
    /// `retriable-4xx`: 409.
    Retriable4xx,
    /// `retriable-headers`: the response headers that the client lists.
    RetriableHeaders,
    /// `retriable-status-codes`: statuses that are listed in `retryOn`, or by the client.
    RetriableStatusCodes,
    /// Bare status such as `503`.
    Status(u16),
    /// `unavailable`: gRPC status 14 in the response headers.
    Unavailable,
}

impl RetryCondition {
    /// Tokens of all conditions except bare statuses.
    pub const WORDS: [(&'static str, RetryCondition); 16] = [
        ("5xx", RetryCondition::FiveXx),
        ("gateway-error", RetryCondition::GatewayError),
        ("reset", RetryCondition::Reset),
        ("reset-before-request", RetryCondition::ResetBeforeRequest),
        ("connect-failure", RetryCondition::ConnectFailure),
        ("retriable-4xx", RetryCondition::Retriable4xx),
        ("refused-stream", RetryCondition::RefusedStream),
        (
            "retriable-status-codes",
            RetryCondition::RetriableStatusCodes,
        ),
        ("retriable-headers", RetryCondition::RetriableHeaders),
        ("envoy-ratelimited", RetryCondition::EnvoyRatelimited),
        (
            "http3-post-connect-failure",
            RetryCondition::Http3PostConnectFailure,
        ),
        ("cancelled", RetryCondition::Cancelled),
        ("deadline-exceeded", RetryCondition::DeadlineExceeded),
        ("internal", RetryCondition::Internal),
        ("resource-exhausted", RetryCondition::ResourceExhausted),
        ("unavailable", RetryCondition::Unavailable),
    ];
}

/// Fault injection (`fault`). Has a delay, an abort or both.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Delay of the request.
    pub delay: Option<Delay>,
    /// Abort of the request with an error response.
    pub abort: Option<Abort>,
    /// Source line within the document.
    pub line: Line,
}

/// Injected delay (`fault.delay`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Length of the delay.
    ///
    /// Unit: time, at least 1 ms.
    pub fixed: Duration,
    /// Percentage of requests that are delayed.
    pub percentage: Percent,
}

/// Injected error response (`fault.abort`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abort {
    /// Status of the response.
    pub status: AbortStatus,
    /// Percentage of requests that are aborted.
    pub percentage: Percent,
}

/// Status of the response to an aborted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortStatus {
    /// gRPC status.
    Grpc(GrpcStatus),
    /// HTTP status, 200 to 599.
    Http(u16),
}

/// gRPC status code, 0 to 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GrpcStatus(pub u8);

impl GrpcStatus {
    /// Names of the codes, indexed by code.
    pub const NAMES: [&'static str; 17] = [
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    ];

    /// Returns the code with this name.
    pub fn from_name(name: &str) -> Option<GrpcStatus> {
        let number = GrpcStatus::NAMES.iter().position(|known| *known == name)?;
        u8::try_from(number).ok().map(GrpcStatus)
    }
}

/// Mirror destination: an entry of `mirrors`.
#[derive(Clone, Debug)]
pub struct Mirror {
    /// Service that receives the copies.
    pub destination: Destination,
    /// Percentage of requests that are copied.
    pub percentage: Percent,
    /// Source line within the document.
    pub line: Line,
}

/// CORS policy (`corsPolicy`).
#[derive(Clone, Debug)]
pub struct CorsPolicy {
    /// Allowed origins, of which any must match. An exact `*` allows all.
    pub allow_origins: Vec<StringMatch>,
    /// Allowed methods; `*` for the requested method.
    pub allow_methods: Vec<Arc<str>>,
    /// Allowed request headers; `*` for the requested headers.
    pub allow_headers: Vec<Arc<str>>,
    /// Response headers that scripts may read.
    pub expose_headers: Vec<Arc<str>>,
    /// Time that a client may cache a preflight response (`access-control-max-age`).
    ///
    /// Unit: time, whole seconds. Default: header not sent.
    pub max_age: Option<Duration>,
    /// Whether requests may include credentials.
    pub allow_credentials: bool,
    /// Handling of preflight requests from origins that are not allowed.
    pub unmatched_preflights: UnmatchedPreflights,
    /// Source line within the document.
    pub line: Line,
}

/// Handling of preflight requests from origins that are not allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnmatchedPreflights {
    /// The request is forwarded upstream.
    #[default]
    Forward,
    /// The proxy replies without `access-control-allow-origin`.
    Ignore,
}
