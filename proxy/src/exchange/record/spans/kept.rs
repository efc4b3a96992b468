//! Data of a request and of its attempts until its spans are written.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::request::Parts;
use hyper::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Uri, Version};
use smallvec::SmallVec;
use tokio::time::Instant;

use crate::exchange::downstream::connection::Connection;
use crate::exchange::downstream::origin::Origin;
use crate::exchange::select::find_route::Found;
use crate::exchange::select::target::{PickedEndpoint, Target};
use crate::exchange::trace::X_CLIENT_TRACE_ID;
use crate::exchange::trace_parts::OwnAttributes;
use crate::pool::Phases;
use crate::runtime::latest::LatestRef;
use crate::snapshot::{Direction, Traced, VirtualHost};
use crate::telemetry::{OpenTaps, RequestRecord, TapSet};
use crate::upstream::ConnectionInfo;
use traffic::error::Kind;
use traffic::filter::Scheme;
use traffic::route::RuleIdx;
use traffic::trace::headers::TRACESTATE;
use traffic::trace::{AttributeNames, TagSource, TraceContext, TracingSettings};

/// Maximum number of attempts of a request that have spans; further ones are only counted.
pub(in crate::exchange) const ATTEMPTS_MAX: usize = 16;

/// Name of a span, instead of the rule's.
const X_ENVOY_DECORATOR_OPERATION: HeaderName =
    HeaderName::from_static("x-envoy-decorator-operation");

const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Data of a request and of its attempts.
pub(in crate::exchange) struct Spans {
    pub(in crate::exchange) settings: Arc<TracingSettings>,
    pub(in crate::exchange) request_id: Option<HeaderValue>,
    pub(in crate::exchange) attempts: SmallVec<[Attempt; 1]>,
    /// Reason of the attempt that is made next.
    pub(in crate::exchange) cause: Option<Cause>,
    /// Whether the response broke off.
    pub(in crate::exchange) is_broken: bool,
    pub(super) direction: Direction,
    pub(super) scheme: Scheme,
    pub(super) client: SocketAddr,
    pub(super) head: Head,
    /// Values for custom tags: of headers, and at the end of operators.
    pub(super) tags: Vec<Option<HeaderValue>>,
    /// The rule of the request.
    pub(super) found: Option<(Arc<VirtualHost>, RuleIdx)>,
    /// Target and Host as they went upstream.
    pub(super) sent: Option<(Uri, Option<HeaderValue>)>,
    /// Whether the spans may be exported; if not, only taps read them.
    pub(in crate::exchange) may_export: bool,
    /// Taps that may show the request.
    pub(in crate::exchange) taps: Option<Tapped>,
}

/// Taps that may show a request.
pub(in crate::exchange) struct Tapped {
    pub(in crate::exchange) open: LatestRef<OpenTaps>,
    pub(in crate::exchange) set: TapSet,
    /// Duration of the client's TLS handshake, if the request is the first of its connection; else 0.
    pub(in crate::exchange) handshake_micros: u32,
}

/// Parts of the client's head; clones of shared bytes, without copying text.
pub(super) struct Head {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) version: Version,
    pub(super) host: Option<HeaderValue>,
    pub(super) user_agent: Option<HeaderValue>,
    pub(super) client_trace_id: Option<HeaderValue>,
    pub(super) operation: Option<HeaderValue>,
    /// Type of the body, kept if Envoy's names are written.
    pub(super) content_type: Option<HeaderValue>,
    /// Time limit of a gRPC call, kept if Envoy's names are written.
    pub(super) grpc_timeout: Option<HeaderValue>,
    /// `tracestate` that goes on.
    pub(super) state: Option<HeaderValue>,
}

impl Spans {
    /// Begins the spans of a request with this request id.
    pub(in crate::exchange) fn begin<B>(
        traced: Traced<'_>,
        origin: &Origin,
        request: &Request<B>,
        id: Option<&[u8]>,
    ) -> Self {
        let headers = request.headers();
        let value = |name: &HeaderName| headers.get(name).cloned();
        let has_envoy = traced.settings.attributes != AttributeNames::Semconv;
        let tags = traced.settings.custom_tags.iter();
        let tags = tags.map(|tag| match &tag.source {
            TagSource::Header { name, .. } => value(name),
            TagSource::Formatted | TagSource::Literal(_) => None,
        });
        Self {
            settings: Arc::clone(traced.settings),
            request_id: id.and_then(|id| HeaderValue::from_bytes(id).ok()),
            attempts: SmallVec::new(),
            cause: None,
            is_broken: false,
            direction: traced.direction,
            scheme: origin.scheme,
            client: origin.client,
            head: Head {
                method: request.method().clone(),
                uri: request.uri().clone(),
                version: request.version(),
                host: value(&HOST),
                user_agent: value(&USER_AGENT),
                client_trace_id: value(&X_CLIENT_TRACE_ID),
                operation: value(&X_ENVOY_DECORATOR_OPERATION),
                content_type: has_envoy.then(|| value(&CONTENT_TYPE)).flatten(),
                grpc_timeout: has_envoy.then(|| value(&GRPC_TIMEOUT)).flatten(),
                state: value(&TRACESTATE),
            },
            tags: tags.collect(),
            found: None,
            sent: None,
            may_export: true,
            taps: None,
        }
    }

    /// Sets the values of custom tags that the end of the request has.
    pub(in crate::exchange) fn set_tags(&mut self, values: Vec<Option<HeaderValue>>) {
        for (tag, value) in self.tags.iter_mut().zip(values) {
            *tag = value.or_else(|| tag.take());
        }
    }

    /// Records the rule of the request.
    pub(in crate::exchange) fn record_found(&mut self, found: &Found) {
        self.found = Some((found.shared_host(), found.rule()));
    }

    /// Records the head as it goes upstream.
    pub(in crate::exchange) fn record_sent(&mut self, parts: &Parts) {
        self.sent = Some((parts.uri.clone(), parts.headers.get(HOST).cloned()));
    }

    /// Authority of the client's request.
    pub(super) fn authority(&self) -> &[u8] {
        authority(&self.head.uri, self.head.host.as_ref())
    }
}

/// Authority of a target, else of a Host header.
pub(super) fn authority<'a>(uri: &'a Uri, host: Option<&'a HeaderValue>) -> &'a [u8] {
    match (uri.authority(), host) {
        (Some(authority), _) => authority.as_str().as_bytes(),
        (None, Some(host)) => host.as_bytes(),
        (None, None) => b"",
    }
}

/// An attempt.
pub(in crate::exchange) struct Attempt {
    /// Number of the attempt, from 1.
    pub(in crate::exchange) number: u32,
    pub(in crate::exchange) begun: Instant,
    pub(in crate::exchange) picked: PickedEndpoint,
    pub(in crate::exchange) cause: Option<Cause>,
    /// Flags that it was sent with.
    pub(in crate::exchange) flags: u8,
    /// Its way to a connection.
    pub(in crate::exchange) phases: Phases,
    /// Time of its result.
    pub(in crate::exchange) ended: Option<Instant>,
    pub(in crate::exchange) end: AttemptEnd,
}

impl Attempt {
    /// Time from when the request was on its connection to the head of the response, if there was one.
    pub(super) fn first_byte(&self) -> Option<Duration> {
        let is_response = matches!(self.end, AttemptEnd::Response { .. });
        let ended = self.ended.filter(|_| is_response)?;
        let whole = ended.saturating_duration_since(self.begun);
        Some(whole.saturating_sub(self.phases.until_sent()))
    }
}

/// Reason of an attempt after the first.
#[derive(Clone, Copy, Debug)]
pub(in crate::exchange) struct Cause {
    /// The reason, as in the metrics.
    pub(in crate::exchange) reason: &'static str,
    /// Whether the attempt is a replay in the next tier of clusters.
    pub(in crate::exchange) is_failover: bool,
}

/// Result of an attempt.
pub(in crate::exchange) enum AttemptEnd {
    /// None: the client left before.
    Pending,
    /// A response.
    Response {
        /// Status.
        code: u16,
        /// gRPC status in the headers.
        grpc_status: Option<u8>,
        /// HTTP version.
        version: Version,
        /// The connection that carried it.
        ends: Rc<ConnectionInfo>,
    },
    /// No response.
    Failed {
        /// Kind of failure.
        kind: Kind,
        /// Reason of the transport.
        transport: Option<Arc<str>>,
    },
}

impl AttemptEnd {
    /// Whether it is an error of the endpoint or its connection.
    pub(in crate::exchange) fn is_error(&self, is_grpc: bool) -> bool {
        match self {
            Self::Pending => false,
            Self::Response {
                code, grpc_status, ..
            } => *code >= 400 || is_grpc && grpc_status.is_some_and(|status| status != 0),
            Self::Failed { .. } => true,
        }
    }
}

/// The end of a request.
pub(in crate::exchange) struct End<'a> {
    pub(in crate::exchange) context: TraceContext,
    pub(in crate::exchange) times: Times,
    pub(in crate::exchange) ended: Instant,
    pub(in crate::exchange) record: &'a RequestRecord,
    pub(in crate::exchange) details: &'a str,
    /// Number of attempts.
    pub(in crate::exchange) attempts: u32,
    pub(in crate::exchange) connection: &'a Connection,
    pub(in crate::exchange) picked: Option<&'a PickedEndpoint>,
    pub(in crate::exchange) target: Option<&'a Target>,
    pub(in crate::exchange) is_tunnel: bool,
    pub(in crate::exchange) own: &'a OwnAttributes,
}

/// Conversion of the clock of workers to the time of day, by one reading of both.
#[derive(Clone, Copy)]
pub(in crate::exchange) struct Times {
    at: Instant,
    nanos: u64,
}

impl Times {
    /// Takes a time by both clocks.
    pub(in crate::exchange) fn new(at: Instant, time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            at,
            nanos: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX),
        }
    }

    /// The time that was taken, in nanoseconds since the epoch.
    pub(super) fn started(self) -> u64 {
        self.nanos
    }

    /// Nanoseconds since the epoch.
    pub(super) fn nanos(self, at: Instant) -> u64 {
        let nanos = |duration: Duration| duration.as_nanos() as u64;
        match at.checked_duration_since(self.at) {
            Some(after) => self.nanos.saturating_add(nanos(after)),
            None => self.nanos.saturating_sub(nanos(self.at - at)),
        }
    }
}
