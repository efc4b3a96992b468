//! Rate limit of failed authentications by client address, against guessing of tokens.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Limits of failures per address: burst, and sustained rate per second.
const BURST: f64 = 10.0;
const PER_SECOND: f64 = 1.0;
/// Maximum number of remembered addresses.
const ADDRESSES_MAX: usize = 10_000;

/// Recent failures by address.
#[derive(Debug, Default)]
pub struct Attempts {
    left: Mutex<HashMap<IpAddr, (f64, Instant)>>,
}

impl Attempts {
    /// Whether the address has exceeded the limit.
    pub fn is_limited(&self, address: IpAddr, now: Instant) -> bool {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.get(&address)
            .is_some_and(|known| refilled(*known, now) < 1.0)
    }

    /// Counts a failure. Returns whether the address has exceeded the limit.
    pub fn fail(&self, address: IpAddr, now: Instant) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if left.len() >= ADDRESSES_MAX {
            left.retain(|_, known| refilled(*known, now) < BURST);
            if left.len() >= ADDRESSES_MAX {
                left.clear();
            }
        }
        let known = left.entry(address).or_insert((BURST, now));
        let tokens = refilled(*known, now);
        let is_too_often = tokens < 1.0;
        *known = (if is_too_often { tokens } else { tokens - 1.0 }, now);
        is_too_often
    }
}

/// Returns the failures that are left to an address.
fn refilled((tokens, at): (f64, Instant), now: Instant) -> f64 {
    let since = now.saturating_duration_since(at).as_secs_f64();
    (tokens + since * PER_SECOND).min(BURST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::time::Duration;

    #[test]
    fn failures_are_limited_by_address() {
        let attempts = Attempts::default();
        let (a, b) = (
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        );
        let now = Instant::now();
        for _ in 0..10 {
            assert!(!attempts.is_limited(a, now));
            assert!(!attempts.fail(a, now));
        }
        assert!(attempts.is_limited(a, now) && !attempts.is_limited(b, now));
        assert!(attempts.fail(a, now));
        assert!(!attempts.fail(b, now));
        assert!(!attempts.fail(a, now + Duration::from_secs(1)));
        assert!(attempts.fail(a, now + Duration::from_secs(1)));
    }
}
