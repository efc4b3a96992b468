//! What the process is told by signals.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{StartError, broken};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// SIGTERM, SIGINT: end.
    End,
    /// SIGHUP: look at all files, reopen logs.
    Reload,
    /// SIGUSR1: reopens logs, as log rotation expects.
    Reopen,
}

/// The signals that ask a running proxy for something, from here on instead of ending the process.
pub(super) struct ReloadSignals {
    hangup: Signal,
    user: Signal,
}

impl ReloadSignals {
    /// Listens for them. They may come while the proxy starts; it looks at them once it serves.
    pub(super) fn listen() -> Result<Self, StartError> {
        Ok(Self {
            hangup: heard(SignalKind::hangup(), "SIGHUP")?,
            user: heard(SignalKind::user_defined1(), "SIGUSR1")?,
        })
    }

    /// Listens also for the signals that end the proxy. Before that they end the process at once, also where its start
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
    pub(super) async fn next(&mut self) -> Told {
        tokio::select! {
            _ = self.terminate.recv() => Told::End,
            _ = self.interrupt.recv() => Told::End,
            _ = self.reload.hangup.recv() => Told::Reload,
            _ = self.reload.user.recv() => Told::Reopen,
        }
    }

    /// Waits for one to end; others mean nothing any more.
    pub(super) async fn end(&mut self) {
        while self.next().await != Told::End {}
    }
}
