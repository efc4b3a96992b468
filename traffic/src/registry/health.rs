//! The health of an endpoint, shared by all workers.
//!
//! Only failures write: a success finds nothing to reset and leaves the cache line as it is, so that workers do not
//! contend for healthy endpoints.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;

use super::{Cause, Checked, Moment};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Reasons why an endpoint is not used, as bits.
pub mod exclusion {
    /// Ejected by outlier detection.
    pub const EJECTED: u32 = 1;
    /// Unhealthy by active health checks.
    pub const UNHEALTHY: u32 = 2;
}

/// Number of consecutive errors of one kind.
#[derive(Debug, Default)]
pub struct Streak(AtomicU32);

impl Streak {
    /// Counts one more error; returns the new number.
    pub fn add(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// Sets the number to 0.
    #[inline]
    pub fn reset(&self) {
        if self.0.load(Ordering::Relaxed) != 0 {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    /// The number of errors.
    pub fn len(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether the number is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The health of one endpoint.
#[derive(Debug, Default)]
pub struct Health {
    /// Reasons not to pick the endpoint, as bits of [`exclusion`]; 0 if it is usable.
    out: AtomicU32,
    /// Consecutive 5xx responses.
    pub server_errors: Streak,
    /// Consecutive 502, 503 and 504 responses.
    pub gateway_errors: Streak,
    /// Consecutive failures to get a response.
    pub local_errors: Streak,
    /// Time when the endpoint appeared or returned, and its warm-up began.
    fresh_since: AtomicU64,
    /// Allocated on demand; most endpoints have no history.
    history: OnceLock<Box<History>>,
}

/// Ejections and health check results of an endpoint.
#[derive(Debug, Default)]
struct History {
    /// Multiplier of the base ejection time.
    multiplier: AtomicU32,
    /// Ejections since the process started.
    ejections: AtomicU32,
    ejected_at: AtomicU64,
    /// One more than the position of the last cause in [`Cause::ALL`]; 0 before the first ejection.
    cause: AtomicU32,
    returned_at: AtomicU64,
    checked: ArcSwapOption<Checked>,
}

impl Health {
    /// Whether no reason excludes the endpoint.
    #[inline]
    pub fn is_usable(&self) -> bool {
        self.out.load(Ordering::Relaxed) == 0
    }

    /// Whether outlier detection has ejected the endpoint.
    pub fn is_ejected(&self) -> bool {
        self.out.load(Ordering::Relaxed) & exclusion::EJECTED != 0
    }

    /// Bits of [`exclusion`].
    pub fn reasons(&self) -> u32 {
        self.out.load(Ordering::Relaxed)
    }

    /// Adds a reason for exclusion; returns whether it is new.
    pub fn exclude(&self, reason: u32) -> bool {
        self.out.fetch_or(reason, Ordering::AcqRel) & reason == 0
    }

    /// Removes a reason for exclusion; returns whether it was set. The warm-up begins with the last reason that is
    /// removed.
    pub fn admit(&self, reason: u32, now: Moment) -> bool {
        if self.out.load(Ordering::Acquire) & reason == 0 {
            return false;
        }
        // set before the endpoint is usable, so that it does not count as warm; removing another reason later sets it
        // again
        self.fresh_since.store(now.0, Ordering::Relaxed);
        self.out.fetch_and(!reason, Ordering::AcqRel) & reason != 0
    }

    /// Resets all error counts.
    pub fn forget_errors(&self) {
        self.server_errors.reset();
        self.gateway_errors.reset();
        self.local_errors.reset();
    }

    /// Multiplier of the base ejection time.
    pub fn multiplier(&self) -> u32 {
        let history = self.history.get();
        history.map_or(0, |history| history.multiplier.load(Ordering::Relaxed))
    }

    /// Sets the multiplier.
    pub fn set_multiplier(&self, multiplier: u32) {
        if multiplier != self.multiplier() {
            let history = self.history();
            history.multiplier.store(multiplier, Ordering::Relaxed);
        }
    }

    /// Ejections since the process started.
    pub fn ejections(&self) -> u32 {
        let history = self.history.get();
        history.map_or(0, |history| history.ejections.load(Ordering::Relaxed))
    }

    /// Records an ejection.
    pub fn ejected(&self, now: Moment) {
        let history = self.history();
        history.ejections.fetch_add(1, Ordering::Relaxed);
        history.ejected_at.store(now.0, Ordering::Relaxed);
    }

    /// Records the cause of an ejection.
    pub fn set_cause(&self, cause: Cause) {
        let position = Cause::ALL.iter().position(|one| *one == cause);
        let number = position.map_or(0, |position| position as u32 + 1);
        self.history().cause.store(number, Ordering::Relaxed);
    }

    /// Cause of the last ejection.
    pub fn cause(&self) -> Option<Cause> {
        let number = self.history.get()?.cause.load(Ordering::Relaxed);
        let position = (number as usize).checked_sub(1)?;
        Cause::ALL.get(position).copied()
    }

    /// Time of the last ejection.
    pub fn ejected_at(&self) -> Moment {
        let history = self.history.get();
        history.map_or(Moment::NEVER, |history| {
            Moment(history.ejected_at.load(Ordering::Relaxed))
        })
    }

    /// Records the end of an ejection.
    pub fn returned(&self, now: Moment) {
        self.history().returned_at.store(now.0, Ordering::Relaxed);
    }

    /// Time when the last ejection ended.
    pub fn returned_at(&self) -> Moment {
        let history = self.history.get();
        history.map_or(Moment::NEVER, |history| {
            Moment(history.returned_at.load(Ordering::Relaxed))
        })
    }

    /// Health check results; `None` before the first check and without health checks.
    pub fn last_check(&self) -> Option<Arc<Checked>> {
        self.history.get()?.checked.load_full()
    }

    /// Stores the health check results.
    pub fn set_checked(&self, checked: Option<Arc<Checked>>) {
        if checked.is_some() || self.history.get().is_some() {
            self.history().checked.store(checked);
        }
    }

    fn history(&self) -> &History {
        self.history.get_or_init(Box::default)
    }

    /// Time when the endpoint appeared or returned; sets it to `now` if there is none.
    pub fn fresh_since(&self, now: Moment) -> Moment {
        let none = Moment::NEVER.0;
        let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
        match self.fresh_since.compare_exchange(none, now.0, done, failed) {
            Ok(_) => now,
            Err(since) => Moment(since),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_is_available_when_no_reason_is_left() {
        let health = Health::default();
        assert!(health.is_usable());
        assert!(health.exclude(exclusion::EJECTED));
        assert!(!health.exclude(exclusion::EJECTED));
        assert!(health.exclude(exclusion::UNHEALTHY));
        assert!(health.admit(exclusion::EJECTED, Moment(5)));
        assert!(!health.admit(exclusion::EJECTED, Moment(6)));
        assert!(!health.is_usable());
        assert!(health.admit(exclusion::UNHEALTHY, Moment(7)));
        assert!(health.is_usable());
        assert_eq!(health.fresh_since(Moment(9)), Moment(7));
    }

    #[test]
    fn warm_up_starts_at_the_first_pick() {
        let health = Health::default();
        assert_eq!(health.fresh_since(Moment(3)), Moment(3));
        assert_eq!(health.fresh_since(Moment(9)), Moment(3));
    }
}

#[cfg(all(test, feature = "models"))]
mod models {
    use std::sync::Arc;

    use super::*;

    /// Runs the same function in two threads and returns the results.
    fn twice<T: Send + 'static>(run: fn(&Health) -> T) -> (Arc<Health>, [T; 2]) {
        let health = Arc::new(Health::default());
        let threads = [(), ()].map(|()| {
            let health = Arc::clone(&health);
            loom::thread::spawn(move || run(&health))
        });
        (health, threads.map(|thread| thread.join().unwrap()))
    }

    #[test]
    fn exactly_one_thread_reports_an_ejection() {
        loom::model(|| {
            let (health, news) = twice(|health| health.exclude(exclusion::EJECTED));
            assert_eq!(news.iter().filter(|news| **news).count(), 1);
            assert!(health.is_ejected());
        });
    }

    #[test]
    fn no_consecutive_error_is_lost() {
        loom::model(|| {
            let (health, counts) = twice(|health| health.server_errors.add());
            assert!(counts.contains(&2), "one of them is the second");
            assert_eq!(health.server_errors.len(), 2);
        });
    }

    #[test]
    fn endpoint_with_two_reasons_is_out_until_both_are_gone() {
        loom::model(|| {
            let health = Arc::new(Health::default());
            health.exclude(exclusion::EJECTED);
            health.exclude(exclusion::UNHEALTHY);
            let threads = [exclusion::EJECTED, exclusion::UNHEALTHY].map(|reason| {
                let health = Arc::clone(&health);
                loom::thread::spawn(move || {
                    let news = health.admit(reason, Moment(5));
                    assert!(news);
                })
            });
            for thread in threads {
                thread.join().unwrap();
            }
            assert!(health.is_usable());
            // the last one has recorded the time
            assert_eq!(health.fresh_since(Moment(9)), Moment(5));
        });
    }
}
