//! Counts retries of a cluster against its limit.

use super::{Cluster, RetryLimit};
use crate::balance::EndpointIdx;
use crate::registry::{Moment, RetryPermit};

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
