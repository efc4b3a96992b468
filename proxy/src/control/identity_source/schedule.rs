//! Times of requests for a certificate: when one is renewed, and when a request is repeated that failed.
//!
//! Pure: the time and random draws are passed in. Times are of the system's clock, so that a machine that was suspended
//! renews when it wakes up.

use std::time::Duration;

/// Part of its life after which a certificate is renewed, and by how much of its life that is moved at random.
const RENEWAL: f64 = 0.5;
const RENEWAL_SPREAD: f64 = 0.01;

/// Part of a delay by which it is moved at random, so that proxies do not ask at the same time.
const JITTER: f64 = 0.2;

/// First and greatest delay after failures, which double it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delays {
    /// After a failure that may be gone soon.
    pub(super) transient: [Duration; 2],
    /// After the server has refused the credentials.
    pub(super) denied: [Duration; 2],
}

/// Delay after the server has refused the request itself.
const INVALID: [Duration; 2] = [Duration::from_secs(300); 2];

/// Maximum delay of the renewal after the CA certificates have changed, over which proxies are spread.
const ROOTS_SPREAD: Duration = Duration::from_secs(60);

/// Time since 1970.
pub(super) type Time = Duration;

/// Kinds of failures, by what is known about their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The server refused the credentials.
    Denied,
    /// The server refused the request, and would do so again.
    Invalid,
    /// The server did not answer, or not usefully.
    Transient,
}

impl Failure {
    /// Returns the result as metrics have it.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Invalid => "invalid",
            Self::Transient => "failed",
        }
    }
}

/// Time of the next request.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    delays: Delays,
    due: Time,
    /// Time at which `due` was decided.
    decided: Time,
    /// Kind of the last failures, and their number since the last success or another kind.
    failures: Option<(Failure, u32)>,
}

impl Schedule {
    /// Returns a schedule whose first request is due at once.
    pub(super) fn new(now: Time, delays: Delays) -> Self {
        Self {
            delays,
            due: now,
            decided: now,
            failures: None,
        }
    }

    /// Time until the next request; zero if it is due. A clock that was set back does not postpone it.
    pub(super) fn wait(&self, now: Time) -> Duration {
        match now < self.decided {
            true => Duration::ZERO,
            false => self.due.saturating_sub(now),
        }
    }

    /// A certificate was issued that expires at `expires`; `draw` is from 0 to 1.
    pub(super) fn succeeded(&mut self, now: Time, expires: Time, draw: f64) {
        let life = expires.saturating_sub(now);
        let part = RENEWAL + RENEWAL_SPREAD * (2.0 * draw - 1.0);
        self.failures = None;
        self.at(now, life.mul_f64(part));
    }

    /// A stream is established, which needs no further request.
    pub(super) fn established(&mut self) {
        self.failures = None;
    }

    /// A request failed; `draw` is from 0 to 1.
    pub(super) fn failed(&mut self, now: Time, failure: Failure, draw: f64) {
        let before = match self.failures {
            Some((last, count)) if last == failure => count,
            _ => 0,
        };
        self.failures = Some((failure, before.saturating_add(1)));
        let [first, most] = match failure {
            Failure::Denied => self.delays.denied,
            Failure::Invalid => INVALID,
            Failure::Transient => self.delays.transient,
        };
        // more doublings do not change the result
        let delay = most.min(first.saturating_mul(1 << before.min(16)));
        self.at(now, delay.mul_f64(1.0 + JITTER * (draw - 1.0)));
    }

    /// The token has changed: what the old one was refused is asked for again.
    pub(super) fn token_changed(&mut self, now: Time) {
        if self.failures.is_some() {
            self.at(now, Duration::ZERO);
        }
    }

    /// The CA certificates have changed: the certificate is renewed soon, or at once if a request failed; `draw` is from 0
    /// to 1.
    pub(super) fn roots_changed(&mut self, now: Time, draw: f64) {
        let delay = match self.failures {
            Some(_) => Duration::ZERO,
            None => ROOTS_SPREAD.mul_f64(draw),
        };
        if delay < self.wait(now) {
            self.at(now, delay);
        }
    }

    fn at(&mut self, now: Time, delay: Duration) {
        (self.decided, self.due) = (now, now + delay);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Duration::from_secs(1_700_000_000);

    fn schedule() -> Schedule {
        let delays = Delays {
            transient: [seconds(0.1), seconds(60.0)],
            denied: [seconds(5.0), seconds(300.0)],
        };
        Schedule::new(NOW, delays)
    }

    fn seconds(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    #[test]
    fn certificate_is_renewed_at_half_of_its_life() {
        for (life, draw, expected) in [
            (60.0, 0.0, 29.4),
            (60.0, 0.5, 30.0),
            (60.0, 1.0, 30.6),
            (86_400.0, 0.0, 42_336.0),
            (0.0, 1.0, 0.0),
        ] {
            let mut schedule = schedule();
            assert_eq!(schedule.wait(NOW), Duration::ZERO);
            schedule.succeeded(NOW, NOW + seconds(life), draw);
            let wait = schedule.wait(NOW).as_secs_f64();
            assert!((wait - expected).abs() < 0.001, "{life} {draw}: {wait}");
        }
        let mut schedule = schedule();
        schedule.succeeded(NOW, NOW - seconds(5.0), 0.5);
        assert_eq!(schedule.wait(NOW), Duration::ZERO, "expired already");
    }

    #[test]
    fn delays_double_up_to_the_limit_of_the_failure() {
        for (failure, expected) in [
            (Failure::Transient, [0.1, 0.2, 0.4, 0.8, 60.0]),
            (Failure::Denied, [5.0, 10.0, 20.0, 40.0, 300.0]),
            (Failure::Invalid, [300.0, 300.0, 300.0, 300.0, 300.0]),
        ] {
            let mut schedule = schedule();
            let mut waits = Vec::new();
            for _ in 0..100 {
                schedule.failed(NOW, failure, 1.0);
                waits.push(schedule.wait(NOW).as_secs_f64());
            }
            let [.., last] = waits.as_slice() else {
                panic!("there are a hundred");
            };
            assert_eq!([&waits[..4], &[*last]].concat(), expected, "{failure:?}");
        }
        let mut schedule = schedule();
        schedule.failed(NOW, Failure::Denied, 0.0);
        assert_eq!(schedule.wait(NOW), seconds(4.0), "jitter only shortens");
    }

    #[test]
    fn success_and_other_failures_begin_with_the_first_delay() {
        let mut schedule = schedule();
        for _ in 0..5 {
            schedule.failed(NOW, Failure::Transient, 1.0);
        }
        schedule.failed(NOW, Failure::Denied, 1.0);
        assert_eq!(schedule.wait(NOW), seconds(5.0));
        schedule.succeeded(NOW, NOW + seconds(10.0), 0.5);
        schedule.failed(NOW, Failure::Transient, 1.0);
        assert_eq!(schedule.wait(NOW), seconds(0.1));
    }

    #[test]
    fn new_token_or_root_is_tried_at_once_after_a_failure() {
        let mut schedule = schedule();
        schedule.failed(NOW, Failure::Denied, 1.0);
        schedule.token_changed(NOW);
        assert_eq!(schedule.wait(NOW), Duration::ZERO);
        schedule.failed(NOW, Failure::Invalid, 1.0);
        schedule.roots_changed(NOW, 1.0);
        assert_eq!(schedule.wait(NOW), Duration::ZERO);
    }

    #[test]
    fn certificate_is_renewed_within_a_minute_after_roots_changed() {
        let mut schedule = schedule();
        schedule.succeeded(NOW, NOW + seconds(86_400.0), 0.5);
        schedule.token_changed(NOW);
        assert_eq!(schedule.wait(NOW), seconds(43_200.0), "a token waits");
        schedule.roots_changed(NOW, 0.5);
        assert_eq!(schedule.wait(NOW), seconds(30.0));
        schedule.roots_changed(NOW, 1.0);
        assert_eq!(schedule.wait(NOW), seconds(30.0), "never later");
    }

    #[test]
    fn clock_that_is_set_back_does_not_postpone() {
        let mut schedule = schedule();
        schedule.succeeded(NOW, NOW + seconds(60.0), 0.5);
        assert_eq!(schedule.wait(NOW - seconds(3_600.0)), Duration::ZERO);
        assert_eq!(schedule.wait(NOW + seconds(31.0)), Duration::ZERO);
    }
}
