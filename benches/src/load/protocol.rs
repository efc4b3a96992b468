//! The protocols that can be measured.

use clap::ValueEnum;

/// What is spoken, with or without TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    /// HTTP/1.1 with keep-alive.
    Http1,
    /// HTTP/2: by prior knowledge without TLS (h2c), negotiated by ALPN with TLS (h2).
    Http2,
    /// Unary calls of gRPC over HTTP/2; the body is the message.
    Grpc,
}

impl Protocol {
    /// Whether connections carry several requests at once.
    pub fn is_http2(self) -> bool {
        self != Self::Http1
    }

    /// Its name in reports.
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

    /// Its name in ALPN.
    pub fn alpn(self) -> &'static str {
        if self.is_http2() { "h2" } else { "http/1.1" }
    }
}
