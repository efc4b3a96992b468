//! Cells of metrics, and response flags.
//!
//! A request writes cells of its own worker; it takes no lock and looks up no label.

pub mod cells;
pub mod connections;
pub mod control;
pub mod credentials;
pub mod exemplars;
pub mod flags;
pub mod guard;
pub mod histogram;
pub mod labels;
pub mod members;
pub mod names;
pub mod phases;
pub mod plaintext;
pub mod policies;
pub mod propagation;
pub mod requests;
pub mod routes;
pub mod rule_requests;
pub mod rules;
pub mod stats_registry;
pub mod tags;
pub mod tcp;
pub mod workers;

use std::sync::Arc;
use std::time::Duration;

pub use cells::{WorkerCounters, WorkerId};
pub use connections::{CloseReason, ConnectionProtocol, ConnectionTotals, ListenerStats};
pub use control::{BuildInfo, CertificateState, ControlStats, IdentityState, Reload};
pub use exemplars::{Exemplar, TracedRequest};
pub use flags::{ResponseFlags, UnknownFlag};
pub use guard::{TagGuard, TagTable};
pub use histogram::{BUCKET_BOUNDS, DurationBounds};
pub use labels::{Reporter, RequestLabels, Service, UNKNOWN, Workload};
pub use members::{
    DestinationState, LimitState, MemberLabels, MemberState, MemberTally, ReplayCause,
    ReplayLabels, ReplayTally, ServiceStates, ShiftReason, ShiftTally, Tally, UNAVAILABLE_MAX,
};
pub use names::{Counter, Gauge};
pub use phases::UpstreamPhase;
pub use plaintext::{PlaintextCount, PlaintextStats, SourceWorkload};
pub use policies::{Decided, DecisionTally, EvaluationTally, PolicyLabels, PolicyTally, Stage};
use propagation::Polled;
pub use propagation::{AppliedSource, ErrorCount, PropagationStats};
pub use requests::{RequestProtocol, RequestRecord, RequestStats, Security, VARIANTS_MAX};
pub use routes::RouteStats;
pub use rule_requests::RuleStats;
pub use rules::{FamilyRule, MetricRules, TagText};
pub use stats_registry::{RETENTION, StatsRegistry};
pub use tags::{TagNames, TagValues};
pub use tcp::{TcpStats, TcpTotals};
use workers::{DelayTally, SessionTally};

/// Sampling decisions of traces: by their origin, for each those against and those for it.
pub type TraceTally = Tally<(), 18>;

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
    /// Values of requests as labels.
    pub tags: Arc<TagGuard>,
    /// Decisions of authorization.
    pub decisions: DecisionTally,
    /// Times of sampled decisions.
    pub evaluations: EvaluationTally,
    /// Sampling decisions.
    pub traces: TraceTally,
    /// Applied state of configuration sources.
    pub propagation: Arc<PropagationStats>,
    /// TLS sessions with clients.
    pub sessions: SessionTally,
    /// Delays of the timers of workers.
    pub delays: DelayTally,
    /// Time that each worker was busy, as its runtime tells.
    pub busy: Box<[Polled<Duration>]>,
    workers: usize,
}

impl Telemetry {
    /// Creates zeroed cells for this number of workers.
    pub fn new(workers: usize, build: BuildInfo) -> Arc<Self> {
        Self::with(workers, build, Arc::default(), Arc::default())
    }

    /// Creates zeroed cells for this number of workers, beside statistics of sources, with these buckets of durations.
    pub fn with(
        workers: usize,
        build: BuildInfo,
        propagation: Arc<PropagationStats>,
        bounds: Arc<DurationBounds>,
    ) -> Arc<Self> {
        Arc::new(Self {
            counters: WorkerCounters::new(workers),
            stats: StatsRegistry::new(workers).with_bounds(bounds),
            control: ControlStats::new(build),
            plaintext: PlaintextStats::default(),
            tags: Arc::new(TagGuard::new(workers)),
            decisions: DecisionTally::new((), workers),
            evaluations: EvaluationTally::new((), workers),
            traces: TraceTally::new((), workers),
            propagation,
            sessions: SessionTally::new((), workers),
            delays: DelayTally::new((), workers),
            busy: (0..workers).map(|_| Polled::default()).collect(),
            workers,
        })
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.workers
    }
}
