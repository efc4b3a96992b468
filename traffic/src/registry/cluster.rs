//! Runtime state of one cluster, shared by workers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use crossbeam_utils::CachePadded;

use super::{AffinityTable, Connections, EventCounts, Journal, Recent, Tally};

/// Number of a cluster name, stable while any snapshot uses it: route tables hold this number, so that a change of
/// endpoints leaves them unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterId(pub u32);

/// Position of a rotation that all workers share.
#[derive(Debug, Default)]
pub struct Cursor(CachePadded<AtomicU64>);

impl Cursor {
    /// Starts at this turn.
    pub fn starting_at(turn: u32) -> Self {
        // 64 bits never wrap around in practice, which would cut a rotation short
        Self(CachePadded::new(AtomicU64::new(turn.into())))
    }

    /// Returns the current turn and moves on; wraps around after 2^64.
    #[inline]
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Number of rotations of one cluster that have their own cursor.
pub const CURSORS: usize = 4;

/// Number of times that any cluster became available or unavailable. While it is unchanged, the known availability of
/// clusters is right.
#[derive(Debug, Default)]
pub struct AvailabilityChanges(CachePadded<AtomicU64>);

impl AvailabilityChanges {
    /// Counts a change, after the change itself is visible to other threads.
    pub fn increment(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    /// Number of changes so far. The calling thread sees the effect of each counted change.
    #[inline]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// State for the ejections of one cluster. The lock is taken for an endpoint that has failed often enough, and by
/// sweeps; never by a successful request.
#[derive(Debug, Default)]
pub struct Ejections {
    deciding: Mutex<()>,
    /// Whether the tables that the cluster's picks use are out of date.
    pub stale: AtomicBool,
    /// Whether an ejection overflow was reported since the last sweep.
    pub overflow_reported: AtomicBool,
}

/// The lock for decisions about ejections in one cluster, held one at a time, so that the limit is exact.
#[derive(Debug)]
pub struct EjectionLock<'a>(#[expect(dead_code, reason = "held, not read")] MutexGuard<'a, ()>);

impl Ejections {
    /// Waits for the lock.
    pub fn lock(&self) -> EjectionLock<'_> {
        let deciding = self.deciding.lock();
        EjectionLock(deciding.unwrap_or_else(PoisonError::into_inner))
    }
}

/// Runtime state of one cluster, shared by workers.
#[derive(Debug)]
pub struct ClusterState {
    /// Number by which snapshots find the cluster.
    pub id: ClusterId,
    /// Name of the cluster.
    pub name: Arc<str>,
    /// Cursors of the cluster's rotations; additional groups of endpoints share them.
    pub cursors: [Cursor; CURSORS],
    /// Outlier detection state.
    pub ejections: Ejections,
    /// Journal for the events of endpoints.
    pub journal: Arc<Journal>,
    /// Counter for changes of the cluster's availability.
    pub flips: Arc<AvailabilityChanges>,
    /// Whether a request has used the cluster's hash tables; if so, they are built as soon as the cluster changes.
    pub hash_tables_used: AtomicBool,
    /// Retries in flight.
    pub retries: Tally,
    /// Attempts that began recently; `None` unless a retry limit needs them.
    recent: ArcSwapOption<Recent>,
    /// Session affinity entries; `None` until the first use.
    affinity_table: ArcSwapOption<AffinityTable>,
    /// Requests in flight, counted only with a limit.
    pub requests: Tally,
    /// Requests that wait for a connection or a stream, counted only with a limit.
    pub pending: Tally,
    /// Open connections, and the queue for them.
    pub connections: Connections,
    /// Counts of failures, handshakes and retries.
    pub events: EventCounts,
}

impl ClusterState {
    pub(super) fn new(
        id: ClusterId,
        name: Arc<str>,
        journal: Arc<Journal>,
        flips: Arc<AvailabilityChanges>,
    ) -> Self {
        Self {
            id,
            name,
            cursors: Default::default(),
            ejections: Ejections::default(),
            journal,
            flips,
            hash_tables_used: AtomicBool::new(false),
            retries: Tally::default(),
            recent: ArcSwapOption::empty(),
            affinity_table: ArcSwapOption::empty(),
            requests: Tally::default(),
            pending: Tally::default(),
            connections: Connections::default(),
            events: EventCounts::default(),
        }
    }

    /// The counter of attempts for this interval. Discards the counter of another interval.
    pub fn recent(&self, interval: Duration) -> Arc<Recent> {
        let kept = self.recent.load_full();
        kept.filter(|recent| recent.interval() == interval)
            .unwrap_or_else(|| {
                let recent = Arc::new(Recent::new(interval));
                self.recent.store(Some(Arc::clone(&recent)));
                recent
            })
    }

    /// The session affinity entries, kept from the first use until no user is left.
    pub fn affinity_table(&self) -> Arc<AffinityTable> {
        self.affinity_table.load_full().unwrap_or_else(|| {
            let affinity_table = Arc::<AffinityTable>::default();
            self.affinity_table.store(Some(Arc::clone(&affinity_table)));
            affinity_table
        })
    }

    /// Drops the affinity entries if no snapshot uses them any more.
    pub(super) fn sweep(&self) {
        let is_alone = |affinity_table: &Arc<AffinityTable>| Arc::strong_count(affinity_table) == 1;
        if self.affinity_table.load().as_ref().is_some_and(is_alone) {
            self.affinity_table.store(None);
        }
    }
}
