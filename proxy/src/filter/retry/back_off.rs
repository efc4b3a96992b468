//! Pauses between attempts: exponential, capped, and fully random, so that requests that failed together do not come
//! again together.

use std::time::Duration;

use rand::{Rng, RngExt};

/// The longest pause in terms of the base.
const CAP: u64 = 10;

/// Draws pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOff {
    /// What the pauses grow from.
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
    /// What the pause before a retry is below; the first retry is number 1.
    pub fn limit(self, retry: u32) -> Duration {
        let doubled = 1_u64.checked_shl(retry).unwrap_or(u64::MAX);
        let factor = doubled.saturating_sub(1).min(CAP);
        // at most ten
        self.base.saturating_mul(factor as u32)
    }

    /// The pause before a retry: anything from nothing to its limit.
    pub fn draw(self, retry: u32, rng: &mut impl Rng) -> Duration {
        let nanos = u64::try_from(self.limit(retry).as_nanos()).unwrap_or(u64::MAX);
        match nanos {
            0 => Duration::ZERO,
            nanos => Duration::from_nanos(rng.random_range(0..nanos)),
        }
    }
}
