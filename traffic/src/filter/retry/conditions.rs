//! Retry conditions: the words of `retryOn`, statuses, and names of response headers.

use http::{HeaderMap, HeaderName, StatusCode};
use smallvec::SmallVec;

use crate::error::Kind;
use wire::fields;

const RATE_LIMITED: HeaderName = HeaderName::from_static("x-envoy-ratelimited");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// Maximum number of statuses and of header names in one list, also for a trusted client. Limits the comparisons for
/// each response.
pub const LISTED_MAX: usize = 32;

/// Declares the conditions: `Variant "word"`; the position in this table is the bit.
macro_rules! conditions {
    ($($(#[doc = $doc:literal])+ $variant:ident $word:literal,)+) => {
        /// A word of `retryOn` or `x-envoy-retry-grpc-on`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Condition { $($(#[doc = $doc])+ $variant,)+ }

        impl Condition {
            /// Every condition.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name in `retryOn`.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }
    };
}

conditions! {
    /// Any 5xx response, or no response.
    FiveXx "5xx",
    /// 502, 503, 504, or no response.
    GatewayError "gateway-error",
    /// No response.
    Reset "reset",
    /// No response, and no byte of the request was sent in this attempt or an earlier one.
    ResetBeforeRequest "reset-before-request",
    /// The connection failed.
    ConnectFailure "connect-failure",
    /// 409.
    Retriable4xx "retriable-4xx",
    /// The endpoint refused the HTTP/2 stream unprocessed.
    RefusedStream "refused-stream",
    /// A listed status.
    RetriableStatusCodes "retriable-status-codes",
    /// A listed response header.
    RetriableHeaders "retriable-headers",
    /// A response with `x-envoy-ratelimited`, which otherwise prevents a retry.
    EnvoyRatelimited "envoy-ratelimited",
    /// Accepted without effect: there is no HTTP/3.
    Http3PostConnectFailure "http3-post-connect-failure",
    /// gRPC status 1 in the response's headers.
    Cancelled "cancelled",
    /// gRPC status 4 in the response's headers.
    DeadlineExceeded "deadline-exceeded",
    /// gRPC status 13 in the response's headers.
    Internal "internal",
    /// gRPC status 8 in the response's headers.
    ResourceExhausted "resource-exhausted",
    /// gRPC status 14 in the response's headers.
    Unavailable "unavailable",
}

impl Condition {
    const fn bit(self) -> u16 {
        1 << self as u16
    }

    /// The condition with that name.
    pub fn from_word(word: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|condition| condition.word() == word)
    }

    /// The condition for this gRPC status.
    const fn of_grpc_status(status: u8) -> Option<Self> {
        Some(match status {
            1 => Self::Cancelled,
            4 => Self::DeadlineExceeded,
            8 => Self::ResourceExhausted,
            13 => Self::Internal,
            14 => Self::Unavailable,
            _ => return None,
        })
    }

    /// Whether the condition is on the gRPC status.
    pub const fn is_grpc(self) -> bool {
        self.bit() & GRPC != 0
    }
}

/// All conditions on the gRPC status.
const GRPC: u16 = Condition::Cancelled.bit()
    | Condition::DeadlineExceeded.bit()
    | Condition::Internal.bit()
    | Condition::ResourceExhausted.bit()
    | Condition::Unavailable.bit();

/// All conditions on the HTTP status.
const STATUS: u16 = Condition::FiveXx.bit()
    | Condition::GatewayError.bit()
    | Condition::Retriable4xx.bit()
    | Condition::RetriableStatusCodes.bit();

/// Reason for a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The connection failed.
    ConnectFailure,
    /// The gRPC status in the response's headers.
    GrpcStatus,
    /// A header of the response.
    Header,
    /// The endpoint refused the stream unprocessed.
    RefusedStream,
    /// The attempt ended without a response.
    Reset,
    /// The status of the response.
    Status,
    /// The attempt timed out.
    Timeout,
}

impl Reason {
    /// Whether certainly no endpoint has processed the request, so that a retry adds no load to the service.
    pub const fn is_unprocessed(self) -> bool {
        matches!(self, Self::ConnectFailure | Self::RefusedStream)
    }
}

/// A set of retry conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    words: u16,
    statuses: SmallVec<[u16; 4]>,
    headers: Box<[HeaderName]>,
}

impl Conditions {
    /// Adds a condition.
    pub fn insert(&mut self, condition: Condition) {
        self.words |= condition.bit();
    }

    /// Adds a status, and the condition that uses the list of statuses.
    pub fn insert_status(&mut self, status: u16) {
        self.insert(Condition::RetriableStatusCodes);
        self.list_status(status);
    }

    /// Adds a status to the list of [`Condition::RetriableStatusCodes`].
    pub fn list_status(&mut self, status: u16) {
        if self.statuses.len() < LISTED_MAX && !self.statuses.contains(&status) {
            self.statuses.push(status);
        }
    }

    /// Adds a name to the list of [`Condition::RetriableHeaders`].
    pub fn list_header(&mut self, name: HeaderName) {
        if self.headers.len() < LISTED_MAX && !self.headers.contains(&name) {
            let mut headers = std::mem::take(&mut self.headers).into_vec();
            headers.push(name);
            self.headers = headers.into_boxed_slice();
        }
    }

    /// The union of both sets.
    #[must_use]
    pub fn with(mut self, others: &Self) -> Self {
        self.words |= others.words;
        for status in &others.statuses {
            self.list_status(*status);
        }
        for name in &others.headers {
            self.list_header(name.clone());
        }
        self
    }

    /// Whether the set is empty, so that nothing is retried.
    pub fn is_empty(&self) -> bool {
        self.words == 0
    }

    /// Whether the set contains this condition.
    pub fn contains(&self, condition: Condition) -> bool {
        self.words & condition.bit() != 0
    }

    /// The conditions as in `retryOn`, with statuses as numbers.
    pub fn words(&self) -> Vec<String> {
        let named = Condition::ALL.iter().copied();
        let named = named.filter(|condition| {
            self.contains(*condition)
                && (*condition != Condition::RetriableStatusCodes || self.statuses.is_empty())
        });
        let statuses = self.statuses.iter().map(u16::to_string);
        let words = named.map(|condition| condition.word().to_owned());
        words.chain(statuses).collect()
    }

    /// Reason to retry after an attempt without a response; `None` for no retry. `sent` is whether any byte of the
    /// request was sent to an endpoint, in this attempt or an earlier one.
    pub fn on_failure(&self, kind: Kind, sent: bool) -> Option<Reason> {
        use Condition as C;
        let reason = match kind {
            Kind::ConnectFailed | Kind::ConnectTimeout => Reason::ConnectFailure,
            Kind::AttemptTimeout => Reason::Timeout,
            Kind::UpstreamRefusedStream => Reason::RefusedStream,
            Kind::UpstreamClosed | Kind::UpstreamProtocol | Kind::UpstreamReset => Reason::Reset,
            // not caused by the endpoint, or the time is over
            Kind::DownstreamBody
            | Kind::DownstreamTimeout
            | Kind::InvalidBackend
            | Kind::NoCluster
            | Kind::NoHealthyUpstream
            | Kind::NoOriginalDestination
            | Kind::Overflow
            | Kind::RequestTimeout => return None,
        };
        let own = match reason {
            Reason::ConnectFailure => C::ConnectFailure.bit(),
            Reason::RefusedStream => C::RefusedStream.bit(),
            _ => 0,
        };
        let before = if sent { 0 } else { C::ResetBeforeRequest.bit() };
        let any = C::FiveXx.bit() | C::GatewayError.bit() | C::Reset.bit();
        (self.words & (any | own | before) != 0).then_some(reason)
    }

    /// Reason to discard this response and retry; `None` to pass it on.
    #[inline]
    pub fn on_response(&self, status: StatusCode, headers: &HeaderMap) -> Option<Reason> {
        let wanted = self
            .on_status(status)
            .or_else(|| self.on_header(headers))
            .or_else(|| self.on_grpc_status(headers));
        let limited = self.contains(Condition::EnvoyRatelimited);
        if (wanted.is_none() && !limited) || !headers.contains_key(RATE_LIMITED) {
            return wanted;
        }
        limited.then_some(Reason::Header)
    }

    fn on_status(&self, status: StatusCode) -> Option<Reason> {
        if self.words & STATUS == 0 || status.as_u16() < 400 && self.statuses.is_empty() {
            return None;
        }
        let listed = || self.statuses.contains(&status.as_u16());
        let wanted = self.contains(Condition::FiveXx) && status.is_server_error()
            || self.contains(Condition::GatewayError) && matches!(status.as_u16(), 502..=504)
            || self.contains(Condition::Retriable4xx) && status == StatusCode::CONFLICT
            || self.contains(Condition::RetriableStatusCodes) && listed();
        wanted.then_some(Reason::Status)
    }

    fn on_header(&self, headers: &HeaderMap) -> Option<Reason> {
        let mut names = self.headers.iter();
        let wanted = self.contains(Condition::RetriableHeaders)
            && names.any(|name| headers.contains_key(name));
        wanted.then_some(Reason::Header)
    }

    /// Checks the gRPC status of a response without a body, which is in its headers; never looks at trailers.
    fn on_grpc_status(&self, headers: &HeaderMap) -> Option<Reason> {
        if self.words & GRPC == 0 {
            return None;
        }
        let status = fields::first(headers, &GRPC_STATUS)?
            .to_str()
            .ok()?
            .parse()
            .ok()?;
        let condition = Condition::of_grpc_status(status)?;
        self.contains(condition).then_some(Reason::GrpcStatus)
    }
}
