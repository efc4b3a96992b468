//! Limits and timeouts of downstream connections.

use super::handshake::Settings as HandshakeSettings;
use super::http1::Settings as Http1Settings;
use super::http2::Settings as Http2Settings;
use super::opaque::Settings as OpaqueSettings;
use super::timeouts::Timeouts;

/// Limits and timeouts of downstream connections.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// HTTP/1.
    pub http1: Http1Settings,
    /// HTTP/2.
    pub http2: Http2Settings,
    /// Neither: raw TCP bytes.
    pub opaque: OpaqueSettings,
    /// TLS.
    pub tls: HandshakeSettings,
    /// Any.
    pub timeouts: Timeouts,
}
