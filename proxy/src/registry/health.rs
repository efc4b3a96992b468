//! What is known of an endpoint's health, shared by all workers.
//!
//! Only an endpoint that fails is written to: a success finds nothing to reset and leaves the cache line as it is, so
//! workers don't contend while all is well.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;

use super::{Cause, Checked, Moment};
use crate::runtime::sync::{AtomicU32, AtomicU64, Ordering};

/// Why an endpoint is not used.
pub mod why {
    /// Outlier detection has taken it out.
    pub const EJECTED: u32 = 1;
    /// It fails its health checks.
    pub const UNHEALTHY: u32 = 2;
}

/// Errors in a row of one sort.
#[derive(Debug, Default)]
pub struct Streak(AtomicU32);

impl Streak {
    /// One more; returns how many there are now.
    pub fn add(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    /// None any more.
    #[inline]
    pub fn reset(&self) {
        if self.0.load(Ordering::Relaxed) != 0 {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    /// How many there are.
    pub fn len(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The health of one endpoint.
#[derive(Debug, Default)]
pub struct Health {
    /// Bits of [`why`]; none when the endpoint may be used.
    out: AtomicU32,
    /// 5xx responses in a row.
    pub server_errors: Streak,
    /// 502, 503 and 504 in a row.
    pub gateway_errors: Streak,
    /// Failures in a row to get a response at all.
    pub local_errors: Streak,
    /// When it appeared, or came back; its warm-up begins then.
    fresh_since: AtomicU64,
    /// Most endpoints have none.
    history: OnceLock<Box<History>>,
}

/// What is remembered of an endpoint that was ejected or is checked.
#[derive(Debug, Default)]
struct History {
    /// By what an ejection's time is multiplied.
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
    /// Whether nothing speaks against it.
    #[inline]
    pub fn is_usable(&self) -> bool {
        self.out.load(Ordering::Relaxed) == 0
    }

    /// Whether outlier detection has taken it out.
    pub fn is_ejected(&self) -> bool {
        self.out.load(Ordering::Relaxed) & why::EJECTED != 0
    }

    /// Bits of [`why`].
    pub fn reasons(&self) -> u32 {
        self.out.load(Ordering::Relaxed)
    }

    /// Takes it out for a reason; returns whether that is news.
    pub fn exclude(&self, reason: u32) -> bool {
        self.out.fetch_or(reason, Ordering::AcqRel) & reason == 0
    }

    /// One reason less to be out, since it is well again; returns whether that is news. Its warm-up begins then: of
    /// several reasons, with the last.
    pub fn admit(&self, reason: u32, now: Moment) -> bool {
        if self.out.load(Ordering::Acquire) & reason == 0 {
            return false;
        }
        // before it may be used, so that it is not taken for warm; another reason that goes later says it again
        self.fresh_since.store(now.0, Ordering::Relaxed);
        self.out.fetch_and(!reason, Ordering::AcqRel) & reason != 0
    }

    /// Forgets all errors in a row.
    pub fn forget_errors(&self) {
        self.server_errors.reset();
        self.gateway_errors.reset();
        self.local_errors.reset();
    }

    /// By what an ejection's time is multiplied.
    pub fn multiplier(&self) -> u32 {
        let history = self.history.get();
        history.map_or(0, |history| history.multiplier.load(Ordering::Relaxed))
    }

    /// Changes the multiplier.
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

    /// Notes an ejection.
    pub fn ejected(&self, now: Moment) {
        let history = self.history();
        history.ejections.fetch_add(1, Ordering::Relaxed);
        history.ejected_at.store(now.0, Ordering::Relaxed);
    }

    /// Notes why it was ejected.
    pub fn set_cause(&self, cause: Cause) {
        let position = Cause::ALL.iter().position(|one| *one == cause);
        let number = position.map_or(0, |position| position as u32 + 1);
        self.history().cause.store(number, Ordering::Relaxed);
    }

    /// Why it was ejected last.
    pub fn cause(&self) -> Option<Cause> {
        let number = self.history.get()?.cause.load(Ordering::Relaxed);
        let position = (number as usize).checked_sub(1)?;
        Cause::ALL.get(position).copied()
    }

    /// When it was ejected last.
    pub fn ejected_at(&self) -> Moment {
        let history = self.history.get();
        history.map_or(Moment::NEVER, |history| {
            Moment(history.ejected_at.load(Ordering::Relaxed))
        })
    }

    /// Notes that it came back.
    pub fn returned(&self, now: Moment) {
        self.history().returned_at.store(now.0, Ordering::Relaxed);
    }

    /// When it came back last from an ejection.
    pub fn returned_at(&self) -> Moment {
        let history = self.history.get();
        history.map_or(Moment::NEVER, |history| {
            Moment(history.returned_at.load(Ordering::Relaxed))
        })
    }

    /// What active health checks came to; nothing before the first, or where none are made.
    pub fn checked(&self) -> Option<Arc<Checked>> {
        self.history.get()?.checked.load_full()
    }

    /// Notes what active health checks came to.
    pub fn set_checked(&self, checked: Option<Arc<Checked>>) {
        if checked.is_some() || self.history.get().is_some() {
            self.history().checked.store(checked);
        }
    }

    fn history(&self) -> &History {
        self.history.get_or_init(Box::default)
    }

    /// When it appeared or came back, which is now if it is not recorded.
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
        assert!(health.exclude(why::EJECTED));
        assert!(!health.exclude(why::EJECTED));
        assert!(health.exclude(why::UNHEALTHY));
        assert!(health.admit(why::EJECTED, Moment(5)));
        assert!(!health.admit(why::EJECTED, Moment(6)));
        assert!(!health.is_usable());
        assert!(health.admit(why::UNHEALTHY, Moment(7)));
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

    /// Runs the same in two threads and tells what each came to.
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
            let (health, news) = twice(|health| health.exclude(why::EJECTED));
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
            health.exclude(why::EJECTED);
            health.exclude(why::UNHEALTHY);
            let threads = [why::EJECTED, why::UNHEALTHY].map(|reason| {
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
