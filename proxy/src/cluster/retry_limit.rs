//! How many requests to one cluster may be tried again at the same time.

use super::Cluster;
use crate::registry::RetryPermit;

/// A limit on retries under way, over all workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RetryLimit {
    /// This many.
    Count(u32),
    /// A share of the requests under way to the cluster, and never less than `min`.
    Share {
        /// How many of a hundred requests.
        percent: u32,
        /// How many in any case.
        min: u32,
        /// Whether a retry counts of which it is certain that no endpoint saw the try before.
        counts_unprocessed: bool,
    },
}

impl Default for RetryLimit {
    /// Istio has no limit. A service that fails under load would get up to three times the load then, so there is one
    /// here that small and partial failures never reach; a try that no endpoint saw adds no load, and does not count, so
    /// that endpoints may go away under any number of requests.
    fn default() -> Self {
        Self::Share {
            percent: 20,
            min: 64,
            counts_unprocessed: false,
        }
    }
}

/// What a cluster says to one more retry.
#[derive(Debug)]
pub enum Admission {
    /// It may be made, and counts until this is dropped, if it counts.
    Admitted(Option<RetryPermit>),
    /// Too many are under way.
    Refused,
}

impl Cluster {
    /// Asks for one more retry; `unprocessed` is whether it is certain that no endpoint saw the try before.
    pub fn admit_retry(&self, unprocessed: bool) -> Admission {
        let max = match self.retry_limit {
            RetryLimit::Count(count) => count as usize,
            RetryLimit::Share {
                counts_unprocessed: false,
                ..
            } if unprocessed => return Admission::Admitted(None),
            RetryLimit::Share { percent, min, .. } => self.share(percent, min),
        };
        match RetryPermit::acquire(&self.state, max) {
            Some(permit) => Admission::Admitted(Some(permit)),
            None => Admission::Refused,
        }
    }

    /// The limit that is a share of the requests under way. Endpoints are counted only as far as the answer depends on
    /// them.
    fn share(&self, percent: u32, min: u32) -> usize {
        let wanted = self.state.retries.active() + 1;
        let mut active = 0_u64;
        let mut max = min as usize;
        for endpoint in &self.endpoints {
            if max >= wanted {
                break;
            }
            active += u64::from(endpoint.state.active());
            let share = active * u64::from(percent) / 100;
            max = max.max(usize::try_from(share).unwrap_or(usize::MAX));
        }
        max
    }
}
