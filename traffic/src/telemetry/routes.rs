//! Requests of rules with a `statPrefix`, by status class.
//!
//! Each worker writes its own cells. Rules without a `statPrefix` count nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use super::cells::{WorkerId, bump, cell_index};

/// Values of the label `response_code_class`; a request without a status counts as `none`.
pub const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// Index of a status in [`CLASSES`]; 0 for no status.
pub fn class(code: u16) -> usize {
    usize::from(code / 100).min(CLASSES.len() - 1)
}

/// Metrics of one `statPrefix`. Created by [`super::StatsRegistry::route_stats`].
#[derive(Debug)]
pub struct RouteStats {
    prefix: Arc<str>,
    cells: Box<[CachePadded<[AtomicU64; CLASSES.len()]>]>,
}

impl RouteStats {
    /// Creates zeroed cells for this number of workers.
    pub fn new(prefix: Arc<str>, workers: usize) -> Self {
        Self {
            prefix,
            cells: (0..=workers).map(|_| CachePadded::default()).collect(),
        }
    }

    /// The `statPrefix`.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Counts a finished request.
    pub fn record(&self, worker: WorkerId, code: u16) {
        let (index, writers) = cell_index(worker, self.cells.len());
        bump(&self.cells[index][class(code)], 1, writers);
    }

    /// Number of requests so far by status class, over all workers.
    pub fn totals(&self) -> [u64; CLASSES.len()] {
        std::array::from_fn(|class| {
            let cells = self.cells.iter();
            cells.map(|cell| cell[class].load(Ordering::Relaxed)).sum()
        })
    }

    /// Whether any request was counted.
    pub fn is_used(&self) -> bool {
        self.totals().iter().any(|count| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_summed_over_workers_by_class() {
        let stats = RouteStats::new("cart".into(), 2);
        for (worker, code) in [(0, 200), (1, 204), (1, 503), (0, 0), (0, 101), (1, 404)] {
            stats.record(WorkerId(worker), code);
        }
        assert_eq!(stats.totals(), [1, 1, 2, 0, 1, 1]);
        assert!(stats.is_used());
    }
}
