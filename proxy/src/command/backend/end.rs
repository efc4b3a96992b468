//! Signals that end the command; the first process of a container must handle them itself.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Maximum time for connections to finish after the signal.
pub(super) const DRAIN_MAX: Duration = Duration::from_secs(5);

/// SIGTERM and SIGINT.
pub(super) struct End {
    terminate: Signal,
    interrupt: Signal,
}

impl End {
    /// Registers the signal handlers.
    pub(super) fn listen() -> Result<Self, String> {
        let listen = |kind| signal(kind).map_err(|error| format!("cannot handle signals: {error}"));
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal.
    pub(super) async fn signal(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => (),
            _ = self.interrupt.recv() => (),
        }
    }
}
