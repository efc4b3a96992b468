//! Limits and timeouts of downstream connections.

pub(crate) mod handshake;
pub(crate) mod http1;
pub(crate) mod http2;
pub(crate) mod opaque;
pub(crate) mod timeouts;

use self::handshake::Settings as HandshakeSettings;
use self::http1::Settings as Http1Settings;
use self::http2::Settings as Http2Settings;
use self::opaque::Settings as OpaqueSettings;
use self::timeouts::Timeouts;
use super::check::Underscores;

/// Limits and timeouts of downstream connections.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// HTTP/1 connections.
    pub http1: Http1Settings,
    /// HTTP/2 connections.
    pub http2: Http2Settings,
    /// Raw TCP connections.
    pub opaque: OpaqueSettings,
    /// TLS handshakes.
    pub tls: HandshakeSettings,
    /// Connections of any protocol.
    pub timeouts: Timeouts,
    /// Treatment of header names with underscores.
    pub underscores: Underscores,
}
