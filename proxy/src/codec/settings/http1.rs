//! Limits and timeouts of HTTP/1 connections.

use std::time::Duration;

use crate::codec::check::Http10;

/// Limits and timeouts of HTTP/1 connections.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether HTTP/1.0 is served. Default: yes.
    pub http10: Http10,
    /// Maximum bytes of a request head, and of a trailer section; beyond it, 431. Default: 60 KiB.
    pub head_bytes_max: usize,
    /// Maximum header fields of a request; beyond it, 431. Default: 100.
    pub headers_max: usize,
    /// Time from the first byte of a request head to its last; after it, 408. Default: 10 s.
    pub head_timeout: Duration,
    /// Time without progress while the peer owes bytes of a request body, or does not read a response; after it, the
    /// connection is closed. Default: 5 min.
    pub body_timeout: Duration,
    /// Idle time after which a connection releases its memory; at once if its previous pause was longer. Default: 1 s.
    pub park_after: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            http10: Http10::Accept,
            head_bytes_max: 60 * 1024,
            headers_max: 100,
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(300),
            park_after: Duration::from_secs(1),
        }
    }
}
