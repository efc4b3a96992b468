//! Pace of signatures of a process: so many a second, and a bounded queue. Pure: the time is passed in.

use std::time::{Duration, Instant};

/// Maximum number of signatures a second.
const PER_SECOND: u32 = 200;
/// Maximum number of requests that wait for their turn.
const WAITING_MAX: u32 = 1_000;

/// Turns of requests: each has its time, one after the other.
#[derive(Debug, Default)]
pub(super) struct Pace(Option<Instant>);

impl Pace {
    /// Returns the time until the turn of a request; `None` if too many wait already.
    pub(super) fn turn(&mut self, now: Instant) -> Option<Duration> {
        let interval = Duration::from_secs(1) / PER_SECOND;
        let free = self.0.map_or(now, |free| free.max(now));
        let wait = free - now;
        if wait >= interval * WAITING_MAX {
            return None;
        }
        self.0 = Some(free + interval);
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_have_a_pace_and_a_bounded_queue() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        let turns: Vec<_> = (0..1_500).map(|_| pace.turn(now)).collect();
        assert_eq!(turns[0], Some(Duration::ZERO));
        assert_eq!(turns[200], Some(Duration::from_secs(1)));
        assert_eq!(turns[999], Some(Duration::from_millis(4_995)));
        assert!(turns[1_000..].iter().all(Option::is_none));
        let later = now + Duration::from_secs(1);
        let more: Vec<_> = (0..300).filter_map(|_| pace.turn(later)).collect();
        assert_eq!(more.len(), 200);
        let idle = later + Duration::from_secs(60);
        assert_eq!(pace.turn(idle), Some(Duration::ZERO));
    }
}
