//! Bytes of responses that wait for one client to read, with the gauge of the worker.

use super::server::Server;
use crate::telemetry::Gauge;

/// Bytes that wait. None are left once this is dropped.
pub(super) struct HeldOutput<'a, A> {
    server: &'a Server<A>,
    bytes: usize,
}

impl<'a, A> HeldOutput<'a, A> {
    /// Begins without a byte.
    pub(super) fn new(server: &'a Server<A>) -> Self {
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

impl<A> Drop for HeldOutput<'_, A> {
    fn drop(&mut self) {
        self.set(0);
    }
}
