//! Settings of an OTLP exporter.

use std::fmt;
use std::time::Duration;

use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue};

use super::format::{OtlpProtocol, SpanFormat};

/// Address of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpEndpoint {
    /// Protocol.
    pub protocol: OtlpProtocol,
    /// Whether connections use TLS.
    pub is_tls: bool,
    /// Host name or address, without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Path of the requests.
    pub path: PathAndQuery,
}

impl fmt::Display for OtlpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match (self.protocol, self.is_tls) {
            (OtlpProtocol::Grpc, false) => "grpc",
            (OtlpProtocol::Grpc, true) => "grpcs",
            (OtlpProtocol::Http | OtlpProtocol::Zipkin, false) => "http",
            (OtlpProtocol::Http | OtlpProtocol::Zipkin, true) => "https",
        };
        // a query may have a key
        write!(f, "{scheme}://{}{}", self.authority(), self.path.path())
    }
}

impl OtlpEndpoint {
    /// Host and port as in a URL.
    pub fn authority(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

/// Sizes and times of an exporter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Time after which spans or records are sent at the latest. Default: 1 s.
    pub delay: Duration,
    /// Maximum number of spans of a request to the collector. Default: 512.
    pub batch_spans_max: usize,
    /// Maximum number of spans of a worker that wait; `None` if only their bytes are limited.
    pub queue_spans_max: Option<usize>,
}

impl Default for Batching {
    fn default() -> Self {
        Self {
            delay: Duration::from_secs(1),
            batch_spans_max: 512,
            queue_spans_max: None,
        }
    }
}

/// Settings of requests to a collector.
#[derive(Clone)]
pub struct OtlpSettings {
    /// The collector.
    pub endpoint: OtlpEndpoint,
    /// Headers of each request, which may be credentials.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Whether requests are compressed by gzip.
    pub is_compressed: bool,
    /// Time limit of a request. Default: 10 s.
    pub timeout: Duration,
}

impl OtlpSettings {
    /// Form of requests.
    pub(super) fn format(&self) -> SpanFormat {
        SpanFormat {
            protocol: self.endpoint.protocol,
            is_compressed: self.is_compressed,
        }
    }
}

impl fmt::Debug for OtlpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtlpSettings")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}
