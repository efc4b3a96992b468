//! Admits retries of a cluster within its retry limit.

use super::{Cluster, RetryLimit};
use crate::balance::EndpointIdx;
use crate::registry::{Moment, RetryPermit};

/// Decision of the retry limit about one more retry.
#[derive(Debug)]
pub enum Admission {
    /// The retry may be sent. It is in flight until the permit is dropped; `None` if it does not count.
    Admitted(Option<RetryPermit>),
    /// The limit is reached.
    Refused,
}

impl Cluster {
    /// Counts an attempt that is sent to an endpoint.
    #[inline]
    pub fn enter(&self, endpoint: EndpointIdx, now: impl FnOnce() -> Moment) {
        self.endpoint(endpoint).state.enter();
        if let Some(recent) = &self.recent {
            recent.count(now());
        }
    }

    /// Requests a permit for one more retry. `unprocessed` is whether certainly no endpoint saw the previous attempt.
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

    /// Maximum number of retries in flight now. Exact only up to `wanted`: active requests are summed over endpoints
    /// only until the result is known.
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
