//! Providers of telemetry in the mesh configuration, checked.

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use traffic::filter::{LogFormat, Template};

/// Provider of telemetry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelemetryProvider {
    /// Name of the provider.
    pub name: Arc<str>,
    /// Type of telemetry that it receives.
    pub kind: ProviderKind,
}

/// Receiver of telemetry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// Access log in a file.
    File(FileLog),
    /// Access log of a type that is not supported.
    OtherLog,
    /// Metrics of Prometheus, which are always served.
    Prometheus,
    /// Access log over OTLP.
    Records(Arc<RecordLog>),
    /// Spans.
    Tracer(Arc<Tracer>),
    /// Receiver of a type without an effect.
    Unsupported,
}

impl ProviderKind {
    /// Whether the provider receives access logs.
    pub fn is_log(&self) -> bool {
        matches!(self, Self::File(_) | Self::OtherLog | Self::Records(_))
    }

    /// Service that telemetry is sent to.
    pub fn receiver(&self) -> Option<&Tracer> {
        match self {
            Self::Records(log) => Some(&log.receiver),
            Self::Tracer(tracer) => Some(tracer),
            _ => None,
        }
    }
}

/// Receiver of spans or log records: a service of the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tracer {
    /// Namespace of the service, if it is given.
    pub namespace: Option<Arc<str>>,
    /// Host of the service.
    pub host: Arc<str>,
    /// Port of the service.
    pub port: u16,
    /// Protocol.
    pub protocol: TracerProtocol,
    /// Path of requests; empty for that of the protocol.
    pub path: Arc<str>,
    /// Time limit of a request.
    pub timeout: Duration,
    /// Headers of requests.
    pub headers: Vec<(HeaderName, TracerHeader)>,
    /// Maximum number of bytes of a path in spans; `None` for the default.
    pub path_bytes_max: Option<usize>,
    /// Whether services are named by the semantic conventions of OpenTelemetry.
    pub has_conventional_names: bool,
}

/// Access log over OTLP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordLog {
    /// Receiver of the records.
    pub receiver: Tracer,
    /// Attribute `log_name` of the resource.
    pub name: Arc<str>,
    /// Text of records; `None` for that of Istio.
    pub text: Option<Arc<LogFormat>>,
    /// Attributes of records.
    pub attributes: Vec<(Arc<str>, Arc<Template>)>,
}

/// Protocol of a receiver of spans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracerProtocol {
    /// OTLP/gRPC.
    Grpc,
    /// OTLP/HTTP.
    Http,
    /// Zipkin v2 JSON.
    Zipkin {
        /// Whether ids of new traces have 64 bits.
        has_short_ids: bool,
        /// Whether contexts of W3C are read and written beside B3.
        has_w3c: bool,
    },
}

/// Value of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TracerHeader {
    /// As written.
    Value(HeaderValue),
    /// Value of a variable of the proxy.
    Variable(Arc<str>),
}

/// Access log in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLog {
    /// Path of the file, `/dev/stdout` or `/dev/stderr`.
    pub path: Arc<str>,
    /// Format of a line.
    pub format: FileFormat,
}

/// Format of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FileFormat {
    /// A format of the user.
    Custom(Arc<LogFormat>),
    /// Keys of Istio, in JSON.
    Json,
    /// Format of the mesh configuration.
    OfMesh,
    /// Text of Istio.
    #[default]
    Text,
}

/// Names of tracers that flags set up.
pub const TRACERS_OF_FLAGS: [&str; 2] = ["otlp", "zipkin"];

/// Providers where no Telemetry names others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefaultProviders {
    /// Providers of access logs.
    pub access_logging: Vec<Arc<str>>,
    /// Providers of metrics.
    pub metrics: Vec<Arc<str>>,
    /// Providers of traces; the first one counts.
    pub tracing: Vec<Arc<str>>,
}
