//! Number of units of one kind in flight to a cluster, over all workers: retries, requests, or pending requests.

use crate::sync::{AtomicUsize, Ordering};

/// Counter of units in flight that never exceeds the caller's limit.
#[derive(Debug, Default)]
pub struct Tally(AtomicUsize);

impl Tally {
    /// Number of units in flight.
    pub fn active(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts one more unless that would exceed `max`.
    ///
    /// Increments in a single step: to increment and undo it could refuse another caller that has room.
    pub(super) fn enter(&self, max: usize) -> bool {
        let mut active = self.active();
        while active < max {
            let next = self.0.compare_exchange_weak(
                active,
                active + 1,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            match next {
                Ok(_) => return true,
                Err(other) => active = other,
            }
        }
        false
    }

    pub(super) fn leave(&self) {
        let before = self.0.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "leave without enter");
    }
}

#[cfg(all(test, feature = "models"))]
mod models {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn limit_is_exact_under_every_interleaving() {
        loom::model(|| {
            let tally = Arc::new(Tally::default());
            let threads: Vec<_> = (0..3)
                .map(|_| {
                    let tally = Arc::clone(&tally);
                    loom::thread::spawn(move || {
                        let entered = tally.enter(2);
                        assert!(tally.active() <= 2);
                        entered
                    })
                })
                .collect();
            let entered = threads.into_iter().map(|thread| thread.join().unwrap());
            assert_eq!(entered.filter(|entered| *entered).count(), 2);
            tally.leave();
            tally.leave();
            assert_eq!(tally.active(), 0);
        });
    }
}
