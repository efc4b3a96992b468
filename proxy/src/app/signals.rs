//! Signals of the operating system.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::start_error::{StartError, broken};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignalAction {
    /// SIGTERM, SIGINT: end.
    End,
    /// SIGHUP: look at all files, reopen logs.
    Reload,
    /// SIGUSR1: reopens logs, as log rotation expects.
    Reopen,
}

/// The signals for reloading, which no longer end the process.
pub(super) struct ReloadSignals {
    hangup: Signal,
    user: Signal,
}

impl ReloadSignals {
    /// Listens for them. Signals that come while the proxy starts are handled once it serves.
    pub(super) fn listen() -> Result<Self, StartError> {
        Ok(Self {
            hangup: heard(SignalKind::hangup(), "SIGHUP")?,
            user: heard(SignalKind::user_defined1(), "SIGUSR1")?,
        })
    }

    /// Listens also for the signals that end the proxy. Until then they end the process at once, even if its start
    /// waits for something.
    pub(super) fn and_end(self) -> Result<Signals, StartError> {
        Ok(Signals {
            terminate: heard(SignalKind::terminate(), "SIGTERM")?,
            interrupt: heard(SignalKind::interrupt(), "SIGINT")?,
            reload: self,
        })
    }
}

fn heard(kind: SignalKind, name: &str) -> Result<Signal, StartError> {
    signal(kind).map_err(broken(&format!("cannot listen for {name}")))
}

/// All signals that are listened for.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    reload: ReloadSignals,
}

impl Signals {
    /// Waits for the next one.
    pub(super) async fn next(&mut self) -> SignalAction {
        tokio::select! {
            _ = self.terminate.recv() => SignalAction::End,
            _ = self.interrupt.recv() => SignalAction::End,
            _ = self.reload.hangup.recv() => SignalAction::Reload,
            _ = self.reload.user.recv() => SignalAction::Reopen,
        }
    }

    /// Waits for a signal to end; ignores others.
    pub(super) async fn end(&mut self) {
        while self.next().await != SignalAction::End {}
    }
}
