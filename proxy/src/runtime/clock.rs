//! Two clocks of a worker that are cheaper than the system's: one coarse, one that stands still for a turn.
//!
//! [`Clock`] counts ticks, for timeouts that need not be exact. It moves only when its owner calls [`Clock::advance`], which
//! the worker does at every tick while it has connections.
//!
//! [`now`] reads the system's clock at most once in a [`Turn`], which is one poll of a connection's task: what a request asks
//! of the time in one turn, some microseconds apart, gets one answer.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;

/// Length of a tick, and how inexact a timeout on this clock is.
pub const TICK: Duration = Duration::from_millis(100);

/// A second is a whole number of ticks, so that a delay becomes ticks without dividing 128 bits.
const TICKS_PER_SECOND: u64 = 1_000_000_000 / TICK.subsec_nanos() as u64;

const _: () = assert!(TICK.as_secs() == 0 && 1_000_000_000 % TICK.subsec_nanos() == 0);

/// A point in time: ticks since the clock was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tick(pub u64);

impl Tick {
    /// A time that never comes.
    pub const NEVER: Self = Self(u64::MAX);

    /// The first tick at which at least `delay` has passed.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        let of_seconds = delay.as_secs().saturating_mul(TICKS_PER_SECOND);
        let of_rest = delay.subsec_nanos().div_ceil(TICK.subsec_nanos());
        // One more: the present tick has partly gone by.
        let ticks = of_seconds.saturating_add(u64::from(of_rest) + 1);
        Self(self.0.saturating_add(ticks))
    }
}

thread_local! {
    // Not in the worker's keeping: codecs, records and pools ask, which have nothing in common that could hold it.
    static TURN: TurnClock = const { TurnClock::new() };
}

/// The clock that stands still for a turn.
#[derive(Debug)]
struct TurnClock(Cell<Reading>);

impl TurnClock {
    const fn new() -> Self {
        Self(Cell::new(Reading::OutOfTurn))
    }
}

/// The time of the turn that a thread is in.
#[derive(Clone, Copy, Debug)]
enum Reading {
    At(Instant),
    OutOfTurn,
    Unread,
}

/// One turn of a connection's task, until it is dropped. Turns are not nested.
#[derive(Debug)]
pub struct Turn(());

impl Turn {
    /// Begins a turn, in which [`now`] stands still.
    pub fn begin() -> Self {
        TURN.with(|clock| clock.0.set(Reading::Unread));
        Self(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        TURN.with(|clock| clock.0.set(Reading::OutOfTurn));
    }
}

/// The time: in a turn, that of its first call. Out of turn, that of the system's clock.
#[inline]
pub fn now() -> Instant {
    TURN.with(|clock| match clock.0.get() {
        Reading::At(now) => now,
        Reading::OutOfTurn => Instant::now(),
        Reading::Unread => {
            let now = Instant::now();
            clock.0.set(Reading::At(now));
            now
        }
    })
}

/// Coarse time of one thread.
#[derive(Debug)]
pub struct Clock {
    start: Instant,
    now: Cell<Tick>,
}

impl Clock {
    /// A clock that stands at tick zero.
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            now: Cell::new(Tick(0)),
        }
    }

    /// The time of the last [`Clock::advance`].
    #[inline]
    pub fn now(&self) -> Tick {
        self.now.get()
    }

    /// Reads the system's clock; returns the new time.
    pub fn advance(&self) -> Tick {
        let ticks = self.start.elapsed().as_nanos() / TICK.as_nanos();
        let now = Tick(u64::try_from(ticks).unwrap_or(u64::MAX));
        self.now.set(now);
        now
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn clock_moves_only_when_advanced() {
        let clock = Clock::new();
        tokio::time::advance(Duration::from_millis(350)).await;
        assert_eq!(clock.now(), Tick(0));
        assert_eq!(clock.advance(), Tick(3));
        assert_eq!(clock.now(), Tick(3));
    }

    #[tokio::test(start_paused = true)]
    async fn time_stands_still_for_a_turn_only() {
        let step = Duration::from_millis(7);
        let (start, turn) = (now(), Turn::begin());
        tokio::time::advance(step).await;
        let first = now();
        assert_eq!(first, start + step, "it is read in the turn");
        tokio::time::advance(step).await;
        assert_eq!(now(), first);
        drop(turn);
        assert_eq!(now(), first + step);
        let turn = Turn::begin();
        assert_eq!(now(), first + step);
        drop(turn);
        tokio::time::advance(step).await;
        assert_eq!(now(), first + 2 * step);
    }

    #[test]
    fn deadline_never_fires_early() {
        assert_eq!(Tick(5).after(Duration::from_millis(100)), Tick(7));
        assert_eq!(Tick(5).after(Duration::from_millis(101)), Tick(8));
        for millis in [0, 1, 99, 100, 199, 999, 1000, 1001, 59_950, 3_600_000] {
            let delay = Duration::from_millis(millis);
            assert_eq!(
                Tick(0).after(delay),
                Tick(millis.div_ceil(100) + 1),
                "{delay:?}"
            );
        }
        assert_eq!(Tick(0).after(Duration::from_nanos(1)), Tick(2));
        assert_eq!(Tick(5).after(Duration::MAX), Tick::NEVER);
    }
}
