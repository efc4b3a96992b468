//! Timeouts of downstream connections.

use std::time::Duration;

use super::http1::Settings as Http1Settings;
use crate::codec::watchdog;

/// Timeouts of connections of any protocol.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// Time without a request after which a connection is closed. Default: 1 h.
    pub idle: Duration,
    /// The same during a drain, for HTTP/1: long enough for a request that is already sent. Default: 1 s.
    pub drain_idle: Duration,
    /// Time after which an HTTP connection takes no further request. Default: none.
    pub duration_max: Option<Duration>,
    /// Time to finish once the listener was closed or the proxy drains. Default: 45 s.
    pub drain: Duration,
    /// Time to finish for a connection that a changed security policy forbids. Default: 45 s.
    pub policy_drain: Duration,
    /// Time for a client of a sidecar to speak first on a port whose protocol is not declared; after it, the connection
    /// is proxied as raw TCP. Default: 5 s.
    pub detection: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(3600),
            duration_max: None,
            drain_idle: Duration::from_secs(1),
            drain: Duration::from_secs(45),
            policy_drain: Duration::from_secs(45),
            detection: Duration::from_secs(5),
        }
    }
}

impl Timeouts {
    pub(in crate::codec) fn http1(
        &self,
        http1: &Http1Settings,
        park_after: Option<Duration>,
    ) -> watchdog::Timeouts {
        watchdog::Timeouts {
            head: http1.head_timeout,
            body: http1.body_timeout,
            park_after,
            drain_idle: self.drain_idle,
            drain: self.drain,
        }
    }
}
