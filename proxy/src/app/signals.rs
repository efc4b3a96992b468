//! Signals of the operating system.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::start_error::{StartError, broken};

/// Action that a signal requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignalAction {
    /// SIGTERM, SIGINT: end the process.
    End,
    /// SIGHUP: read all files again, reopen logs.
    Reload,
    /// SIGUSR1: reopen logs, as log rotation expects.
    Reopen,
}

/// Signals for reloading, which no longer end the process.
pub(super) struct ReloadSignals {
    hangup: Signal,
    user: Signal,
}

impl ReloadSignals {
    /// Registers the handlers. Signals that arrive during the start are handled once the proxy serves.
    pub(super) fn listen() -> Result<Self, StartError> {
        Ok(Self {
            hangup: heard(SignalKind::hangup(), "SIGHUP")?,
            user: heard(SignalKind::user_defined1(), "SIGUSR1")?,
        })
    }

    /// Also handles the signals that end the proxy. Before this call they end the process at once, even if its start is
    /// blocked.
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

/// All signals that the proxy handles.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    reload: ReloadSignals,
}

impl Signals {
    /// Waits for the next signal.
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
