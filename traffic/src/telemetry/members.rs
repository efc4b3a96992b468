//! Metrics of services that several Kubernetes clusters ("members") serve.
//!
//! Handles are made when configuration is compiled, one for each label set; their cells are allocated by the first
//! count, since most are never needed: few clusters fail. Each worker writes its own cell.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crossbeam_utils::CachePadded;

use super::cells::{WorkerId, bump, cell_index};
use super::names::Counter;
use super::routes::{CLASSES, class};

/// Reason for a failover replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReplayCause {
    /// The connection failed.
    Connect,
    /// The connection ended before a response.
    Reset,
    /// Status of the response.
    Status,
    /// The attempt timed out.
    Timeout,
}

impl ReplayCause {
    /// All causes, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::Connect, Self::Reset, Self::Status, Self::Timeout];

    /// The value of the label `reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect_failure",
            Self::Reset => "reset",
            Self::Status => "status",
            Self::Timeout => "per_try_timeout",
        }
    }
}

/// Reason for a change of the tier in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShiftReason {
    /// No endpoint of the previous tier is usable, because of ejections.
    Ejected,
    /// No endpoint of the previous tier is usable, for another reason.
    NoEndpoints,
    /// An earlier tier has a usable endpoint again.
    Recovered,
    /// No endpoint of the previous tier is usable, because of failed health checks.
    Unhealthy,
}

impl ShiftReason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 4] = [
        Self::Ejected,
        Self::NoEndpoints,
        Self::Recovered,
        Self::Unhealthy,
    ];

    /// The value of the label `reason`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ejected => "ejected",
            Self::NoEndpoints => "no_endpoints",
            Self::Recovered => "recovered",
            Self::Unhealthy => "unhealthy",
        }
    }
}

/// Labels of a cluster in a service.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemberLabels {
    /// Host of the service.
    pub service: Arc<str>,
    /// Name of the local cluster.
    pub source: Arc<str>,
    /// Name of the cluster.
    pub member: Arc<str>,
    /// Tier of the cluster in the policy.
    pub tier: u8,
}

/// Labels of a failover replay from one cluster to another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReplayLabels {
    /// Host of the service.
    pub service: Arc<str>,
    /// Name of the cluster that failed the request.
    pub from: Arc<str>,
    /// Name of the cluster that the request was sent to next.
    pub to: Arc<str>,
}

/// Attempts that were sent to a Kubernetes cluster, by class of the response status.
pub type MemberTally = Tally<MemberLabels, { CLASSES.len() }>;

impl MemberTally {
    /// Counts an attempt with this status; 0 for no response.
    pub fn tried(&self, worker: WorkerId, code: u16) {
        self.count(worker, class(code));
    }
}

/// Failover replays, by [`ReplayCause`].
pub type ReplayTally = Tally<ReplayLabels, { ReplayCause::ALL.len() }>;

/// Changes of the tier in use of a service, by [`ShiftReason`].
pub type ShiftTally = Tally<Arc<str>, { ShiftReason::ALL.len() }>;

/// Counters that share all labels but one, which has `N` values.
#[derive(Debug)]
pub struct Tally<L, const N: usize> {
    labels: L,
    workers: usize,
    cells: OnceLock<Box<[CachePadded<[AtomicU64; N]>]>>,
}

impl<L, const N: usize> Tally<L, N> {
    /// Creates counters at zero for this number of workers.
    pub fn new(labels: L, workers: usize) -> Self {
        Self {
            labels,
            workers,
            cells: OnceLock::new(),
        }
    }

    /// The labels that all of the counters share.
    pub fn labels(&self) -> &L {
        &self.labels
    }

    /// Adds one to the counter with this number.
    #[inline]
    pub fn count(&self, worker: WorkerId, value: usize) {
        self.add(worker, value, 1);
    }

    /// Adds to the counter with this number.
    #[inline]
    pub fn add(&self, worker: WorkerId, value: usize, count: u64) {
        let zeroes = || CachePadded::new([const { AtomicU64::new(0) }; N]);
        let make = || (0..=self.workers).map(|_| zeroes()).collect();
        let cells: &[_] = self.cells.get_or_init(make);
        let (index, writers) = cell_index(worker, cells.len());
        bump(&cells[index][value], count, writers);
    }

    /// The counts so far, over all workers.
    pub fn totals(&self) -> [u64; N] {
        let cells = self.cells.get().map_or(&[][..], |cells| cells);
        std::array::from_fn(|value| {
            let of_workers = cells.iter();
            of_workers
                .map(|cell| cell[value].load(Ordering::Relaxed))
                .sum()
        })
    }

    /// Whether any count was made.
    pub fn is_used(&self) -> bool {
        self.cells.get().is_some()
    }
}

/// State of a cluster in a service, read for each scrape.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberState {
    /// Host of the service.
    pub service: Arc<str>,
    /// Port of the service.
    pub port: String,
    /// Subset of the destination; empty for all.
    pub subset: String,
    /// Name of the cluster.
    pub member: String,
    /// Share of the traffic, 0 to 1.
    pub share: f64,
    /// Number of usable endpoints.
    pub available: usize,
}

/// Maximum number of endpoints of a destination that are named because they are not available.
pub const UNAVAILABLE_MAX: usize = 20;

/// State of a destination, read for each scrape.
#[derive(Clone, Debug, PartialEq)]
pub struct DestinationState {
    /// Host of the service.
    pub service: Arc<str>,
    /// Port of the service.
    pub port: String,
    /// Subset of the destination; empty for all.
    pub subset: String,
    /// Number of available endpoints.
    pub available: usize,
    /// Number of ejected endpoints.
    pub ejected: usize,
    /// Number of endpoints that fail their health checks, or wait for the first.
    pub unhealthy: usize,
    /// Number of endpoints that have left the destination and still have requests.
    pub draining: usize,
    /// Addresses of endpoints that are ejected (`true`) or unhealthy, at most [`UNAVAILABLE_MAX`].
    pub unavailable: Vec<(String, bool)>,
    /// Limits with their current values.
    pub limits: Vec<LimitState>,
    /// Failures, handshakes and retries that have occurred.
    pub events: Vec<(Counter, u64)>,
}

/// Limit and its current value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitState {
    /// Name of the limit.
    pub name: String,
    /// Current value, over all workers.
    pub in_use: u64,
    /// The limit; `None` for none.
    pub limit: Option<u32>,
}

/// State of destinations, and of the clusters of services with several.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceStates {
    /// Destinations that have had a request.
    pub destinations: Vec<DestinationState>,
    /// Clusters of services with several.
    pub members: Vec<MemberState>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_summed_over_workers_by_value() {
        let tally: ShiftTally = Tally::new("web".into(), 2);
        assert!(!tally.is_used());
        assert_eq!(tally.totals(), [0; 4]);
        for worker in [0, 1, 1, u16::MAX] {
            tally.count(WorkerId(worker), ShiftReason::Recovered as usize);
        }
        tally.count(WorkerId(0), ShiftReason::Ejected as usize);
        assert_eq!(tally.totals(), [1, 0, 4, 0]);
        assert!(tally.is_used());
    }

    #[test]
    fn value_numbers_equal_their_positions() {
        for (number, cause) in ReplayCause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, number);
        }
        for (number, reason) in ShiftReason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, number);
        }
    }
}
