//! Protocols that can be measured.

use clap::ValueEnum;

/// Protocol of the load, with or without TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// HTTP/1.1 with keep-alive.
    Http1,
    /// HTTP/2: by prior knowledge without TLS (h2c), negotiated by ALPN with TLS (h2).
    Http2,
    /// Unary gRPC calls over HTTP/2; the body is the message.
    Grpc,
}

impl Protocol {
    /// Whether a connection carries several requests at once.
    pub fn is_http2(self) -> bool {
        self != Self::Http1
    }

    /// Returns the name of the protocol in reports.
    pub fn name(self, tls: bool) -> &'static str {
        match (self, tls) {
            (Self::Http1, false) => "HTTP/1.1",
            (Self::Http1, true) => "HTTP/1.1 over TLS",
            (Self::Http2, false) => "h2c",
            (Self::Http2, true) => "h2",
            (Self::Grpc, false) => "gRPC",
            (Self::Grpc, true) => "gRPC over TLS",
        }
    }

    /// Returns the ALPN identifier.
    pub fn alpn(self) -> &'static str {
        if self.is_http2() { "h2" } else { "http/1.1" }
    }
}
