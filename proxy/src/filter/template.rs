//! Header values with `%OPERATOR%` in them: read once into segments, then printed for each request.
//!
//! Which operators there are is listed once, where values are validated; a test of `compile` holds the two together.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, HeaderValue, Version};
use rand::rngs::SmallRng;

use crate::telemetry::ResponseFlags;
use crate::tls::Facts;
use crate::tls::peer::PeerCertificate;

mod certificate;
mod grpc_status;
mod identifiers;
mod parse;
mod print;
mod start_time;

use certificate::TlsField;
use grpc_status::StatusForm;
pub use identifiers::uuid;
use start_time::TimeFormat;

/// A value that depends on the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    segments: Box<[Segment]>,
    /// As it was written, for explanations.
    written: Box<str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Literal(Box<str>),
    Operator {
        operator: Operator,
        /// Longest text in characters, from `%OPERATOR:10%`.
        chars_max: Option<usize>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    /// One of Envoy's that never has a value here.
    Absent,
    AttemptCount,
    BytesReceived,
    BytesSent,
    DownstreamDirectRemote(AddressPart),
    DownstreamLocal(AddressPart),
    DownstreamRemote(AddressPart),
    DownstreamTls(TlsField),
    Duration,
    EmitTime(TimeFormat),
    Environment(Box<str>),
    GrpcStatus(StatusForm),
    Hostname,
    Protocol,
    RequestDuration,
    RequestHeader(Header, Option<Header>),
    RequestHeadersBytes,
    RequestedServerName,
    ResponseCode,
    ResponseCodeDetails,
    ResponseDuration,
    ResponseFlags,
    ResponseFlagsLong,
    ResponseHeader(HeaderName, Option<HeaderName>),
    ResponseHeadersBytes,
    RouteName,
    StartTime(TimeFormat),
    StreamId,
    TraceId,
    UniqueId,
    UpstreamCluster,
    UpstreamLocal(AddressPart),
    UpstreamName(AddressPart),
    UpstreamProtocol,
    UpstreamRemote(AddressPart),
    UpstreamTls(TlsField),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressPart {
    Both,
    Ip,
    /// The network of this many bits that the IP is in.
    Network(u8),
    Port,
}

/// What `%REQ(...)%` may name.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Header {
    Authority,
    Method,
    Name(HeaderName),
    Path,
    Scheme,
}

/// Everything that templates may speak of. What is not known, or not yet, stays `None` or empty and prints as nothing.
#[derive(Clone, Copy, Debug)]
pub struct TemplateContext<'a> {
    /// Address of the client, as far as it is trusted.
    pub downstream_remote: Option<SocketAddr>,
    /// Address that the client connected to.
    pub downstream_local: Option<SocketAddr>,
    /// Address of the endpoint.
    pub upstream_remote: Option<SocketAddr>,
    /// Peer address of the connection, whatever `x-forwarded-for` says.
    pub downstream_direct_remote: Option<SocketAddr>,
    /// TLS with the client.
    pub downstream_tls: Option<TlsContext<'a>>,
    /// Our address towards the endpoint.
    pub upstream_local: Option<SocketAddr>,
    /// DNS name that the endpoint is known by.
    pub upstream_name: Option<&'a str>,
    /// Protocol of the connection with the endpoint; empty while there is none.
    pub upstream_protocol: &'static str,
    /// TLS with the endpoint.
    pub upstream_tls: Option<TlsContext<'a>>,
    /// `outbound|PORT|SUBSET|HOST` of the chosen destination.
    pub upstream_cluster: &'a str,
    /// SNI of the downstream connection.
    pub requested_server_name: Option<&'a str>,
    /// Protocol of the downstream connection.
    pub protocol: Version,
    /// When the request began.
    pub start_time: SystemTime,
    /// What time it is.
    pub now: SystemTime,
    /// Since the request began.
    pub duration: Duration,
    /// From the beginning of the request to its last byte.
    pub request_duration: Option<Duration>,
    /// From the beginning of the request to the head of the endpoint's response.
    pub response_duration: Option<Duration>,
    /// Bytes of the request's body so far.
    pub bytes_received: u64,
    /// How often the request was sent to an endpoint, this time included.
    pub attempts: u32,
    /// Id of the request, as it is sent on.
    pub request_id: Option<&'a HeaderValue>,
    /// Random numbers for ids.
    pub random: Option<&'a RefCell<SmallRng>>,
    /// Response flags so far.
    pub response_flags: ResponseFlags,
    /// Status of the response; 0 while there is none.
    pub response_code: u16,
    /// Details of the response, as in the access log.
    pub response_code_details: &'a str,
    /// Name of this machine.
    pub hostname: &'a str,
    /// Name of the route.
    pub route_name: &'a str,
    /// Request method.
    pub method: &'a str,
    /// Path and query as they are now.
    pub path: &'a str,
    /// Authority as it is now.
    pub authority: &'a str,
    /// Request scheme.
    pub scheme: &'a str,
    /// Request headers. While request headers are edited, the edited ones are read instead.
    pub request_headers: Option<&'a HeaderMap>,
    /// Response headers. While response headers are edited, the edited ones are read instead.
    pub response_headers: Option<&'a HeaderMap>,
    /// Environment of the process, read once when it started.
    pub environment: &'a BTreeMap<String, String>,
}

/// What templates may say of a TLS connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct TlsContext<'a> {
    /// Version, as in `TLSv1.3`.
    pub version: &'a str,
    /// Cipher suite, by OpenSSL's name.
    pub cipher: &'a str,
    /// The certificate of the other side.
    pub peer: Option<&'a PeerCertificate>,
    /// What our own certificate says.
    pub own: Option<&'a Facts>,
}

/// Why a text is not a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// The argument of an operator makes no sense: the operator, and what is wrong.
    Argument(String, &'static str),
    /// The text ends within an operator that starts at this byte.
    Open(usize),
    /// No name of an operator.
    UnknownOperator(String),
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(operator, problem) => write!(f, "operator {operator}: {problem}"),
            Self::Open(at) => write!(
                f,
                "operator at byte {at} is not closed; write %% for a percent sign"
            ),
            Self::UnknownOperator(operator) => write!(f, "{operator} is no name of an operator"),
        }
    }
}

impl std::error::Error for TemplateError {}

impl Template {
    /// Reads `text`.
    ///
    /// # Errors
    ///
    /// When a `%` is neither doubled nor part of a closed operator. One that is not known here is taken for one of Envoy's and
    /// is empty: validation refuses all others.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        parse::segments(text).map(|segments| Self {
            segments: segments.into(),
            written: text.into(),
        })
    }

    /// The text as it was written.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// Whether it has operators that never have a value.
    pub fn has_absent(&self) -> bool {
        let is_absent = |segment: &Segment| {
            let operator = Operator::Absent;
            matches!(segment, Segment::Operator { operator: one, .. } if *one == operator)
        };
        self.segments.iter().any(is_absent)
    }

    /// The text, when no operator is in it.
    pub fn as_literal(&self) -> Option<&str> {
        match &*self.segments {
            [] => Some(""),
            [Segment::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The value for a request; `None` when it is empty or would not be a legal header value.
    pub fn value(&self, context: &TemplateContext<'_>) -> Option<HeaderValue> {
        let mut out = Vec::new();
        for segment in &self.segments {
            segment.print(&mut out, context);
        }
        if out.is_empty() {
            return None;
        }
        HeaderValue::from_maybe_shared(bytes::Bytes::from(out)).ok()
    }
}

#[cfg(test)]
mod tests;
