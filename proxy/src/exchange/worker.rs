//! State of one worker thread that its exchanges use.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use tokio::sync::Notify;

use super::body::feed::Mirroring;
use super::body::held::HeldBytes;
use super::body::replay::ReplayBudget;
use super::select::dialed::DialedEndpoints;
use super::select::pending::PendingConnects;
use super::select::proxied::{Names, ResolveName};
use super::settings::ExchangeSettings;
use super::token_cache::TokenCache;
use super::trace_parts::TraceParts;
use crate::pool::Pools;
use crate::runtime::latest::{Latest, LatestRef, Slot};
use crate::snapshot::{Snapshot, SnapshotSlot};
use crate::telemetry::{
    AccessLogger, Counter, Gauge, OpenTaps, RequestStats, TagTable, Taps, Telemetry, WorkerId,
};
use crate::upstream::{Buffers, Counts};
use traffic::registry::Registry;
use traffic::trace::TracingSettings;

/// Parts to create a worker from; can be sent to its thread.
pub struct WorkerParts {
    /// Number of the worker.
    pub id: WorkerId,
    /// Slot of the published snapshot.
    pub snapshot: SnapshotSlot,
    /// Counters of all workers.
    pub telemetry: Arc<Telemetry>,
    /// Metrics of requests without a route.
    pub unrouted: Arc<RequestStats>,
    /// Access log.
    pub access_log: AccessLogger,
    /// Parts of tracing.
    pub traces: TraceParts,
    /// Readers of finished requests.
    pub taps: Taps,
    /// State of endpoints.
    pub registry: Arc<Registry>,
    /// Slot of the settings of the request path.
    pub settings: Slot<ExchangeSettings>,
    /// Resolver for hosts that clients of the HTTP proxy name and no resource has; `None` to resolve none.
    pub resolve: Option<ResolveName>,
    /// Addresses of the admin server and the health pages, which clients of the HTTP proxy must not reach.
    pub private: Arc<[SocketAddr]>,
    /// Seed of the worker's random numbers.
    pub seed: u64,
}

/// State of one worker thread that its exchanges use.
pub struct Worker {
    /// Number of the worker.
    pub id: WorkerId,
    /// Upstream connections.
    pub pools: Pools,
    /// Counters of all workers.
    pub telemetry: Arc<Telemetry>,
    /// Metrics of requests without a route.
    pub unrouted: Arc<RequestStats>,
    /// Access log.
    pub access_log: AccessLogger,
    /// Parts of tracing.
    pub traces: TraceParts,
    /// Host name of the machine.
    pub hostname: Arc<str>,
    /// Environment of the process at its start.
    pub environment: Arc<BTreeMap<String, String>>,
    /// Memory for saved heads.
    pub buffers: Rc<Buffers>,
    /// Number of requests that a fault delays now.
    pub delayed: Cell<u32>,
    /// Memory for bodies of requests that may be sent again.
    pub replay: Rc<ReplayBudget>,
    /// Memory of mirrored copies.
    pub mirroring: Rc<Mirroring>,
    /// Metrics with values of requests as labels.
    pub(super) tags: RefCell<TagTable>,
    /// Verified tokens.
    pub(super) tokens: RefCell<TokenCache>,
    /// Pending connects.
    pub connects: PendingConnects,
    /// Notified when other policies apply, if connections are judged again.
    pub policies_changed: Notify,
    /// Number of decisions of policies, of which some are timed.
    pub(super) decisions: Cell<u64>,
    /// Endpoints at addresses that clients dialed.
    pub(super) dialed: DialedEndpoints,
    /// Addresses of hosts that clients of the HTTP proxy named.
    pub(super) names: Names,
    /// Time of the last log line about an unknown name.
    pub(super) told_unknown: Cell<Option<tokio::time::Instant>>,
    /// Settings for what taps show of requests that are not traced.
    pub(super) untraced: Arc<TracingSettings>,
    snapshot: Latest<Snapshot>,
    settings: Latest<ExchangeSettings>,
    taps: Latest<OpenTaps>,
    rng: RefCell<SmallRng>,
}

/// A worker-local reference to a snapshot.
pub type SnapshotRef = LatestRef<Snapshot>;

impl Worker {
    /// Creates the worker on the current thread.
    pub fn new(parts: WorkerParts) -> Self {
        let settings = parts.settings.load();
        let held = |gauge| HeldBytes::shown(&parts.telemetry, parts.id, gauge);
        let mirroring = Mirroring {
            bytes: held(Gauge::BufferedForMirrors),
            ..Mirroring::default()
        };
        let replay = ReplayBudget::new(
            held(Gauge::BufferedForRetries),
            settings.retry_body_bytes_per_worker,
            settings.retry_body_bytes,
        );
        let guard = Arc::clone(&parts.telemetry.tags);
        let tags = TagTable::new(guard, parts.id, settings.metric_series_max);
        Self {
            id: parts.id,
            pools: Pools::new(Counts::new(Arc::clone(&parts.telemetry), parts.id)),
            telemetry: parts.telemetry,
            unrouted: parts.unrouted,
            access_log: parts.access_log,
            traces: parts.traces,
            hostname: Arc::clone(&settings.hostname),
            environment: Arc::clone(&settings.environment),
            buffers: Rc::default(),
            delayed: Cell::new(0),
            replay,
            mirroring: Rc::new(mirroring),
            tags: RefCell::new(tags),
            tokens: RefCell::default(),
            connects: PendingConnects::default(),
            policies_changed: Notify::new(),
            decisions: Cell::default(),
            dialed: DialedEndpoints::new(parts.registry),
            names: Names::new(parts.resolve, parts.private),
            told_unknown: Cell::default(),
            untraced: Arc::default(),
            snapshot: Latest::of(parts.snapshot),
            settings: Latest::of(parts.settings),
            taps: Latest::of(Arc::clone(parts.taps.open_taps())),
            rng: RefCell::new(SmallRng::seed_from_u64(parts.seed)),
        }
    }

    /// The worker's random numbers.
    pub fn rng(&self) -> &RefCell<SmallRng> {
        &self.rng
    }

    /// The current snapshot. A request keeps the rules of the snapshot that it began with; each attempt picks its
    /// endpoint from the newest.
    pub fn snapshot(&self) -> SnapshotRef {
        self.snapshot.get()
    }

    /// The current settings of the request path.
    pub fn settings(&self) -> LatestRef<ExchangeSettings> {
        self.settings.get()
    }

    /// The open taps; `None` if there are none, which costs one relaxed load.
    pub fn taps(&self) -> Option<LatestRef<OpenTaps>> {
        let is_open = self.taps.read(|taps| !taps.is_empty());
        is_open.then(|| self.taps.get())
    }

    /// Reads the current settings of the request path, without holding them.
    pub fn setting<R>(&self, read: impl FnOnce(&ExchangeSettings) -> R) -> R {
        self.settings.read(read)
    }

    /// Adds one to a counter.
    pub fn count(&self, counter: Counter) {
        self.telemetry.counters.increment(self.id, counter);
    }

    /// Raises a gauge by one.
    pub fn raise(&self, gauge: Gauge) {
        self.telemetry.counters.raise(self.id, gauge);
    }

    /// Lowers a gauge by one.
    pub fn lower(&self, gauge: Gauge) {
        self.telemetry.counters.lower(self.id, gauge);
    }

    /// Calls `draw` with the worker's random numbers.
    pub fn random<T>(&self, draw: impl FnOnce(&mut SmallRng) -> T) -> T {
        draw(&mut self.rng.borrow_mut())
    }
}
