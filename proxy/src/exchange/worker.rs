//! What one worker thread owns and lends to every exchange on it.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use arc_swap::Cache;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::body::feed::Mirroring;
use super::body::replay::ReplayBudget;
use super::select::dialed::DialedEndpoints;
use super::select::pending::PendingConnects;
use super::select::proxied::{Names, ResolveName};
use super::settings::ExchangeSettings;
use crate::pool::Pools;
use crate::registry::Registry;
use crate::snapshot::{Snapshot, SnapshotSlot};
use crate::telemetry::{AccessLogger, Counter, Gauge, RequestStats, Telemetry, WorkerId};
use crate::upstream::{Buffers, Counts};

/// What a worker is made from; can be sent to its thread.
pub struct WorkerParts {
    /// Number of the worker.
    pub id: WorkerId,
    /// The published snapshot.
    pub snapshot: SnapshotSlot,
    /// Counters of all workers.
    pub telemetry: Arc<Telemetry>,
    /// Statistics of requests that no route took.
    pub unrouted: Arc<RequestStats>,
    /// Where log lines go.
    pub access_log: AccessLogger,
    /// State of endpoints.
    pub registry: Arc<Registry>,
    /// Settings of the request path.
    pub settings: ExchangeSettings,
    /// How names are resolved that clients of the HTTP proxy name and no resource has; none for not at all.
    pub resolve: Option<ResolveName>,
    /// Addresses of the admin server and the health pages, which clients of the HTTP proxy do not reach.
    pub private: Arc<[SocketAddr]>,
    /// Seed of the worker's random numbers.
    pub seed: u64,
}

/// What one worker thread owns and lends to every exchange on it.
pub struct Worker {
    /// Number of the worker.
    pub id: WorkerId,
    /// Upstream connections.
    pub pools: Pools,
    /// Counters of all workers.
    pub telemetry: Arc<Telemetry>,
    /// Statistics of requests that no route took.
    pub unrouted: Arc<RequestStats>,
    /// Where log lines go.
    pub access_log: AccessLogger,
    /// Settings of the request path.
    pub settings: ExchangeSettings,
    /// Memory for the heads of requests that may have to be sent again.
    pub buffers: Rc<Buffers>,
    /// Requests that faults hold back right now.
    pub delayed: Cell<u32>,
    /// Memory for bodies of requests that may have to be sent again.
    pub replay: Rc<ReplayBudget>,
    /// What copies of requests take.
    pub mirroring: Rc<Mirroring>,
    /// Connects that are pending.
    pub connects: PendingConnects,
    /// Addresses that clients dialed, as endpoints.
    pub(super) dialed: DialedEndpoints,
    /// Names that clients of the HTTP proxy named, with their addresses.
    pub(super) names: Names,
    /// When an unknown name was logged last.
    pub(super) told_unknown: Cell<Option<tokio::time::Instant>>,
    snapshot: RefCell<Cached>,
    rng: RefCell<SmallRng>,
}

/// The worker's view of the published snapshot: an `Rc` of the `Arc`, so that a request's hold on it touches no
/// counter that other workers touch.
struct Cached {
    cache: Cache<SnapshotSlot, Arc<Snapshot>>,
    current: SnapshotRef,
}

/// A worker-local hold on a snapshot.
pub type SnapshotRef = Rc<Arc<Snapshot>>;

impl Worker {
    /// Takes the parts into use on the current thread.
    pub fn new(parts: WorkerParts) -> Self {
        let mut cache = Cache::new(parts.snapshot);
        let current = Rc::new(Arc::clone(cache.load()));
        let settings = &parts.settings;
        let replay = ReplayBudget::new(
            settings.retry_body_bytes_per_worker,
            settings.retry_body_bytes,
        );
        Self {
            id: parts.id,
            pools: Pools::new(Counts::new(Arc::clone(&parts.telemetry), parts.id)),
            telemetry: parts.telemetry,
            unrouted: parts.unrouted,
            access_log: parts.access_log,
            settings: parts.settings,
            buffers: Rc::default(),
            delayed: Cell::new(0),
            replay,
            mirroring: Rc::default(),
            connects: PendingConnects::default(),
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

    /// The snapshot in effect. A request keeps the rules of the one that it began with; each attempt takes its endpoints
    /// from the newest.
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
