//! Finds out by PING whether a silent peer is still there. Pure: times are given, counted from any beginning.

use std::time::Duration;

/// When a silent peer is asked, and how long it may take to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeepAlive {
    /// Time without a byte after which it is asked.
    pub interval: Duration,
    /// Time for the answer.
    pub timeout: Duration,
}

/// The state of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Pulse {
    settings: KeepAlive,
    /// Since when bytes have not moved.
    silent_since: Duration,
    moved: u32,
    pongs: u32,
    /// When a PING was sent that is not answered.
    asked: Option<Duration>,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// The peer is gone.
    Dead,
    /// It is to be asked.
    Ping,
    /// Nothing until then.
    Wait(Duration),
}

impl Pulse {
    /// The pulse of a connection that begins now.
    pub fn new(settings: KeepAlive, now: Duration) -> Self {
        Self {
            settings,
            silent_since: now,
            moved: 0,
            pongs: 0,
            asked: None,
        }
    }

    /// What is to be done now. `moved` changes whenever bytes have moved, `pongs` with every answer.
    pub fn decide(&mut self, moved: u32, pongs: u32, now: Duration) -> Beat {
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
            _ if now < due => Beat::Wait(due),
            Some(_) => Beat::Dead,
            None => {
                self.asked = Some(now);
                Beat::Ping
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
        let mut pulse = Pulse::new(settings, at(0));
        assert_eq!(pulse.decide(0, 0, at(4)), Beat::Wait(at(10)));
        assert_eq!(pulse.decide(1, 0, at(6)), Beat::Wait(at(16)));
        assert_eq!(pulse.decide(1, 0, at(16)), Beat::Ping);
        assert_eq!(pulse.decide(1, 0, at(16)), Beat::Wait(at(21)));
        // it answers
        assert_eq!(pulse.decide(2, 1, at(20)), Beat::Wait(at(30)));
        assert_eq!(pulse.decide(2, 1, at(30)), Beat::Ping);
        assert_eq!(pulse.decide(2, 1, at(34)), Beat::Wait(at(35)));
        assert_eq!(pulse.decide(2, 1, at(35)), Beat::Dead);
    }
}
