//! Counts the handshakes that a worker has in progress.

use std::cell::Cell;
use std::rc::Rc;

/// Number of handshakes of a worker in progress.
#[derive(Debug, Default)]
pub(in crate::codec) struct Pending(Rc<Cell<usize>>);

/// A handshake in progress; dropping it decrements the count.
pub(in crate::codec) struct HandshakePermit(Rc<Cell<usize>>);

impl Pending {
    /// Counts one more handshake; `None` at the limit.
    pub(in crate::codec) fn begin(&self, max: usize) -> Option<HandshakePermit> {
        if self.0.get() >= max {
            return None;
        }
        self.0.set(self.0.get() + 1);
        Some(HandshakePermit(Rc::clone(&self.0)))
    }
}

impl Drop for HandshakePermit {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
