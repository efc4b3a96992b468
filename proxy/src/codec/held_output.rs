//! Bytes of responses that wait for one client to read, with the gauge of the worker.

use std::rc::Rc;

use super::server::Server;
use crate::telemetry::Gauge;

/// Bytes that wait. None are left once this is dropped.
pub(super) struct HeldOutput<A> {
    server: Rc<Server<A>>,
    bytes: usize,
}

impl<A> HeldOutput<A> {
    /// Begins without a byte.
    pub(super) fn new(server: &Rc<Server<A>>) -> Self {
        let server = Rc::clone(server);
        Self { server, bytes: 0 }
    }

    /// Changes the number.
    pub(super) fn set(&mut self, bytes: usize) {
        if bytes != self.bytes {
            let by = bytes.wrapping_sub(self.bytes).cast_signed();
            let counters = &self.server.telemetry.counters;
            counters.shift(self.server.worker, Gauge::BufferedForClients, by as i64);
            self.bytes = bytes;
        }
    }
}

impl<A> Drop for HeldOutput<A> {
    fn drop(&mut self) {
        self.set(0);
    }
}
