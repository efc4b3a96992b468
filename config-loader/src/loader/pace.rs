//! When the findings about the whole set are made, so that they neither hold up a change nor use a core.
//!
//! They take time in proportion to everything there is, and say nothing about what is in effect. Where they are quick they go
//! with the change that they are about. Where they are not, the change goes first, and they follow; under many changes they are
//! made less often.

use std::time::{Duration, Instant};

/// Findings that took no longer are made before a change is handed on.
const PROMPT_MAX: Duration = Duration::from_millis(5);

/// Findings that take longer are made for one part in this many of the time.
const PARTS: u32 = 10;

/// How long findings take, and when they may be made again.
#[derive(Debug)]
pub(super) struct Pace {
    prompt_max: Duration,
    took: Duration,
    next: Option<Instant>,
    /// Whether a change came after the last findings.
    is_behind: bool,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace::new(PROMPT_MAX)
    }
}

impl Pace {
    /// For findings that go with a change if they take no longer than this.
    pub(super) fn new(prompt_max: Duration) -> Pace {
        Pace {
            prompt_max,
            took: Duration::ZERO,
            next: None,
            is_behind: false,
        }
    }

    /// A change came. Returns whether findings are made before it is handed on.
    pub(super) fn change(&mut self) -> bool {
        self.is_behind = true;
        self.took < self.prompt_max
    }

    /// When findings are to be made that did not go with a change.
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        self.is_behind.then(|| self.next.unwrap_or(now))
    }

    /// Findings were made, from `start` on.
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
