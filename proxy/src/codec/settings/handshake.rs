//! Limits of TLS handshakes.

use std::time::Duration;

/// Limits of handshakes.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Time from accept to the end of the handshake, including the client hello. Default: 15 s.
    pub timeout: Duration,
    /// Maximum handshakes of a worker in progress; further connections are closed. Default: 4,096.
    pub pending_max: usize,
    /// Whether `x-forwarded-client-cert` includes the certificate itself. Default: yes; at a sidecar, no.
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
