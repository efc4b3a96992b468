//! Arguments about traces and their export over OTLP.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::runtime::duration::duration;
use traffic::trace::{AttributeNames, SpanForm, SpanNames};

/// Settings of traces.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Tracing")]
pub struct TracingArgs {
    /// OpenTelemetry collector: http://HOST:4318 or https:// for OTLP/HTTP, grpc://HOST:4317 or grpcs:// for OTLP/gRPC. Turns
    /// tracing on; metrics go there by --otlp-metrics, and the access log by OTEL_LOGS_EXPORTER=otlp
    #[arg(long, value_name = "URL", env = "STRAIT_OTLP_ENDPOINT")]
    pub otlp_endpoint: Option<String>,
    /// Header of requests to the collector. May be repeated
    #[arg(
        long = "otlp-header",
        value_name = "NAME=VALUE",
        env = "STRAIT_OTLP_HEADER",
        value_delimiter = ',',
        hide_env_values = true
    )]
    pub otlp_headers: Vec<String>,
    /// File with headers of requests to the collector, NAME=VALUE on each line, such as credentials
    #[arg(long, value_name = "FILE", env = "STRAIT_OTLP_HEADERS_FILE")]
    pub otlp_headers_file: Option<PathBuf>,
    /// CA certificates that the collector is verified by, PEM; default: those of the operating system
    #[arg(long, value_name = "FILE", env = "STRAIT_OTLP_CA")]
    pub otlp_ca: Option<PathBuf>,
    /// Client certificate for the collector, PEM
    #[arg(
        long,
        value_name = "FILE",
        env = "STRAIT_OTLP_CERT",
        requires = "otlp_key"
    )]
    pub otlp_cert: Option<PathBuf>,
    /// Key of that certificate, PEM
    #[arg(
        long,
        value_name = "FILE",
        env = "STRAIT_OTLP_KEY",
        requires = "otlp_cert"
    )]
    pub otlp_key: Option<PathBuf>,
    /// Compression of requests to the collector; default: gzip, and none on the loopback interface
    #[arg(long, value_enum, env = "STRAIT_OTLP_COMPRESSION")]
    pub otlp_compression: Option<CompressionArg>,
    /// Time limit of a request to the collector [default: 10s]
    #[arg(long, value_name = "DURATION", env = "STRAIT_OTLP_TIMEOUT", value_parser = duration)]
    pub otlp_timeout: Option<Duration>,
    /// Send metrics to the collector every 60 s ($OTEL_METRIC_EXPORT_INTERVAL, in milliseconds), as OTEL_METRICS_EXPORTER=otlp does
    #[arg(long, env = "STRAIT_OTLP_METRICS")]
    pub otlp_metrics: bool,
    /// Share of requests that are sampled, of those without an earlier decision [default: 1]
    #[arg(long, value_name = "PERCENT", env = "STRAIT_TRACE_SAMPLING", value_parser = percent)]
    pub trace_sampling: Option<f64>,
    /// Share of requests with x-client-trace-id that are sampled for it
    #[arg(long, value_name = "PERCENT", default_value = "100", env = "STRAIT_TRACE_CLIENT_SAMPLING", value_parser = percent)]
    pub trace_client_sampling: f64,
    /// Maximum number of requests per second whose sampling external clients of a gateway decide; the sampling of further ones is
    /// drawn
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        env = "STRAIT_TRACE_EXTERNAL_RATE"
    )]
    pub trace_external_rate: u32,
    /// Requests that are exported although they are not sampled: `errors`, `slow=DURATION`, or both. Their traces have only the
    /// spans of this proxy
    #[arg(
        long,
        value_name = "LIST",
        env = "STRAIT_TRACE_KEEP",
        value_delimiter = ','
    )]
    pub trace_keep: Vec<String>,
    /// Maximum number of such requests per second
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        env = "STRAIT_TRACE_KEEP_RATE"
    )]
    pub trace_keep_rate: u32,
    /// Formats of trace contexts in headers that are read and written: tracecontext, b3, b3multi, or none [default:
    /// tracecontext]
    #[arg(
        long,
        value_name = "LIST",
        env = "STRAIT_TRACE_PROPAGATORS",
        value_delimiter = ','
    )]
    pub trace_propagators: Vec<String>,
    /// Spans of a request
    #[arg(long, value_enum, default_value_t = SpansArg::Full, env = "STRAIT_TRACE_SPANS")]
    pub trace_spans: SpansArg,
    /// Names of spans
    #[arg(long, value_enum, default_value_t = NamesArg::Semconv, env = "STRAIT_TRACE_NAMES")]
    pub trace_names: NamesArg,
    /// Names of attributes
    #[arg(long, value_enum, default_value_t = AttributesArg::Semconv, env = "STRAIT_TRACE_ATTRIBUTES")]
    pub trace_attributes: AttributesArg,
    /// Add an event to spans of attempts for each step: connection, TLS, request sent, first byte
    #[arg(long, env = "STRAIT_TRACE_EVENTS")]
    pub trace_events: bool,
    /// Add the query of requests to spans, which may hold secrets
    #[arg(long, env = "STRAIT_TRACE_QUERY")]
    pub trace_query: bool,
    /// Name of the service in traces; default: $OTEL_SERVICE_NAME, else APP.NAMESPACE by the label `app` of the workload, else
    /// istio-proxy.NAMESPACE
    #[arg(long, value_name = "NAME", env = "STRAIT_TRACE_SERVICE_NAME")]
    pub trace_service_name: Option<String>,
}

/// `--otlp-compression`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompressionArg {
    /// gzip
    Gzip,
    /// None
    None,
}

/// `--trace-spans`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SpansArg {
    /// A server span, and a client span for each attempt
    Full,
    /// As Istio: of a sidecar one span, of kind CLIENT for outbound traffic and SERVER for inbound traffic
    Istio,
}

/// `--trace-names`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NamesArg {
    /// Method and route, as the semantic conventions of OpenTelemetry say
    Semconv,
    /// Destination and path of the rule, as of Istio's proxies
    Istio,
}

/// `--trace-attributes`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AttributesArg {
    /// Names of the semantic conventions of OpenTelemetry
    Semconv,
    /// Names of Envoy's spans, where it has others
    Envoy,
    /// Both, for tools that read Envoy's, such as Kiali
    Both,
}

impl From<SpansArg> for SpanForm {
    fn from(arg: SpansArg) -> Self {
        match arg {
            SpansArg::Full => Self::Full,
            SpansArg::Istio => Self::Istio,
        }
    }
}

impl From<NamesArg> for SpanNames {
    fn from(arg: NamesArg) -> Self {
        match arg {
            NamesArg::Semconv => Self::Semconv,
            NamesArg::Istio => Self::Istio,
        }
    }
}

impl From<AttributesArg> for AttributeNames {
    fn from(arg: AttributesArg) -> Self {
        match arg {
            AttributesArg::Semconv => Self::Semconv,
            AttributesArg::Envoy => Self::Envoy,
            AttributesArg::Both => Self::Both,
        }
    }
}

/// Parses a percentage.
fn percent(text: &str) -> Result<f64, String> {
    let percent = text.trim_end_matches('%').parse().ok();
    percent
        .filter(|percent| (0.0..=100.0).contains(percent))
        .ok_or_else(|| "expected a number from 0 to 100".to_owned())
}
