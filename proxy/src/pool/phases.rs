//! Phases of an attempt: its progress until it is on a connection, and the time that each phase took.
//!
//! An attempt that finds an idle connection reads no clock for them.

use std::time::Duration;

use tokio::time::Instant;

use crate::runtime::clock;
use crate::upstream::ConnectionInfo;

/// Progress of getting a connection for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// No connection yet.
    #[default]
    Connecting,
    /// On a connection.
    Connected,
    /// Its connection closed, and another one is being opened.
    Reconnecting,
}

/// Phases of an attempt.
#[derive(Clone, Copy, Debug, Default)]
pub struct Phases {
    /// Progress of getting a connection.
    pub phase: Phase,
    /// Whether a pooled connection was closed, and the request was sent again on a fresh one.
    pub is_stale: bool,
    /// Whether a connection was opened for the attempt.
    pub is_opened: bool,
    /// Whether the connection that was opened resumed a session of TLS; `None` in plain text.
    pub resumed: Option<bool>,
    /// Whether the connection that the attempt waits for is being opened.
    is_dialing: bool,
    /// Time since which the attempt waits for a connection, if no idle one was there.
    asked: Option<Instant>,
    wait: Micros,
    connect: Micros,
    tls: Micros,
}

/// Microseconds, at most an hour.
#[derive(Clone, Copy, Debug, Default)]
struct Micros(u32);

impl Micros {
    fn add(&mut self, time: Duration) {
        let micros = u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        self.0 = self.0.saturating_add(micros);
    }

    fn get(self) -> Duration {
        Duration::from_micros(self.0.into())
    }
}

impl Phases {
    /// Time in the queue for a connection.
    pub fn wait(self) -> Duration {
        self.wait.get()
    }

    /// Time until a connection was opened, or failed.
    pub fn connect(self) -> Duration {
        self.connect.get()
    }

    /// Time of the TLS handshake.
    pub fn tls(self) -> Duration {
        self.tls.get()
    }

    /// Time until the request was on its connection.
    pub fn until_sent(self) -> Duration {
        self.wait() + self.connect() + self.tls()
    }

    /// The phases at the end of the attempt, which may have no connection yet.
    #[must_use]
    pub fn ended(mut self) -> Self {
        if let Some(asked) = self.asked.take() {
            let phase = match self.is_dialing {
                true => &mut self.connect,
                false => &mut self.wait,
            };
            phase.add(clock::now() - asked);
        }
        self
    }

    /// The phases of an attempt that goes to another endpoint, because its connection was pending.
    #[must_use]
    pub fn moved(self) -> Self {
        Self {
            phase: Phase::Connecting,
            is_dialing: false,
            ..self
        }
    }

    /// Notes that the request waits for a connection.
    pub(super) fn asks(&mut self) {
        if self.phase == Phase::Connected {
            self.phase = Phase::Reconnecting;
        }
        self.asked.get_or_insert_with(clock::now);
    }

    /// Notes that a connection is being opened for the request.
    pub(super) fn dials(&mut self) {
        self.is_dialing = true;
        if let Some(asked) = &mut self.asked {
            let now = clock::now();
            self.wait.add(now - *asked);
            *asked = now;
        }
    }

    /// Notes that the request has a connection, which others may have opened.
    pub(super) fn connects(&mut self, ends: &ConnectionInfo) {
        self.phase = Phase::Connected;
        let Some(asked) = self.asked.take() else {
            return;
        };
        let opened = &ends.opened;
        let connected = opened.connected.max(asked);
        let connect = connected - opened.begun.max(asked);
        let tls = opened.secured.max(connected) - connected;
        self.is_opened = opened.secured >= asked;
        self.resumed = ends.tls.as_ref().map(|tls| tls.resumed);
        self.is_dialing = false;
        self.connect.add(connect);
        self.tls.add(tls);
        let whole = clock::now() - asked;
        self.wait.add(whole.saturating_sub(connect + tls));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::upstream::connect::ConnectTimes;
    use traffic::registry::Address;

    const STEP: Duration = Duration::from_millis(10);

    async fn steps(number: u32) {
        tokio::time::advance(STEP * number).await;
    }

    fn ends(opened: ConnectTimes) -> ConnectionInfo {
        ConnectionInfo {
            local: None,
            remote: Address::Unix(Path::new("/test").into()),
            tls: None,
            opened,
        }
    }

    fn times(phases: Phases) -> [u32; 3] {
        [phases.wait(), phases.connect(), phases.tls()]
            .map(|time| (time.as_millis() / STEP.as_millis()) as u32)
    }

    #[tokio::test(start_paused = true)]
    async fn each_phase_has_its_time() {
        let mut phases = Phases::default();
        phases.asks();
        steps(1).await;
        phases.dials();
        let mut opened = ConnectTimes::now();
        steps(2).await;
        opened.connects();
        steps(3).await;
        opened.secures();
        phases.connects(&ends(opened));
        steps(4).await;
        let ended = phases.ended();
        assert_eq!(times(ended), [1, 2, 3]);
        assert_eq!(ended.until_sent(), STEP * 6);
        assert!(ended.is_opened);
    }

    #[tokio::test(start_paused = true)]
    async fn connection_of_another_request_is_waited_for() {
        let opened = ConnectTimes::now();
        steps(1).await;
        let mut phases = Phases::default();
        phases.asks();
        steps(2).await;
        phases.connects(&ends(opened));
        assert_eq!(times(phases.ended()), [2, 0, 0]);
        assert!(!phases.is_opened);
    }

    #[tokio::test(start_paused = true)]
    async fn attempt_without_a_connection_ends_in_its_phase() {
        let mut phases = Phases::default();
        phases.asks();
        steps(1).await;
        assert_eq!(times(phases.ended()), [1, 0, 0]);
        phases.dials();
        steps(2).await;
        assert_eq!(times(phases.ended()), [1, 2, 0]);
    }

    #[test]
    fn idle_connection_takes_no_time() {
        let mut phases = Phases::default();
        phases.connects(&ends(ConnectTimes::now()));
        assert_eq!(phases.phase, Phase::Connected);
        assert_eq!(times(phases.ended()), [0, 0, 0]);
    }
}
