//! What is counted of services that several Kubernetes clusters ("members") serve.
//!
//! Handles are made when configuration is compiled, one for each label set; their cells on the first count, since most
//! are never needed: few clusters fail. Each worker writes its own cell, as everywhere.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crossbeam_utils::CachePadded;

use super::cells::{WorkerId, bump, cell_index};
use super::routes::{CLASSES, class};

/// Why a request was sent again to the next tier of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReplayCause {
    /// No connection.
    Connect,
    /// The connection ended before there was a response.
    Reset,
    /// The response.
    Status,
    /// The try took too long.
    Timeout,
}

impl ReplayCause {
    /// All of them, in the order of their numbers.
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

/// Why another tier of clusters is in use than before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShiftReason {
    /// Outlier detection has taken out endpoints of the tier that was in use, and none is left.
    Ejected,
    /// None of its endpoints may be used for another reason.
    NoEndpoints,
    /// A tier before it has an endpoint again.
    Recovered,
    /// Endpoints of it fail their health checks, and none is left.
    Unhealthy,
}

impl ShiftReason {
    /// All of them, in the order of their numbers.
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

/// A cluster of a service, at the place that its policy gives it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MemberLabels {
    /// Host of the service.
    pub service: Arc<str>,
    /// Name of the cluster that the proxy is in.
    pub source: Arc<str>,
    /// Name of the cluster.
    pub member: Arc<str>,
    /// Its tier.
    pub tier: u8,
}

/// The way from a cluster that failed a request to one of a later tier.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReplayLabels {
    /// Host of the service.
    pub service: Arc<str>,
    /// Name of the cluster that failed it.
    pub from: Arc<str>,
    /// Name of the cluster that it went to.
    pub to: Arc<str>,
}

/// Attempts that were sent to a Kubernetes cluster, by class of the response status.
pub type MemberTally = Tally<MemberLabels, { CLASSES.len() }>;

impl MemberTally {
    /// Counts a try that got this status; 0 for none.
    pub fn tried(&self, worker: WorkerId, code: u16) {
        self.count(worker, class(code));
    }
}

/// Requests that were sent again to a later tier, by [`ReplayCause`].
pub type ReplayTally = Tally<ReplayLabels, { ReplayCause::ALL.len() }>;

/// Changes of the tier in use of a service, by [`ShiftReason`].
pub type ShiftTally = Tally<Arc<str>, { ShiftReason::ALL.len() }>;

/// Counters of one label set that differ in one label of `N` values.
#[derive(Debug)]
pub struct Tally<L, const N: usize> {
    labels: L,
    workers: usize,
    cells: OnceLock<Box<[CachePadded<[AtomicU64; N]>]>>,
}

impl<L, const N: usize> Tally<L, N> {
    /// At zero, for this many workers.
    pub(super) fn new(labels: L, workers: usize) -> Self {
        Self {
            labels,
            workers,
            cells: OnceLock::new(),
        }
    }

    /// The labels that all its counters have.
    pub fn labels(&self) -> &L {
        &self.labels
    }

    /// Counts one for the value with this number.
    #[inline]
    pub fn count(&self, worker: WorkerId, value: usize) {
        let zeroes = || CachePadded::new([const { AtomicU64::new(0) }; N]);
        let make = || (0..=self.workers).map(|_| zeroes()).collect();
        let cells: &[_] = self.cells.get_or_init(make);
        let (index, writers) = cell_index(worker, cells.len());
        bump(&cells[index][value], 1, writers);
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

    /// Whether anything was ever counted.
    pub(super) fn is_used(&self) -> bool {
        self.cells.get().is_some()
    }
}

/// How a cluster stands in a service, read when metrics are scraped.
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
    /// Its part of the traffic, 0 to 1.
    pub share: f64,
    /// Endpoints that may be used.
    pub available: usize,
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
