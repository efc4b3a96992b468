//! Two clocks of a worker that are cheaper than the system's: a coarse one, and one that stands still during a turn.
//!
//! [`Clock`] counts ticks, for timeouts that need not be exact. It moves only when its owner calls [`Clock::advance`],
//! which the worker does at every tick while it has connections.
//!
//! [`now`] reads the system's clock at most once in a [`Turn`], which is one poll of a connection's task: all calls
//! within a turn, some microseconds apart, return the same time.

use std::cell::Cell;
use std::time::Duration;

use tokio::time::Instant;

/// Length of a tick, and the precision of timeouts on this clock.
pub const TICK: Duration = Duration::from_millis(100);

/// Ticks per second, a whole number so that a delay is converted without a 128-bit division.
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
        // One more: the current tick has partly elapsed.
        let ticks = of_seconds.saturating_add(u64::from(of_rest) + 1);
        Self(self.0.saturating_add(ticks))
    }
}

thread_local! {
    // Not part of the worker: codecs, records and pools call `now`, and share no object that could hold it.
    static TURN: TurnClock = const { TurnClock::new() };
}

/// Clock that stands still during a turn.
#[derive(Debug)]
struct TurnClock(Cell<Reading>);

impl TurnClock {
    const fn new() -> Self {
        Self(Cell::new(Reading::OutOfTurn))
    }
}

/// Time of the current turn of a thread.
#[derive(Clone, Copy, Debug)]
enum Reading {
    At(Instant),
    OutOfTurn,
    Unread,
}

/// Guard of one turn of a connection's task; dropping it ends the turn. Turns are not nested.
#[derive(Debug)]
pub struct Turn(());

impl Turn {
    /// Begins a turn, in which [`now`] stands still.
    pub fn begin() -> Self {
        TURN.with(|clock| clock.0.set(Reading::Unread));
        Self(())
    }

    /// Begins a turn at this time, which a simulation decides.
    pub fn at(now: Instant) -> Self {
        TURN.with(|clock| clock.0.set(Reading::At(now)));
        Self(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        TURN.with(|clock| clock.0.set(Reading::OutOfTurn));
    }
}

/// Returns the current time: in a turn, the time of the turn's first call; otherwise that of the system's clock.
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

/// Coarse clock of one thread.
#[derive(Debug)]
pub struct Clock {
    start: Instant,
    now: Cell<Tick>,
}

impl Clock {
    /// Makes a clock at tick zero.
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            now: Cell::new(Tick(0)),
        }
    }

    /// Returns the time of the last [`Clock::advance`].
    #[inline]
    pub fn now(&self) -> Tick {
        self.now.get()
    }

    /// Reads the system's clock and returns the new time.
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
