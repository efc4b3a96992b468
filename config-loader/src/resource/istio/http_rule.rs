//! An HTTP rule: what it is for, what it does, and all that it changes on the way.

use std::sync::Arc;
use std::time::Duration;

use super::{Destination, Headers, HttpAction, HttpMatch, Pattern, StringMatch};
use crate::resource::Percent;
use crate::span::Line;

/// An entry of `http`.
///
/// What a delegate may take over from its root is an `Option`: none means that the rule does not say.
#[derive(Clone, Debug)]
pub struct HttpRule {
    /// Its name; empty if it has none.
    pub name: Arc<str>,
    /// What it is for; any one block is enough. Empty for everything.
    pub matches: Vec<HttpMatch>,
    /// What it does.
    pub action: HttpAction,
    /// Changes of the path and the authority.
    pub rewrite: Option<Box<Rewrite>>,
    /// How long the answer may take, all attempts together.
    ///
    /// Unit: time, at least 1 ms. Default: no limit.
    pub timeout: Option<Duration>,
    /// When to try again; none for the default of the mesh.
    pub retries: Option<Box<RetryPolicy>>,
    /// Failures to cause on purpose.
    pub fault: Option<Box<Fault>>,
    /// Where `mirror` sends copies.
    pub mirror: Option<Box<Destination>>,
    /// The share of requests that `mirror` copies; none for all.
    pub mirror_percentage: Option<Percent>,
    /// Where else copies go. Never together with `mirror`.
    pub mirrors: Vec<Mirror>,
    /// How cross-origin requests are answered.
    pub cors: Option<Box<CorsPolicy>>,
    /// Header edits.
    pub headers: Option<Box<Headers>>,
    /// Where it was written.
    pub line: Line,
}

impl HttpRule {
    /// Whether the rule takes every request that its matches name. A rule that delegates does not: its delegate may match fewer.
    pub(crate) fn keeps_all(&self) -> bool {
        !matches!(self.action, HttpAction::Delegate(_))
    }
}

/// `rewrite`
#[derive(Clone, Debug)]
pub struct Rewrite {
    /// The new authority, taken literally.
    pub authority: Option<Arc<str>>,
    /// The new path.
    pub path: RewritePath,
    /// Where it was written.
    pub line: Line,
}

/// How a path is rewritten. The query stays.
#[derive(Clone, Debug, Default)]
pub enum RewritePath {
    /// It is not.
    #[default]
    Keep,
    /// Every match of a regular expression is replaced.
    Regex(RegexRewrite),
    /// What the rule's `uri` matched is replaced: a prefix, or the whole of an exact or regex match.
    Matched(Arc<str>),
}

/// `uriRegexRewrite`
#[derive(Clone, Debug)]
pub struct RegexRewrite {
    /// What is replaced. Not anchored.
    pub pattern: Pattern,
    /// By what; `\1` to `\9` represent groups.
    pub replacement: Arc<str>,
}

/// `retries`
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    /// Retries; 0 switches retries off.
    pub attempts: u32,
    /// How long one try may take; none for as long as the route's timeout.
    pub per_try_timeout: Option<Duration>,
    /// What is tried again; any one is enough.
    pub retry_on: Vec<RetryCondition>,
    /// Whether later attempts avoid the localities of earlier ones.
    pub remote_localities: bool,
    /// Whether another endpoint is chosen; none for yes, except with a consistent hash.
    pub ignore_previous_hosts: Option<bool>,
    /// The base of the pauses between attempts.
    ///
    /// Unit: time, at least 1 ms. Default: [`RetryPolicy::BACKOFF_DEFAULT`].
    pub backoff: Duration,
    /// Where it was written.
    pub line: Line,
}

impl RetryPolicy {
    /// The base of the pauses between attempts where none is written.
    pub const BACKOFF_DEFAULT: Duration = Duration::from_millis(25);

    /// What is tried again where nothing is written.
    pub const RETRY_ON_DEFAULT: [RetryCondition; 4] = [
        RetryCondition::ConnectFailure,
        RetryCondition::RefusedStream,
        RetryCondition::Unavailable,
        RetryCondition::Cancelled,
    ];
}

/// What is tried again: a token of `retryOn`.
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
    /// `reset-before-request`: as `reset`, and nothing of the request was sent.
    ResetBeforeRequest,
    /// `resource-exhausted`: gRPC status 8 in the response headers.
    ResourceExhausted,
    /// `retriable-4xx`: 409.
    Retriable4xx,
    /// `retriable-headers`: the headers that the client names.
    RetriableHeaders,
    /// `retriable-status-codes`: the codes that are listed beside it, or that the client names.
    RetriableStatusCodes,
    /// A bare status such as `503`.
    Status(u16),
    /// `unavailable`: gRPC status 14 in the response headers.
    Unavailable,
}

impl RetryCondition {
    /// Every token that is a word.
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

/// `fault`. Has a delay, an abort or both.
#[derive(Clone, Debug)]
pub struct Fault {
    /// Hold the request back.
    pub delay: Option<Delay>,
    /// Answer with an error.
    pub abort: Option<Abort>,
    /// Where it was written.
    pub line: Line,
}

/// `fault.delay`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// How long.
    ///
    /// Unit: time, at least 1 ms.
    pub fixed: Duration,
    /// The share of requests.
    pub percentage: Percent,
}

/// `fault.abort`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abort {
    /// The answer.
    pub status: AbortStatus,
    /// The share of requests.
    pub percentage: Percent,
}

/// The answer to an aborted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortStatus {
    /// A gRPC status.
    Grpc(GrpcStatus),
    /// An HTTP status, 200 to 599.
    Http(u16),
}

/// A gRPC status code, 0 to 16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GrpcStatus(pub u8);

impl GrpcStatus {
    /// The names of the codes, by their numbers.
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

    /// The code of that name.
    pub fn from_name(name: &str) -> Option<GrpcStatus> {
        let number = GrpcStatus::NAMES.iter().position(|known| *known == name)?;
        u8::try_from(number).ok().map(GrpcStatus)
    }
}

/// An entry of `mirrors`.
#[derive(Clone, Debug)]
pub struct Mirror {
    /// Where copies go.
    pub destination: Destination,
    /// The share of requests that is copied.
    pub percentage: Percent,
    /// Where it was written.
    pub line: Line,
}

/// `corsPolicy`
#[derive(Clone, Debug)]
pub struct CorsPolicy {
    /// The origins that are allowed; any one is enough. An exact `*` allows all.
    pub allow_origins: Vec<StringMatch>,
    /// Methods; `*` for the requested one.
    pub allow_methods: Vec<Arc<str>>,
    /// Request headers; `*` for the requested ones.
    pub allow_headers: Vec<Arc<str>>,
    /// Response headers that scripts may read.
    pub expose_headers: Vec<Arc<str>>,
    /// How long a preflight may be remembered.
    ///
    /// Unit: time, whole seconds. Default: not said.
    pub max_age: Option<Duration>,
    /// Whether credentials may be sent.
    pub allow_credentials: bool,
    /// What becomes of a preflight from an origin that is not allowed.
    pub unmatched_preflights: UnmatchedPreflights,
    /// Where it was written.
    pub line: Line,
}

/// What becomes of a preflight from an origin that is not allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnmatchedPreflights {
    /// It goes upstream.
    #[default]
    Forward,
    /// It is answered without `access-control-allow-origin`.
    Ignore,
}
