//! Header values with `%OPERATOR%` in them: read once into segments, then printed for each request.
//!
//! Which operators there are is listed once, where values are validated; a test of `compile` holds the two together.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::SystemTime;

use http::{HeaderMap, HeaderName, HeaderValue, Version};

use crate::telemetry::ResponseFlags;

mod parse;
mod print;
mod start_time;

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
    DownstreamLocal(AddressPart),
    DownstreamRemote(AddressPart),
    Environment(Box<str>),
    Hostname,
    Protocol,
    RequestHeader(Header, Option<Header>),
    RequestedServerName,
    ResponseCode,
    ResponseCodeDetails,
    ResponseFlags,
    ResponseHeader(HeaderName, Option<HeaderName>),
    RouteName,
    StartTime(TimeFormat),
    UpstreamCluster,
    UpstreamRemote(AddressPart),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AddressPart {
    Both,
    Ip,
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
    /// `outbound|PORT|SUBSET|HOST` of the chosen destination.
    pub upstream_cluster: &'a str,
    /// SNI of the downstream connection.
    pub requested_server_name: Option<&'a str>,
    /// Protocol of the downstream connection.
    pub protocol: Version,
    /// When the request began.
    pub start_time: SystemTime,
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
    /// Request headers. While request headers are edited, those that are edited are read instead.
    pub request_headers: Option<&'a HeaderMap>,
    /// Response headers. While response headers are edited, those that are edited are read instead.
    pub response_headers: Option<&'a HeaderMap>,
    /// Environment of the process, read once when it started.
    pub environment: &'a BTreeMap<String, String>,
}

/// Why a text is not a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplateError {
    /// The argument of an operator makes no sense: the operator, and what is wrong.
    Argument(String, &'static str),
    /// The text ends within an operator that starts at this byte.
    Open(usize),
    /// No such operator.
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
            Self::UnknownOperator(operator) => write!(f, "unknown operator {operator}"),
        }
    }
}

impl std::error::Error for TemplateError {}

impl Template {
    /// Reads `text`.
    ///
    /// # Errors
    ///
    /// When a `%` is neither doubled nor part of a closed operator that is known.
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
