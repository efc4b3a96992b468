//! Signals of OpenTelemetry, each with a service of its own at a collector.

/// Kind of telemetry that is sent to a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OtlpSignal {
    /// Lines of the access log.
    Logs,
    /// Metrics.
    Metrics,
    /// Spans.
    Traces,
}

impl OtlpSignal {
    /// Name in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Logs => "logs",
            Self::Metrics => "metrics",
            Self::Traces => "traces",
        }
    }

    /// Name of what is sent.
    pub const fn items(self) -> &'static str {
        match self {
            Self::Logs => "log records",
            Self::Metrics => "metrics",
            Self::Traces => "trace spans",
        }
    }

    /// Name in variables of OpenTelemetry.
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Logs => "LOGS",
            Self::Metrics => "METRICS",
            Self::Traces => "TRACES",
        }
    }

    /// Path of requests over OTLP/HTTP.
    pub const fn http_path(self) -> &'static str {
        match self {
            Self::Logs => "/v1/logs",
            Self::Metrics => "/v1/metrics",
            Self::Traces => "/v1/traces",
        }
    }

    /// Path of the gRPC method.
    pub const fn grpc_path(self) -> &'static str {
        match self {
            Self::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
            Self::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
            Self::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        }
    }
}
