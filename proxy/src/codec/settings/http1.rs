//! Limits and timeouts of HTTP/1 connections.

use std::time::Duration;

use crate::codec::check::Http10;

/// Limits and timeouts of HTTP/1 connections.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Whether HTTP/1.0 is served. Default: yes.
    pub http10: Http10,
    /// Bytes of a request head with all its header fields, and of a trailer section; past it, 431. Default: 60 KiB.
    pub head_bytes_max: usize,
    /// Header fields of a request; past it, 431. Default: 100.
    pub headers_max: usize,
    /// Time from the first byte of a request head to its last; past it, 408. Default: 10 s.
    pub head_timeout: Duration,
    /// Time without a byte moving while the peer owes us bytes of a request body, or does not take bytes of a response;
    /// past it, the connection is closed. Default: 5 min.
    pub body_timeout: Duration,
    /// Time between requests after which a connection gives its memory back; at once if the pause before was longer.
    /// Default: 1 s.
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
