//! Rate limits by key: of failed authentications by client address, against guessing of tokens, and of other requests.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Limits of failed authentications per address: burst, and sustained rate per second.
const FAILURES: [f64; 2] = [10.0, 1.0];
/// Maximum number of remembered keys.
const KEYS_MAX: usize = 10_000;

/// Recent attempts by key.
#[derive(Debug)]
pub struct Attempts<K = IpAddr> {
    burst: f64,
    per_second: f64,
    left: Mutex<HashMap<K, (f64, Instant)>>,
}

impl Default for Attempts {
    fn default() -> Attempts {
        let [burst, per_second] = FAILURES;
        Attempts::new(burst, per_second)
    }
}

impl<K: Eq + Hash> Attempts<K> {
    /// Returns the limits of a burst, and of a sustained rate per second.
    pub fn new(burst: f64, per_second: f64) -> Attempts<K> {
        Attempts {
            burst,
            per_second,
            left: Mutex::default(),
        }
    }

    /// Whether the key has exceeded the limit.
    pub fn is_limited(&self, key: &K, now: Instant) -> bool {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        left.get(key)
            .is_some_and(|known| self.refilled(*known, now) < 1.0)
    }

    /// Counts an attempt. Returns whether the key has exceeded the limit.
    pub fn count(&self, key: K, now: Instant) -> bool {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if left.len() >= KEYS_MAX {
            left.retain(|_, known| self.refilled(*known, now) < self.burst);
            if left.len() >= KEYS_MAX {
                left.clear();
            }
        }
        let known = left.entry(key).or_insert((self.burst, now));
        let tokens = self.refilled(*known, now);
        let is_too_often = tokens < 1.0;
        *known = (if is_too_often { tokens } else { tokens - 1.0 }, now);
        is_too_often
    }

    /// Returns the attempts that are left to a key.
    fn refilled(&self, (tokens, at): (f64, Instant), now: Instant) -> f64 {
        let since = now.saturating_duration_since(at).as_secs_f64();
        (tokens + since * self.per_second).min(self.burst)
    }
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
            assert!(!attempts.is_limited(&a, now));
            assert!(!attempts.count(a, now));
        }
        assert!(attempts.is_limited(&a, now) && !attempts.is_limited(&b, now));
        assert!(attempts.count(a, now));
        assert!(!attempts.count(b, now));
        assert!(!attempts.count(a, now + Duration::from_secs(1)));
        assert!(attempts.count(a, now + Duration::from_secs(1)));
    }
}
