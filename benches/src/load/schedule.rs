//! Due times of requests, fixed before the run and independent of the responses.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

const NANOS: u64 = 1_000_000_000;

/// Distribution of the arrival times of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Constant intervals.
    Constant,
    /// Random times, as of many independent clients. The number is the seed.
    Random(u64),
}

/// Part of a schedule for one thread: every `of`-th request, starting with `index`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Index of the part, from 0.
    pub index: u64,
    /// Number of parts.
    pub of: u64,
}

impl Part {
    /// Whole schedule.
    pub const WHOLE: Self = Self { index: 0, of: 1 };
}

/// Request of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Number of the request in the run, over all threads.
    pub number: u64,
    /// Due time, from the start of the run.
    pub at: Duration,
}

/// Requests of one thread, in the order of their due times.
#[derive(Clone, Debug)]
pub struct Schedule {
    rate: u64,
    length: Duration,
    part: Part,
    random: Option<SmallRng>,
    /// Number of requests taken.
    taken: u64,
    next: Option<Due>,
}

impl Schedule {
    /// Creates a schedule of `rate` requests per second, which must not be 0, for this long.
    pub fn new(rate: u32, length: Duration, arrivals: Arrivals, part: Part) -> Self {
        let random = match arrivals {
            Arrivals::Constant => None,
            Arrivals::Random(seed) => Some(SmallRng::seed_from_u64(seed.wrapping_add(part.index))),
        };
        let mut schedule = Self {
            rate: u64::from(rate),
            length,
            part,
            random,
            taken: 0,
            next: None,
        };
        schedule.advance(Duration::ZERO);
        schedule
    }

    /// Returns the next request; `None` after the last one.
    pub fn next_due(&self) -> Option<Due> {
        self.next
    }

    /// Takes the next request if it is due at `now`.
    pub fn take(&mut self, now: Duration) -> Option<Due> {
        let due = self.next.filter(|due| due.at <= now)?;
        self.taken += 1;
        self.advance(due.at);
        Some(due)
    }

    fn advance(&mut self, last: Duration) {
        let number = self.taken * self.part.of + self.part.index;
        let at = match &mut self.random {
            None => {
                let nanos = u128::from(number) * u128::from(NANOS) / u128::from(self.rate);
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
            Some(random) => {
                let chance: f64 = random.random();
                let mean = self.part.of as f64 / self.rate as f64;
                last + Duration::from_secs_f64(-(1.0 - chance).ln() * mean)
            }
        };
        self.next = (at < self.length).then_some(Due { number, at });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn all(mut schedule: Schedule) -> Vec<Due> {
        std::iter::from_fn(|| schedule.take(Duration::MAX)).collect()
    }

    #[test]
    fn constant_rate_is_exact_over_the_whole_run() {
        // 1 / 3000 s is no whole number of nanoseconds; the error must not add up
        let due = all(Schedule::new(
            3_000,
            SECOND * 10,
            Arrivals::Constant,
            Part::WHOLE,
        ));
        assert_eq!(due.len(), 30_000);
        assert_eq!(due[29_997].at, Duration::from_millis(9_999));
        assert_eq!(due[29_997].number, 29_997);
    }

    #[test]
    fn request_is_taken_once_it_is_due() {
        let mut schedule = Schedule::new(10, SECOND, Arrivals::Constant, Part::WHOLE);
        assert_eq!(schedule.take(Duration::ZERO).unwrap().number, 0);
        assert_eq!(schedule.take(Duration::from_millis(99)), None);
        assert_eq!(schedule.next_due().unwrap().at, Duration::from_millis(100));
        assert_eq!(schedule.take(Duration::from_millis(100)).unwrap().number, 1);
    }

    #[test]
    fn parts_of_threads_make_the_whole() {
        let part = |index| {
            let part = Part { index, of: 3 };
            all(Schedule::new(100, SECOND, Arrivals::Constant, part))
        };
        let mut together = [part(0), part(1), part(2)].concat();
        together.sort_by_key(|due| due.number);
        assert_eq!(
            together,
            all(Schedule::new(100, SECOND, Arrivals::Constant, Part::WHOLE))
        );
    }

    #[test]
    fn random_arrivals_keep_the_rate_and_repeat_with_their_seed() {
        let run = |seed| {
            all(Schedule::new(
                1_000,
                SECOND * 20,
                Arrivals::Random(seed),
                Part::WHOLE,
            ))
        };
        let due = run(7);
        // a Poisson count of 20,000 deviates by 141
        assert!((19_300..20_700).contains(&due.len()), "{}", due.len());
        assert!(due.is_sorted_by_key(|due| due.at));
        assert_eq!(due, run(7));
        assert_ne!(due, run(8));
    }
}
