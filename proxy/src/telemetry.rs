//! Metrics cells, response flags, access log and process log.
//!
//! A request writes cells of its own worker and hands a line to the access log; it takes no lock, looks no label up and
//! never waits. Everything that adds up, formats or writes runs on the control thread or on the log's own thread.

mod access_log;
mod cells;
mod connections;
mod control;
mod exposition;
mod flags;
mod histogram;
mod labels;
mod log;
mod members;
pub mod names;
mod plaintext;
mod propagation;
mod requests;
mod routes;
mod stats_registry;
mod tcp;

use std::sync::Arc;

pub use access_log::{
    AccessLog, AccessLogFormat, AccessLogSettings, AccessLogTarget, AccessLogger, Entry, Host,
    HttpVersion,
};
pub use cells::{WorkerCounters, WorkerId};
pub use connections::{ConnectionProtocol, ConnectionTotals, ListenerStats};
pub use control::{BuildInfo, CertificateState, ControlStats, Reload};
pub use exposition::{Exposition, TextFormat};
pub use flags::{ResponseFlags, UnknownFlag};
pub use histogram::BUCKET_BOUNDS;
pub use labels::{Reporter, RequestLabels, Service, UNKNOWN, Workload};
pub use log::{LogControl, LogError, LogFilterError};
pub use members::{
    MemberLabels, MemberState, MemberTally, ReplayCause, ReplayLabels, ReplayTally, ShiftReason,
    ShiftTally, Tally,
};
pub use names::{Counter, Gauge};
pub use plaintext::{PlaintextCount, PlaintextStats, SourceWorkload};
pub use propagation::{AppliedSource, ErrorCount, PropagationStats};
pub use requests::{RequestProtocol, RequestRecord, RequestStats, Security, VARIANTS_MAX};
pub use routes::RouteStats;
pub use stats_registry::{RETENTION, StatsRegistry};
pub use tcp::{TcpStats, TcpTotals};

/// Everything that is counted in this process, shared by workers and control.
#[derive(Debug)]
pub struct Telemetry {
    /// Counters and gauges of workers.
    pub counters: WorkerCounters,
    /// Statistics with labels made from configuration.
    pub stats: StatsRegistry,
    /// What the control thread reports about reloads and resources.
    pub control: ControlStats,
    /// Connections in plain text to a workload that takes the mesh's TLS as well.
    pub plaintext: PlaintextStats,
    /// How far sources are in effect.
    pub propagation: PropagationStats,
    workers: usize,
}

impl Telemetry {
    /// Zeroed cells for this many workers.
    pub fn new(workers: usize, build: BuildInfo) -> Arc<Self> {
        Arc::new(Self {
            counters: WorkerCounters::new(workers),
            stats: StatsRegistry::new(workers),
            control: ControlStats::new(build),
            plaintext: PlaintextStats::default(),
            propagation: PropagationStats::default(),
            workers,
        })
    }

    /// How many workers have cells of their own.
    pub fn workers(&self) -> usize {
        self.workers
    }
}
