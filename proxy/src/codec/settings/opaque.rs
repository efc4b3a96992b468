//! Limits of raw TCP connections.

use std::time::Duration;

use crate::exchange::tcp::IDLE_TIMEOUT;

/// Limits of raw TCP connections.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Time without a byte in either direction after which a connection is closed. Default: 1 h.
    pub idle_timeout: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            idle_timeout: IDLE_TIMEOUT,
        }
    }
}
