//! Metrics pages, access log, process log, and the export of spans.
//!
//! A request hands a line to the access log and never waits. The control thread or the log's own thread adds up, formats
//! and writes.

mod access_log;
mod buffers;
mod exposition;
mod log;
mod otlp;
mod request_tags;
mod tap;

pub use access_log::{
    AccessLog, AccessLogFormat, AccessLogSettings, AccessLogTarget, AccessLogger, Entry, Host,
    HttpVersion, LogPlan, LogSample, LogSink, OtlpLog, RecordFormat,
};
pub use exposition::{Exposition, TextFormat};
pub use log::{LogControl, LogError, LogFilterError};
pub(crate) use otlp::attributes::{Attributes, VALUE_BYTES_MAX};
pub(crate) use otlp::protobuf;
pub use otlp::{
    Batching, CollectorClient, CollectorResponse, ExportOutcome, Exporter, MakeResource, MakeTls,
    MakeTransport, MetricPush, OtlpEndpoint, OtlpMessage, OtlpProtocol, OtlpSettings, OtlpSignal,
    OtlpTotals, PushSettings, SpanFormat, SpanQueue, Transport,
};
pub use request_tags::{MetricChanges, RequestTags};
pub use tap::{
    OpenTaps, TAP_QUEUE_MAX, TAP_RATE_DEFAULT, TAP_RATE_MAX, TAPS_MAX, TapCounts, TapFilter,
    TapHead, TapOutcome, TapReader, TapResult, TapSet, TapStyle, TapTiming, TappedAttempt,
    TappedDestination, TappedRequest, TappedRule, Taps, TooManyTaps, tap_line, tap_rate,
};
pub use traffic::telemetry::credentials::is_credential;
pub(crate) use traffic::telemetry::credentials::{is_secret_header, is_signature, redacted};
pub use traffic::telemetry::{
    AppliedSource, BUCKET_BOUNDS, BuildInfo, CertificateState, CloseReason, ConnectionProtocol,
    ConnectionTotals, ControlStats, Counter, Decided, DestinationState, DurationBounds, ErrorCount,
    FamilyRule, Gauge, IdentityState, LimitState, ListenerStats, MemberLabels, MemberState,
    MemberTally, MetricRules, PlaintextCount, PlaintextStats, PolicyLabels, PolicyTally,
    PropagationStats, RETENTION, Reload, ReplayCause, ReplayLabels, ReplayTally, Reporter,
    RequestLabels, RequestProtocol, RequestRecord, RequestStats, ResponseFlags, RouteStats,
    RuleStats, Security, Service, ServiceStates, ShiftReason, ShiftTally, SourceWorkload, Stage,
    StatsRegistry, TagTable, TagText, Tally, TcpStats, TcpTotals, Telemetry, UNAVAILABLE_MAX,
    UNKNOWN, UnknownFlag, VARIANTS_MAX, WorkerCounters, WorkerId, Workload, names,
};
