//! Back-off between attempts: exponential, capped, and fully random, so that requests that failed together are not
//! retried together.

use std::time::Duration;

use rand::{Rng, RngExt};

/// Maximum pause in multiples of the base.
const CAP: u64 = 10;

/// Exponential back-off with full jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOff {
    /// Base of the pauses.
    ///
    /// Unit: time, > 0. Default: 25 ms. Source: `retries.backoff`.
    pub base: Duration,
}

impl Default for BackOff {
    fn default() -> Self {
        Self {
            base: Duration::from_millis(25),
        }
    }
}

impl BackOff {
    /// Upper bound of the pause before a retry; the first retry is number 1.
    pub fn limit(self, retry: u32) -> Duration {
        let doubled = 1_u64.checked_shl(retry).unwrap_or(u64::MAX);
        let factor = doubled.saturating_sub(1).min(CAP);
        // at most ten
        self.base.saturating_mul(factor as u32)
    }

    /// Draws the pause before a retry: from 0 to its upper bound.
    pub fn draw(self, retry: u32, rng: &mut impl Rng) -> Duration {
        let nanos = u64::try_from(self.limit(retry).as_nanos()).unwrap_or(u64::MAX);
        match nanos {
            0 => Duration::ZERO,
            nanos => Duration::from_nanos(rng.random_range(0..nanos)),
        }
    }
}
