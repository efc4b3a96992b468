//! State of one worker thread that its exchanges use.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use arc_swap::Cache;
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
use crate::snapshot::{Snapshot, SnapshotSlot};
use crate::telemetry::{AccessLogger, Counter, Gauge, RequestStats, TagTable, Telemetry, WorkerId};
use crate::upstream::{Buffers, Counts};
use traffic::registry::Registry;

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
    /// State of endpoints.
    pub registry: Arc<Registry>,
    /// Settings of the request path.
    pub settings: ExchangeSettings,
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
    /// Settings of the request path.
    pub settings: ExchangeSettings,
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
    snapshot: RefCell<Cached>,
    rng: RefCell<SmallRng>,
}

/// The worker's view of the published snapshot: an `Rc` of the `Arc`, so that holding it for a request touches no
/// reference count that other workers share.
struct Cached {
    cache: Cache<SnapshotSlot, Arc<Snapshot>>,
    current: SnapshotRef,
}

/// A worker-local reference to a snapshot.
pub type SnapshotRef = Rc<Arc<Snapshot>>;

impl Worker {
    /// Creates the worker on the current thread.
    pub fn new(parts: WorkerParts) -> Self {
        let mut cache = Cache::new(parts.snapshot);
        let current = Rc::new(Arc::clone(cache.load()));
        let settings = &parts.settings;
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
            settings: parts.settings,
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
            snapshot: RefCell::new(Cached { cache, current }),
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
        let cached = &mut *self.snapshot.borrow_mut();
        let latest = cached.cache.load();
        if !Arc::ptr_eq(latest, &cached.current) {
            cached.current = Rc::new(Arc::clone(latest));
        }
        Rc::clone(&cached.current)
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
