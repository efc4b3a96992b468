//! Decides whether an HTTP/1 connection waits, parks, closes or rejects its request.
//!
//! Pure: observations and the time are passed in. Invariant: a connection is parked or closed for idleness only when no
//! request is in flight and no byte is unread or unflushed, so nothing can be lost.

use std::time::Duration;

use super::park::{LINGER, LINGER_PAUSE, LINGER_SHORT};
use super::refusal::Refusal;
use crate::runtime::clock::Tick;

/// Position in the requests at which the received bytes end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamPosition {
    /// Between two requests.
    Between,
    /// Inside a body.
    Body,
    /// Inside a head.
    Head,
}

/// Timeouts of an HTTP/1 connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the first byte of a request head to its last.
    pub head: Duration,
    /// Without progress while the peer owes body bytes or does not read available bytes.
    pub body: Duration,
    /// Between requests, until the connection releases its memory; at once if `None`.
    pub park_after: Option<Duration>,
    /// Between requests during a drain, until the connection is closed.
    pub drain_idle: Duration,
    /// From the beginning of a drain until the connection is closed in any state.
    pub drain: Duration,
}

/// Observations of a connection at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionActivity {
    /// Request heads read so far.
    pub heads: u32,
    /// Requests whose response is not complete.
    pub in_flight: u32,
    /// Position of the received bytes.
    pub place: StreamPosition,
    /// Whether bytes wait to be written.
    pub unflushed: bool,
    /// Whether the connection waits for bytes of the peer.
    pub starved: bool,
    /// Whether reading is paused, so that the peer's end is not seen.
    pub blocked: bool,
    /// Whether the peer closed its direction within a request body, or after a malformed one.
    pub cut_off: bool,
    /// Counter of reads and writes that moved bytes.
    pub moved: u32,
    /// Beginning of the drain, if any.
    pub draining: Option<Tick>,
}

/// Interval of checks for a closed peer while reading is paused.
const PEER_CHECK: Duration = Duration::from_secs(1);

/// Time left for a request whose body the peer cut off. The reader of the body learns of it at once, and may reply.
const CUT_OFF_GRACE: Duration = Duration::from_secs(1);

/// Next action for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Close without a reply.
    Close,
    /// Keep the socket, release everything else.
    Park,
    /// Reply with the refusal's status and close.
    Refuse(Refusal),
    /// Decide again at this time.
    Wait(Tick),
}

/// State of a connection, as far as timeouts depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionState {
    /// Response sent; the peer is still sending the request.
    Answered,
    /// Request in flight; the proxy works on it.
    Busy,
    /// Request in flight whose rest will never arrive.
    CutOff,
    /// Receiving a request head.
    Head,
    /// Between requests.
    Idle,
    /// The peer owes body bytes, or does not read available ones.
    Stalled,
}

impl ConnectionActivity {
    fn state(&self) -> ConnectionState {
        if self.place == StreamPosition::Body && self.in_flight == 0 && !self.unflushed {
            return ConnectionState::Answered;
        }
        if self.cut_off && self.in_flight > 0 && !self.unflushed {
            return ConnectionState::CutOff;
        }
        if self.unflushed || (self.place == StreamPosition::Body && self.starved) {
            return ConnectionState::Stalled;
        }
        match self.place {
            StreamPosition::Between if self.in_flight == 0 => ConnectionState::Idle,
            StreamPosition::Head if self.in_flight == 0 => ConnectionState::Head,
            _ => ConnectionState::Busy,
        }
    }
}

/// Tracks the time of a connection in its current state.
#[derive(Clone, Copy, Debug)]
pub struct Watchdog {
    since: Tick,
    /// Time at which bytes last moved, as of the last decision.
    moved_at: Tick,
    state: ConnectionState,
    heads: u32,
    moved: u32,
}

impl Watchdog {
    /// Begins to watch.
    pub fn new(now: Tick) -> Self {
        Self {
            since: now,
            moved_at: now,
            state: ConnectionState::Idle,
            heads: 0,
            moved: 0,
        }
    }

    /// Returns the action for a connection on which no progress is possible now.
    pub fn decide(&mut self, seen: &ConnectionActivity, timeouts: &Timeouts, now: Tick) -> Action {
        let state = seen.state();
        if state != self.state || seen.heads != self.heads {
            (self.since, self.moved_at) = (now, now);
        } else if seen.moved != self.moved {
            self.moved_at = now;
        }
        self.state = state;
        self.heads = seen.heads;
        self.moved = seen.moved;
        let end = seen
            .draining
            .map_or(Tick::NEVER, |since| since.after(timeouts.drain));
        if now >= end {
            return Action::Close;
        }
        let (due, then) = match (state, seen.draining) {
            (ConnectionState::Answered, None) => {
                let due = self.moved_at.after(LINGER_PAUSE);
                (due.min(self.since.after(LINGER)), Action::Close)
            }
            (ConnectionState::Answered, Some(drain)) => {
                (self.since.max(drain).after(LINGER_SHORT), Action::Close)
            }
            (ConnectionState::Busy, _) => (end, Action::Close),
            (ConnectionState::CutOff, _) => (self.since.after(CUT_OFF_GRACE), Action::Close),
            (ConnectionState::Head, _) => (
                self.since.after(timeouts.head),
                Action::Refuse(Refusal::HeadTimeout),
            ),
            (ConnectionState::Stalled, _) => (
                self.moved_at.after(timeouts.body),
                Action::Refuse(Refusal::BodyTimeout),
            ),
            (ConnectionState::Idle, None) => {
                let due = timeouts
                    .park_after
                    .map_or(now, |wait| self.since.after(wait));
                (due, Action::Park)
            }
            (ConnectionState::Idle, Some(drain)) => (
                self.since.max(drain).after(timeouts.drain_idle),
                Action::Close,
            ),
        };
        let check = match seen.blocked {
            true => now.after(PEER_CHECK),
            false => Tick::NEVER,
        };
        if now >= due {
            then
        } else {
            Action::Wait(due.min(end).min(check))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: Timeouts = Timeouts {
        head: Duration::from_secs(10),
        body: Duration::from_secs(300),
        park_after: Some(Duration::from_secs(1)),
        drain_idle: Duration::from_secs(2),
        drain: Duration::from_secs(30),
    };

    const IDLE: ConnectionActivity = ConnectionActivity {
        heads: 1,
        in_flight: 0,
        place: StreamPosition::Between,
        unflushed: false,
        starved: true,
        blocked: false,
        cut_off: false,
        moved: 9,
        draining: None,
    };

    /// Keeps the same observation from tick 0 on; returns the first action and its second (rounded down).
    fn outcome(seen: ConnectionActivity) -> Option<(u64, Action)> {
        let mut watchdog = Watchdog::new(Tick(0));
        watchdog.decide(&seen, &TIMEOUTS, Tick(0));
        (0..10_000).find_map(|tick| match watchdog.decide(&seen, &TIMEOUTS, Tick(tick)) {
            Action::Wait(due) => {
                assert!(due > Tick(tick));
                None
            }
            action => Some((tick / 10, action)),
        })
    }

    #[test]
    fn each_connection_state_has_its_timeout() {
        use ConnectionActivity as Activity;
        let draining = Some(Tick(0));
        let head = Activity {
            place: StreamPosition::Head,
            ..IDLE
        };
        let busy = Activity {
            in_flight: 1,
            ..IDLE
        };
        let body = Activity {
            place: StreamPosition::Body,
            ..busy
        };
        let stuck = Activity {
            unflushed: true,
            ..IDLE
        };
        let answered = Activity {
            in_flight: 0,
            starved: false,
            ..body
        };
        for (seen, expected) in [
            (IDLE, Some((1, Action::Park))),
            (Activity { draining, ..IDLE }, Some((2, Action::Close))),
            (busy, None),
            (Activity { draining, ..busy }, Some((30, Action::Close))),
            (head, Some((10, Action::Refuse(Refusal::HeadTimeout)))),
            (
                Activity {
                    in_flight: 1,
                    ..head
                },
                None,
            ),
            (body, Some((300, Action::Refuse(Refusal::BodyTimeout)))),
            (
                Activity {
                    starved: false,
                    ..body
                },
                None,
            ),
            (stuck, Some((300, Action::Refuse(Refusal::BodyTimeout)))),
            (answered, Some((5, Action::Close))),
            (
                Activity {
                    starved: true,
                    ..answered
                },
                Some((5, Action::Close)),
            ),
            (
                Activity {
                    draining,
                    ..answered
                },
                Some((1, Action::Close)),
            ),
        ] {
            assert_eq!(outcome(seen), expected, "{seen:?}");
        }
    }

    #[test]
    fn request_whose_body_was_cut_off_ends_soon_unless_it_is_being_answered() {
        let waits = ConnectionActivity {
            in_flight: 1,
            place: StreamPosition::Body,
            blocked: true,
            cut_off: true,
            ..IDLE
        };
        assert_eq!(outcome(waits), Some((1, Action::Close)));
        let unflushed = ConnectionActivity {
            unflushed: true,
            ..waits
        };
        let refused = Action::Refuse(Refusal::BodyTimeout);
        assert_eq!(outcome(unflushed), Some((300, refused)));
    }

    #[test]
    fn idle_connection_parks_at_once_without_a_delay() {
        let timeouts = Timeouts {
            park_after: None,
            ..TIMEOUTS
        };
        let decide =
            |seen: ConnectionActivity| Watchdog::new(Tick(5)).decide(&seen, &timeouts, Tick(5));
        assert_eq!(decide(IDLE), Action::Park);
        let in_flight = ConnectionActivity {
            in_flight: 1,
            ..IDLE
        };
        assert_eq!(decide(in_flight), Action::Wait(Tick::NEVER));
    }

    #[test]
    fn slow_head_times_out_and_slow_body_does_not() {
        let mut watchdog = Watchdog::new(Tick(0));
        let head = ConnectionActivity {
            place: StreamPosition::Head,
            ..IDLE
        };
        let at = |tick: u64, seen: ConnectionActivity| ConnectionActivity {
            moved: u32::try_from(tick).unwrap(),
            ..seen
        };
        let refused = (0..200).find(|tick| {
            let action = watchdog.decide(&at(*tick, head), &TIMEOUTS, Tick(*tick));
            !matches!(action, Action::Wait(_))
        });
        assert_eq!(refused, Some(101));
        let body = ConnectionActivity {
            place: StreamPosition::Body,
            in_flight: 1,
            ..IDLE
        };
        let mut watchdog = Watchdog::new(Tick(0));
        for tick in 0..10_000 {
            let action = watchdog.decide(&at(tick, body), &TIMEOUTS, Tick(tick));
            assert!(matches!(action, Action::Wait(_)), "{tick}: {action:?}");
        }
    }

    #[test]
    fn request_body_after_its_response_has_thirty_seconds() {
        let mut watchdog = Watchdog::new(Tick(0));
        let closed = (0..1_000).find(|tick| {
            let seen = ConnectionActivity {
                place: StreamPosition::Body,
                moved: u32::try_from(*tick).unwrap(),
                ..IDLE
            };
            watchdog.decide(&seen, &TIMEOUTS, Tick(*tick)) == Action::Close
        });
        assert_eq!(closed, Some(301));
    }

    #[test]
    fn request_between_two_checks_restarts_the_idle_time() {
        let mut watchdog = Watchdog::new(Tick(0));
        watchdog.decide(&IDLE, &TIMEOUTS, Tick(0));
        let next = ConnectionActivity { heads: 2, ..IDLE };
        assert_eq!(
            watchdog.decide(&next, &TIMEOUTS, Tick(50)),
            Action::Wait(Tick(61))
        );
    }

    #[test]
    fn drain_grace_of_an_idle_connection_starts_with_the_drain() {
        let mut watchdog = Watchdog::new(Tick(0));
        let seen = ConnectionActivity {
            draining: Some(Tick(40)),
            ..IDLE
        };
        watchdog.decide(&IDLE, &TIMEOUTS, Tick(0));
        assert_eq!(
            watchdog.decide(&seen, &TIMEOUTS, Tick(40)),
            Action::Wait(Tick(61))
        );
    }
}
