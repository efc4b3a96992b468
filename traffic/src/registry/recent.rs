//! Number of attempts that began within a past interval, over all workers. Each attempt increments the counter of its
//! time slot; readers skip old counters, and writers overwrite them later, so that nothing has to be cleared.

use std::time::Duration;

use super::Moment;
use crate::sync::{AtomicU64, Ordering};

/// Number of time slots of an interval; attempts of one slot expire together.
const PARTS: u64 = 10;

/// Number of counters: the slots of an interval, and the current one.
const CELLS: usize = PARTS as usize + 1;

/// Attempts that began within an interval, measured up to a tenth too long.
#[derive(Debug)]
pub struct Recent {
    interval: Duration,
    /// Length of a slot in milliseconds, at least 1.
    width: u64,
    /// Number of slots before the current one, at most [`PARTS`].
    parts: u32,
    /// Slot number in the upper half, number of attempts in the lower half.
    cells: [AtomicU64; CELLS],
}

impl Recent {
    /// Creates counters for an interval of at least 1 ms.
    pub fn new(interval: Duration) -> Self {
        let millis = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX);
        let width = millis.div_ceil(PARTS).max(1);
        Self {
            interval,
            width,
            parts: millis.div_ceil(width).clamp(1, PARTS) as u32,
            cells: Default::default(),
        }
    }

    /// Interval in which attempts are counted.
    pub fn interval(&self) -> Duration {
        self.interval
    }

    /// Counts an attempt that begins now.
    pub fn count(&self, now: Moment) {
        let part = self.part(now);
        let cell = &self.cells[(now.0 / self.width) as usize % CELLS];
        let mut held = cell.load(Ordering::Relaxed);
        while age(part, held).is_none_or(|age| age > 0) {
            let begun = u64::from(part) << 32 | 1;
            let (done, failed) = (Ordering::Relaxed, Ordering::Relaxed);
            match cell.compare_exchange_weak(held, begun, done, failed) {
                Ok(_) => return,
                Err(other) => held = other,
            }
        }
        // far below the number that would overflow into the slot number
        if held as u32 <= u32::MAX / 2 {
            cell.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Number of attempts within the interval. May miss attempts that are counted concurrently.
    pub fn within(&self, now: Moment) -> u64 {
        let part = self.part(now);
        let held = self.cells.iter().map(|cell| cell.load(Ordering::Relaxed));
        held.filter(|held| age(part, *held).is_some_and(|age| age <= self.parts))
            .map(|held| u64::from(held as u32))
            .sum()
    }

    /// Number of the current slot; wraps around after 2^32 slots.
    fn part(&self, now: Moment) -> u32 {
        (now.0 / self.width) as u32
    }
}

/// Age of a counter in slots; `None` if it is empty. A counter of a worker whose clock is ahead has age 0.
fn age(part: u32, held: u64) -> Option<u32> {
    let begun = (held >> 32) as u32;
    let age = part.wrapping_sub(begun) as i32;
    (held as u32 != 0).then(|| age.max(0) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment(millis)
    }

    #[test]
    fn started_requests_count_for_the_interval_and_at_most_a_tenth_longer() {
        let recent = Recent::new(Duration::from_secs(1));
        for _ in 0..3 {
            recent.count(at(50));
        }
        recent.count(at(149));
        for (now, count) in [(50, 4), (1_099, 4), (1_100, 1), (1_199, 1), (1_200, 0)] {
            assert_eq!(recent.within(at(now)), count, "after {now} ms");
        }
        // expired counts do not return with the next round of counters
        recent.count(at(1_150));
        assert_eq!(recent.within(at(1_150)), 2);
        assert_eq!(recent.within(at(100_000)), 0);
    }

    #[test]
    fn each_interval_uses_its_own_length() {
        for (millis, until) in [(1, 1), (5, 5), (10, 10), (25, 26), (3_600_000, 3_600_000)] {
            let recent = Recent::new(Duration::from_millis(millis));
            recent.count(at(0));
            assert_eq!(recent.within(at(until)), 1, "{millis} ms");
            assert_eq!(recent.within(at(until + millis / 10 + 4)), 0, "{millis} ms");
        }
    }

    #[test]
    fn a_lagging_clock_loses_no_count() {
        let recent = Recent::new(Duration::from_secs(1));
        recent.count(at(1_150));
        recent.count(at(1_050));
        // the same counter, one round earlier
        recent.count(at(50));
        assert_eq!(recent.within(at(1_150)), 3);
        assert_eq!(recent.within(at(1_050)), 3);
    }

    #[test]
    fn slot_numbers_may_wrap_around() {
        let recent = Recent::new(Duration::from_millis(1));
        let last = u64::from(u32::MAX);
        recent.count(at(last));
        recent.count(at(last + 1));
        assert_eq!(recent.within(at(last + 1)), 2);
        assert_eq!(recent.within(at(last + 2)), 1);
    }
}

#[cfg(all(test, feature = "models"))]
mod models {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn concurrent_starts_of_a_slot_lose_no_count() {
        loom::model(|| {
            let recent = Arc::new(Recent::new(Duration::from_secs(1)));
            // the counter holds attempts of the previous round
            recent.count(Moment(50));
            let threads = [1_150, 1_160].map(|now| {
                let recent = Arc::clone(&recent);
                loom::thread::spawn(move || recent.count(Moment(now)))
            });
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(recent.within(Moment(1_170)), 2);
        });
    }
}
