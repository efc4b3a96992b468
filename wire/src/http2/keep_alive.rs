//! Detects a dead peer by PINGs. Pure: times are passed in, relative to any start.

use std::time::Duration;

/// Timing of PINGs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeepAlive {
    /// Time without a byte before a PING.
    pub interval: Duration,
    /// Time for the answer.
    pub timeout: Duration,
}

/// Keep-alive state of one connection.
#[derive(Clone, Copy, Debug)]
pub struct KeepAliveState {
    settings: KeepAlive,
    /// Time since which no bytes have moved.
    silent_since: Duration,
    moved: u32,
    pongs: u32,
    /// Time of the PING that is not answered yet.
    asked: Option<Duration>,
}

/// Next action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepAliveAction {
    /// Close: the peer is dead.
    Dead,
    /// Send a PING.
    Ping,
    /// Decide again at this time.
    Wait(Duration),
}

impl KeepAliveState {
    /// Returns the state of a connection that begins now.
    pub fn new(settings: KeepAlive, now: Duration) -> Self {
        Self {
            settings,
            silent_since: now,
            moved: 0,
            pongs: 0,
            asked: None,
        }
    }

    /// Returns the next action. `moved` changes whenever bytes move, `pongs` with every answer.
    pub fn decide(&mut self, moved: u32, pongs: u32, now: Duration) -> KeepAliveAction {
        if moved != self.moved {
            self.silent_since = now;
        }
        if pongs != self.pongs {
            self.asked = None;
        }
        self.moved = moved;
        self.pongs = pongs;
        let due = match self.asked {
            Some(asked) => asked.saturating_add(self.settings.timeout),
            None => self.silent_since.saturating_add(self.settings.interval),
        };
        match self.asked {
            _ if now < due => KeepAliveAction::Wait(due),
            Some(_) => KeepAliveAction::Dead,
            None => {
                self.asked = Some(now);
                KeepAliveAction::Ping
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_peer_gets_a_ping_and_times_out() {
        let at = Duration::from_secs;
        let settings = KeepAlive {
            interval: at(10),
            timeout: at(5),
        };
        let mut keep_alive = KeepAliveState::new(settings, at(0));
        assert_eq!(
            keep_alive.decide(0, 0, at(4)),
            KeepAliveAction::Wait(at(10))
        );
        assert_eq!(
            keep_alive.decide(1, 0, at(6)),
            KeepAliveAction::Wait(at(16))
        );
        assert_eq!(keep_alive.decide(1, 0, at(16)), KeepAliveAction::Ping);
        assert_eq!(
            keep_alive.decide(1, 0, at(16)),
            KeepAliveAction::Wait(at(21))
        );
        // the peer answers
        assert_eq!(
            keep_alive.decide(2, 1, at(20)),
            KeepAliveAction::Wait(at(30))
        );
        assert_eq!(keep_alive.decide(2, 1, at(30)), KeepAliveAction::Ping);
        assert_eq!(
            keep_alive.decide(2, 1, at(34)),
            KeepAliveAction::Wait(at(35))
        );
        assert_eq!(keep_alive.decide(2, 1, at(35)), KeepAliveAction::Dead);
    }
}
