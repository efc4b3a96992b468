//! Telemetry, checked.

use std::sync::Arc;

use traffic::filter::{Expression, Template};

use super::PolicyScope;
use crate::span::Line;

/// Checked Telemetry.
#[derive(Clone, Debug, Default)]
pub struct Telemetry {
    /// Workloads that the resource applies to.
    pub scope: PolicyScope,
    /// Entries about traces.
    pub tracing: Vec<Tracing>,
    /// Entries about metrics.
    pub metrics: Vec<Metrics>,
    /// Entries about access logs.
    pub access_logging: Vec<AccessLogging>,
}

impl Telemetry {
    /// Whether the resource is about all workloads of its namespace, or of the mesh.
    pub fn selects_all(&self) -> bool {
        self.scope.selector.is_empty() && self.scope.targets.is_empty()
    }
}

/// Side of traffic at a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrafficSide {
    /// At a gateway, and outbound at a sidecar.
    Client,
    /// Inbound at a sidecar.
    Server,
}

/// Traffic that an entry is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkloadMode {
    /// Both sides.
    #[default]
    Both,
    /// One side.
    Only(TrafficSide),
}

impl WorkloadMode {
    /// Whether the entry is about a side.
    pub fn includes(self, side: TrafficSide) -> bool {
        self == Self::Both || self == Self::Only(side)
    }
}

/// Entry of `tracing`. `None` inherits the value of wider resources.
#[derive(Clone, Debug, Default)]
pub struct Tracing {
    /// Traffic.
    pub mode: WorkloadMode,
    /// Name of the first provider.
    pub provider: Option<Arc<str>>,
    /// Percentage of sampled requests, from 0 to 100.
    pub sampling: Option<f64>,
    /// Whether no spans are sent.
    pub disables_reporting: Option<bool>,
    /// Attributes of spans.
    pub custom_tags: Option<Arc<[CustomTag]>>,
    /// Whether the request id of a client may say that a request is sampled.
    pub uses_request_id: Option<bool>,
    /// Whether spans have the attributes `istio.*`.
    pub has_istio_tags: Option<bool>,
    /// Whether trace contexts are removed from requests to endpoints.
    pub disables_propagation: Option<bool>,
    /// Source line.
    pub line: Line,
}

/// Attribute of spans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomTag {
    /// Name of the attribute.
    pub name: Arc<str>,
    /// Source of its value.
    pub source: TagSource,
}

/// Source of the value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TagSource {
    /// Variable of the environment, and the value without it.
    Environment(Arc<str>, Option<Arc<str>>),
    /// Operators of the access log.
    Formatter(Arc<Template>),
    /// Header of the request in lower case, and the value without it.
    Header(Arc<str>, Option<Arc<str>>),
    /// The same text for every request.
    Literal(Arc<str>),
}

/// Entry of `metrics`.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Names of providers; empty to inherit them.
    pub providers: Vec<Arc<str>>,
    /// Changes, in order.
    pub overrides: Vec<MetricsOverride>,
}

/// Change of metrics.
#[derive(Clone, Debug, Default)]
pub struct MetricsOverride {
    /// Traffic.
    pub mode: WorkloadMode,
    /// Metrics; `None` for all.
    pub metric: Option<Metric>,
    /// Whether the metrics are not made; `None` to inherit it.
    pub disabled: Option<bool>,
    /// Changes of labels, by name.
    pub tags: Vec<(Arc<str>, TagOperation)>,
    /// Source line.
    pub line: Line,
}

/// Metric of Istio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "named as in the API")]
pub enum Metric {
    GrpcRequestMessages,
    GrpcResponseMessages,
    RequestCount,
    RequestDuration,
    RequestSize,
    ResponseSize,
    TcpClosedConnections,
    TcpOpenedConnections,
    TcpReceivedBytes,
    TcpSentBytes,
}

impl Metric {
    /// All metrics, with the names in the API and in Prometheus, without `istio_`.
    pub const ALL: [(Self, &'static str, &'static str); 10] = [
        (
            Self::GrpcRequestMessages,
            "GRPC_REQUEST_MESSAGES",
            "request_messages_total",
        ),
        (
            Self::GrpcResponseMessages,
            "GRPC_RESPONSE_MESSAGES",
            "response_messages_total",
        ),
        (Self::RequestCount, "REQUEST_COUNT", "requests_total"),
        (
            Self::RequestDuration,
            "REQUEST_DURATION",
            "request_duration_milliseconds",
        ),
        (Self::RequestSize, "REQUEST_SIZE", "request_bytes"),
        (Self::ResponseSize, "RESPONSE_SIZE", "response_bytes"),
        (
            Self::TcpClosedConnections,
            "TCP_CLOSED_CONNECTIONS",
            "tcp_connections_closed_total",
        ),
        (
            Self::TcpOpenedConnections,
            "TCP_OPENED_CONNECTIONS",
            "tcp_connections_opened_total",
        ),
        (
            Self::TcpReceivedBytes,
            "TCP_RECEIVED_BYTES",
            "tcp_received_bytes_total",
        ),
        (Self::TcpSentBytes, "TCP_SENT_BYTES", "tcp_sent_bytes_total"),
    ];
}

/// Change of a label.
#[derive(Clone, Debug, PartialEq)]
pub enum TagOperation {
    /// The label is not written.
    Remove,
    /// The label has the value of an expression.
    Upsert(Arc<Expression>),
}

/// Entry of `accessLogging`.
#[derive(Clone, Debug, Default)]
pub struct AccessLogging {
    /// Traffic.
    pub mode: WorkloadMode,
    /// Names of providers; empty for those of the entry before.
    pub providers: Vec<Arc<str>>,
    /// Whether there are no lines for the providers.
    pub disabled: bool,
    /// Condition for a line.
    pub filter: Option<Arc<Expression>>,
    /// Source line.
    pub line: Line,
}
