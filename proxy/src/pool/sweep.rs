//! Closes connections that are no longer useful.

use std::rc::Rc;

use tokio::time::Instant;

use super::endpoint_pool::EndpointPool;

impl EndpointPool {
    /// Whether the pool is retired: its endpoint or its TLS settings are gone.
    pub(super) fn is_gone(&self) -> bool {
        let tls = self.tls.as_ref();
        self.endpoint.strong_count() == 0 || tls.is_some_and(|tls| tls.strong_count() == 0)
    }

    /// Closes connections that were idle for too long; returns whether the pool is still needed.
    pub(super) fn sweep(self: &Rc<Self>, now: Instant, gone: bool) -> bool {
        self.http1.sweep(self, now, gone);
        self.http2.sweep(self, now, gone);
        if self.cluster.connections.is_crowded() {
            self.answer();
        }
        // a pool in use is held by its requests
        !(gone || self.http1.is_empty() && self.http2.is_empty()) || Rc::strong_count(self) > 1
    }

    pub(super) fn answer(&self) {
        self.http1.answer(self);
        self.http2.answer(self);
    }
}
