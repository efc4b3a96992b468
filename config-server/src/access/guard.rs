//! Credential check of an open stream: the stream ends within 5 s after its token was revoked.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior, interval};

/// Interval between checks of the credentials of a stream.
const CHECK_EVERY: Duration = Duration::from_secs(5);

/// Periodic check of the credentials that opened a stream.
pub struct Guard {
    is_good: Box<dyn Fn() -> bool + Send + Sync>,
    checks: Option<Interval>,
}

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

impl Guard {
    /// Returns a guard of credentials that are valid as long as `is_good` returns true.
    pub fn new(is_good: impl Fn() -> bool + Send + Sync + 'static) -> Guard {
        Guard {
            is_good: Box::new(is_good),
            checks: None,
        }
    }

    /// Waits until the credentials are no longer valid, which is detected within 5 s. Cancellation safe.
    pub async fn revoked(&mut self) {
        let checks = self.checks.get_or_insert_with(|| {
            let mut checks = interval(CHECK_EVERY);
            checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            checks
        });
        loop {
            checks.tick().await;
            if !(self.is_good)() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn revoked_credentials_are_found_within_five_seconds() {
        let is_good = Arc::new(AtomicBool::new(true));
        let known = Arc::clone(&is_good);
        let mut guard = Guard::new(move || known.load(Ordering::Relaxed));
        let second = Duration::from_secs(1);
        for _ in 0..30 {
            assert!(timeout(second, guard.revoked()).await.is_err());
        }
        is_good.store(false, Ordering::Relaxed);
        assert!(timeout(5 * second, guard.revoked()).await.is_ok());
    }
}
