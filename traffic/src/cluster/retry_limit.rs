//! Limit of concurrent retries in one cluster.

use std::time::Duration;

/// A limit of retries in flight, over all workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetryLimit {
    /// A fixed number.
    Count(u32),
    /// A share of the requests to the cluster, but at least `min`.
    Share {
        /// Share in hundredths of a percent.
        basis_points: u32,
        /// Minimum number of retries, for clusters with few requests.
        min: u32,
        /// Requests that began within this interval count; `None` to count the requests in flight.
        interval: Option<Duration>,
        /// Whether retries count if certainly no endpoint saw the previous attempt.
        counts_unprocessed: bool,
    },
}

impl Default for RetryLimit {
    /// Istio has no limit, and a service that fails under load could get three times the load. This limit is too high
    /// for small and partial failures to reach. Attempts that no endpoint saw add no load and do not count, so that
    /// endpoints may go away under any number of requests.
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
    /// The interval whose requests count; `None` if requests in flight count.
    pub fn interval(&self) -> Option<Duration> {
        match self {
            Self::Share { interval, .. } => *interval,
            Self::Count(_) => None,
        }
    }
}
