//! Cells of metrics, and response flags.
//!
//! A request writes cells of its own worker; it takes no lock and looks up no label.

pub mod cells;
pub mod connections;
pub mod control;
pub mod flags;
pub mod histogram;
pub mod labels;
pub mod members;
pub mod names;
pub mod plaintext;
pub mod policies;
pub mod propagation;
pub mod requests;
pub mod routes;
pub mod stats_registry;
pub mod tcp;

use std::sync::Arc;

pub use cells::{WorkerCounters, WorkerId};
pub use connections::{ConnectionProtocol, ConnectionTotals, ListenerStats};
pub use control::{BuildInfo, CertificateState, ControlStats, Reload};
pub use flags::{ResponseFlags, UnknownFlag};
pub use histogram::BUCKET_BOUNDS;
pub use labels::{Reporter, RequestLabels, Service, UNKNOWN, Workload};
pub use members::{
    MemberLabels, MemberState, MemberTally, ReplayCause, ReplayLabels, ReplayTally, ShiftReason,
    ShiftTally, Tally,
};
pub use names::{Counter, Gauge};
pub use plaintext::{PlaintextCount, PlaintextStats, SourceWorkload};
pub use policies::{Decided, DecisionTally, EvaluationTally, PolicyLabels, PolicyTally, Stage};
pub use propagation::{AppliedSource, ErrorCount, PropagationStats};
pub use requests::{RequestProtocol, RequestRecord, RequestStats, Security, VARIANTS_MAX};
pub use routes::RouteStats;
pub use stats_registry::{RETENTION, StatsRegistry};
pub use tcp::{TcpStats, TcpTotals};

/// All metrics of the process, shared by workers and the control thread.
#[derive(Debug)]
pub struct Telemetry {
    /// Counters and gauges of workers.
    pub counters: WorkerCounters,
    /// Metrics whose labels come from configuration.
    pub stats: StatsRegistry,
    /// Reloads and resources, as reported by the control thread.
    pub control: ControlStats,
    /// Plain-text connections to workloads that also accept mutual TLS of the mesh.
    pub plaintext: PlaintextStats,
    /// Decisions of authorization.
    pub decisions: DecisionTally,
    /// Times of sampled decisions.
    pub evaluations: EvaluationTally,
    /// Applied state of configuration sources.
    pub propagation: PropagationStats,
    workers: usize,
}

impl Telemetry {
    /// Creates zeroed cells for this number of workers.
    pub fn new(workers: usize, build: BuildInfo) -> Arc<Self> {
        Arc::new(Self {
            counters: WorkerCounters::new(workers),
            stats: StatsRegistry::new(workers),
            control: ControlStats::new(build),
            plaintext: PlaintextStats::default(),
            decisions: DecisionTally::new((), workers),
            evaluations: EvaluationTally::new((), workers),
            propagation: PropagationStats::default(),
            workers,
        })
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.workers
    }
}
