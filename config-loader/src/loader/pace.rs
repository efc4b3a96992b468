//! Scheduling of the checks of the whole set, so that they neither delay changes nor keep a core busy.
//!
//! The checks take time in proportion to the number of objects, and do not decide which objects are in effect. Quick
//! checks run before a change is passed on. Slow checks run after it, and less often if there are many changes.

use std::time::{Duration, Instant};

/// Maximum duration of checks that run before a change is passed on.
const PROMPT_MAX: Duration = Duration::from_millis(5);

/// Reciprocal of the share of time that slow checks may take: one tenth.
const PARTS: u32 = 10;

/// Schedule of the checks of the whole set.
#[derive(Debug)]
pub(super) struct Pace {
    prompt_max: Duration,
    took: Duration,
    next: Option<Instant>,
    /// Whether a change came after the last checks.
    is_behind: bool,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace::new(PROMPT_MAX)
    }
}

impl Pace {
    /// Creates a schedule; checks that take at most `prompt_max` run before a change is passed on.
    pub(super) fn new(prompt_max: Duration) -> Pace {
        Pace {
            prompt_max,
            took: Duration::ZERO,
            next: None,
            is_behind: false,
        }
    }

    /// Records a change. Returns whether the checks run before it is passed on.
    pub(super) fn change(&mut self) -> bool {
        self.is_behind = true;
        self.took < self.prompt_max
    }

    /// Returns the time of the next postponed checks; `None` if there is none to run.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        self.is_behind.then(|| self.next.unwrap_or(now))
    }

    /// Records that checks ran from `start` to `end`.
    pub(super) fn made(&mut self, start: Instant, end: Instant) {
        self.is_behind = false;
        self.took = end.saturating_duration_since(start);
        self.next = Some(end + self.took * (PARTS - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_checks_are_deferred_within_their_time_budget() {
        let ms = Duration::from_millis;
        let start = Instant::now();
        let mut pace = Pace::default();
        assert_eq!(pace.deadline(start), None, "nothing changed");
        assert!(pace.change(), "nothing is known of the first ones");
        pace.made(start, start + ms(4));
        assert_eq!(pace.deadline(start + ms(4)), None);
        assert!(pace.change());
        pace.made(start + ms(10), start + ms(50));
        assert!(!pace.change(), "they took 40 ms");
        assert!(!pace.change());
        assert_eq!(pace.deadline(start + ms(60)), Some(start + ms(410)));
        pace.made(start + ms(410), start + ms(412));
        assert_eq!(pace.deadline(start + ms(420)), None);
        assert!(pace.change(), "they are quick again");
    }
}
