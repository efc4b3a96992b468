//! What the process is told by signals.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{StartError, broken};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// SIGTERM, SIGINT: end.
    End,
    /// SIGHUP: look at all files, open logs anew.
    Reload,
    /// SIGUSR1: open logs anew, as log rotation expects.
    Reopen,
}

/// The signals that are listened for, from here on instead of what they do by themselves.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    user: Signal,
}

impl Signals {
    pub(super) fn listen() -> Result<Self, StartError> {
        let heard =
            |kind, name: &str| signal(kind).map_err(broken(&format!("cannot listen for {name}")));
        Ok(Self {
            terminate: heard(SignalKind::terminate(), "SIGTERM")?,
            interrupt: heard(SignalKind::interrupt(), "SIGINT")?,
            hangup: heard(SignalKind::hangup(), "SIGHUP")?,
            user: heard(SignalKind::user_defined1(), "SIGUSR1")?,
        })
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.terminate.recv() => Told::End,
            _ = self.interrupt.recv() => Told::End,
            _ = self.hangup.recv() => Told::Reload,
            _ = self.user.recv() => Told::Reopen,
        }
    }

    /// Waits for one to end; others mean nothing any more.
    pub(super) async fn end(&mut self) {
        while self.next().await != Told::End {}
    }
}
