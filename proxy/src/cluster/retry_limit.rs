//! How many requests to one cluster may be tried again at the same time.

use std::time::Duration;

/// A limit on retries in flight, over all workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetryLimit {
    /// This many.
    Count(u32),
    /// A share of the requests to the cluster, and never less than `min`.
    Share {
        /// How many of ten thousand requests.
        basis_points: u32,
        /// How many in any case.
        min: u32,
        /// The time in which a request must have begun to count; none to count the requests in flight.
        interval: Option<Duration>,
        /// Whether a retry counts of which it is certain that no endpoint saw the try before.
        counts_unprocessed: bool,
    },
}

impl Default for RetryLimit {
    /// Istio has no limit. A service that fails under load would get up to three times the load then, so there is one
    /// here that small and partial failures never reach; a try that no endpoint saw adds no load, and does not count,
    /// so that endpoints may go away under any number of requests.
    fn default() -> Self {
        Self::Share {
            basis_points: 2_000,
            min: 64,
            interval: None,
            counts_unprocessed: false,
        }
    }
}

impl RetryLimit {
    /// The time in which a request must have begun to count, if that is what counts.
    pub fn interval(&self) -> Option<Duration> {
        match self {
            Self::Share { interval, .. } => *interval,
            Self::Count(_) => None,
        }
    }
}
