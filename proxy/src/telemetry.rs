//! Metrics pages, access log and process log.
//!
//! A request hands a line to the access log and never waits. The control thread or the log's own thread adds up, formats
//! and writes.

mod access_log;
mod exposition;
mod log;

pub use access_log::{
    AccessLog, AccessLogFormat, AccessLogSettings, AccessLogTarget, AccessLogger, Entry, Host,
    HttpVersion,
};
pub use exposition::{Exposition, TextFormat};
pub use log::{LogControl, LogError, LogFilterError};
pub use traffic::telemetry::{
    AppliedSource, BUCKET_BOUNDS, BuildInfo, CertificateState, ConnectionProtocol,
    ConnectionTotals, ControlStats, Counter, Decided, ErrorCount, Gauge, ListenerStats,
    MemberLabels, MemberState, MemberTally, PlaintextCount, PlaintextStats, PolicyLabels,
    PolicyTally, PropagationStats, RETENTION, Reload, ReplayCause, ReplayLabels, ReplayTally,
    Reporter, RequestLabels, RequestProtocol, RequestRecord, RequestStats, ResponseFlags,
    RouteStats, Security, Service, ShiftReason, ShiftTally, SourceWorkload, Stage, StatsRegistry,
    Tally, TcpStats, TcpTotals, Telemetry, UNKNOWN, UnknownFlag, VARIANTS_MAX, WorkerCounters,
    WorkerId, Workload, names,
};
