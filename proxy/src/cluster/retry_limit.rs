//! How many requests to one cluster may be tried again at the same time.

use std::time::Duration;

use super::Cluster;
use crate::balance::EndpointIdx;
use crate::registry::{Moment, RetryPermit};

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

/// What a cluster says to one more retry.
#[derive(Debug)]
pub enum Admission {
    /// It may be made, and counts until this is dropped, if it counts.
    Admitted(Option<RetryPermit>),
    /// Too many are in flight.
    Refused,
}

impl Cluster {
    /// Counts in a try that goes to an endpoint, until it leaves there.
    #[inline]
    pub fn enter(&self, endpoint: EndpointIdx, now: impl FnOnce() -> Moment) {
        self.endpoint(endpoint).state.enter();
        if let Some(recent) = &self.recent {
            recent.count(now());
        }
    }

    /// Asks for one more retry; `unprocessed` is whether it is certain that no endpoint saw the try before.
    pub fn admit_retry(&self, unprocessed: bool, now: impl FnOnce() -> Moment) -> Admission {
        if let RetryLimit::Share {
            counts_unprocessed: false,
            ..
        } = self.retry_limit
            && unprocessed
        {
            return Admission::Admitted(None);
        }
        let wanted = self.state.retries.active() + 1;
        match RetryPermit::acquire(&self.state, self.retries_max(wanted, now)) {
            Some(permit) => Admission::Admitted(Some(permit)),
            None => Admission::Refused,
        }
    }

    /// How many retries may be in flight now, as far as it is not more than `wanted`: endpoints are counted only until
    /// the answer is known.
    pub fn retries_max(&self, wanted: usize, now: impl FnOnce() -> Moment) -> usize {
        let (basis_points, min) = match self.retry_limit {
            RetryLimit::Count(count) => return count as usize,
            RetryLimit::Share {
                basis_points, min, ..
            } => (u64::from(basis_points), min as usize),
        };
        let share = |requests: u64| {
            let share = requests.saturating_mul(basis_points) / 10_000;
            usize::try_from(share).unwrap_or(usize::MAX).max(min)
        };
        if let Some(recent) = &self.recent {
            return share(recent.within(now()));
        }
        let mut active = 0_u64;
        let mut max = min;
        for endpoint in &self.endpoints {
            if max >= wanted {
                break;
            }
            active += u64::from(endpoint.state.active());
            max = share(active);
        }
        max
    }
}
