//! What workers share about one cluster.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use crossbeam_utils::CachePadded;

use super::{AffinityTable, Connections, Journal, Recent, Tally};

/// Number of a cluster name, stable while any snapshot names it: route tables hold this number, so that a change
/// of endpoints leaves them untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterId(pub u32);

/// Whose turn it is in a rotation that all workers share.
#[derive(Debug, Default)]
pub struct Cursor(CachePadded<AtomicU64>);

impl Cursor {
    /// Begins with this turn.
    pub fn starting_at(turn: u32) -> Self {
        // so many turns are left that it never wraps around where that would cut a rotation short
        Self(CachePadded::new(AtomicU64::new(turn.into())))
    }

    /// Takes the next turn; wraps around after 2^64.
    #[inline]
    pub fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// Rotations of one cluster that have a turn of their own.
pub const CURSORS: usize = 4;

/// How often a cluster began or ceased to have an endpoint that may be used, over all clusters: while it stands still,
/// what was found out about them holds.
#[derive(Debug, Default)]
pub struct Flips(CachePadded<AtomicU64>);

impl Flips {
    /// Notes one, after what it is about can be seen.
    pub fn note(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    /// How many there were; what they were about can be seen.
    #[inline]
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// What decides about ejections in one cluster. The lock is taken when an endpoint has failed often enough, and by
/// sweeps; never by a request that goes well.
#[derive(Debug, Default)]
pub struct Ejections {
    deciding: Mutex<()>,
    /// Whether something happened that the tables do not show yet.
    pub stale: AtomicBool,
    /// Whether an ejection overflow was reported since the last sweep.
    pub spared: AtomicBool,
}

/// The turn to decide about the ejections of one cluster: one decision at a time, so that the limit holds exactly.
#[derive(Debug)]
pub struct EjectionTurn<'a>(#[expect(dead_code, reason = "held, not read")] MutexGuard<'a, ()>);

impl Ejections {
    /// Waits for the turn to decide.
    pub fn turn(&self) -> EjectionTurn<'_> {
        let deciding = self.deciding.lock();
        EjectionTurn(deciding.unwrap_or_else(PoisonError::into_inner))
    }
}

/// What workers share about one cluster.
#[derive(Debug)]
pub struct ClusterState {
    /// The number under which snapshots hold this cluster.
    pub id: ClusterId,
    /// Name of the cluster.
    pub name: Arc<str>,
    /// Turns of the cluster's rotations; groups of endpoints beyond these share them.
    pub cursors: [Cursor; CURSORS],
    /// Endpoints that are ejected, and how the tables are to be rebuilt.
    pub ejections: Ejections,
    /// Where events are noted.
    pub journal: Arc<Journal>,
    /// Where it is noted that the cluster begins or ceases to have an endpoint that may be used.
    pub flips: Arc<Flips>,
    /// Whether a request has picked from the cluster's hash tables; then they are built as soon as the cluster changes.
    pub hash_tables_used: AtomicBool,
    /// Requests that are being tried again.
    pub retries: Tally,
    /// Attempts that began recently, where a retry limit needs them.
    recent: ArcSwapOption<Recent>,
    /// Where its clients stay, if they do.
    affinity_table: ArcSwapOption<AffinityTable>,
    /// Requests in flight, where their number has a limit.
    pub requests: Tally,
    /// Requests that wait for a connection or a stream, where their number has a limit.
    pub pending: Tally,
    /// Open connections, and the requests that wait for one.
    pub connections: Connections,
}

impl ClusterState {
    pub(super) fn new(
        id: ClusterId,
        name: Arc<str>,
        journal: Arc<Journal>,
        flips: Arc<Flips>,
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
        }
    }

    /// The counter of attempts for this interval. Counts for another interval are dropped.
    pub fn recent(&self, interval: Duration) -> Arc<Recent> {
        let kept = self.recent.load_full();
        kept.filter(|recent| recent.interval() == interval)
            .unwrap_or_else(|| {
                let recent = Arc::new(Recent::new(interval));
                self.recent.store(Some(Arc::clone(&recent)));
                recent
            })
    }

    /// Its session affinity entries, kept from the first use until the last user is gone.
    pub fn affinity_table(&self) -> Arc<AffinityTable> {
        self.affinity_table.load_full().unwrap_or_else(|| {
            let affinity_table = Arc::<AffinityTable>::default();
            self.affinity_table.store(Some(Arc::clone(&affinity_table)));
            affinity_table
        })
    }

    /// Forgets where clients stay, if no snapshot holds that any more.
    pub(super) fn sweep(&self) {
        let is_alone = |affinity_table: &Arc<AffinityTable>| Arc::strong_count(affinity_table) == 1;
        if self.affinity_table.load().as_ref().is_some_and(is_alone) {
            self.affinity_table.store(None);
        }
    }
}
