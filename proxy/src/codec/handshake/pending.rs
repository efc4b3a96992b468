//! How many handshakes a worker has in progress.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// Limits of handshakes.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Time from accept to the end of the handshake, the client's first message included. Default: 15 s.
    pub timeout: Duration,
    /// Handshakes that a worker has in progress at once; past it, connections are closed. Default: 4,096.
    pub pending_max: usize,
    /// Whether `x-forwarded-client-cert` has the certificate itself. Default: yes, at a sidecar no.
    pub forward_certificate: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(15),
            pending_max: 4096,
            forward_certificate: true,
        }
    }
}

/// Counts the handshakes of a worker that are not over.
#[derive(Debug, Default)]
pub(in crate::codec) struct Pending(Rc<Cell<usize>>);

/// A handshake that is not over; counted out when dropped.
pub(super) struct Begun(Rc<Cell<usize>>);

impl Pending {
    /// Counts one more, unless that is too many.
    pub(super) fn begin(&self, max: usize) -> Option<Begun> {
        if self.0.get() >= max {
            return None;
        }
        self.0.set(self.0.get() + 1);
        Some(Begun(Rc::clone(&self.0)))
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
