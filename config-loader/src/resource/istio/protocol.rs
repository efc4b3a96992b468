//! Protocol of a port of a Gateway, Sidecar or ServiceEntry.

use std::fmt;

/// Protocol of a port. Its name is case-insensitive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// Unset: the protocol is detected from the first bytes of a connection.
    #[default]
    Detect,
    /// `GRPC`
    Grpc,
    /// `GRPC-WEB`
    GrpcWeb,
    /// `HTTP`
    Http,
    /// `HTTP2`
    Http2,
    /// `HTTP_PROXY`
    HttpProxy,
    /// `HTTPS`
    Https,
    /// `MONGO`
    Mongo,
    /// `MYSQL`
    Mysql,
    /// `REDIS`
    Redis,
    /// `TCP`
    Tcp,
    /// `TLS`
    Tls,
    /// `UDP`; accepted but not proxied.
    Udp,
}

impl Protocol {
    /// Protocols with a name.
    pub const NAMED: [Protocol; 12] = [
        Protocol::Grpc,
        Protocol::GrpcWeb,
        Protocol::Http,
        Protocol::Http2,
        Protocol::HttpProxy,
        Protocol::Https,
        Protocol::Mongo,
        Protocol::Mysql,
        Protocol::Redis,
        Protocol::Tcp,
        Protocol::Tls,
        Protocol::Udp,
    ];

    /// Returns the usual name; empty for [`Protocol::Detect`].
    pub fn as_str(self) -> &'static str {
        match self {
            Protocol::Detect => "",
            Protocol::Grpc => "GRPC",
            Protocol::GrpcWeb => "GRPC-WEB",
            Protocol::Http => "HTTP",
            Protocol::Http2 => "HTTP2",
            Protocol::HttpProxy => "HTTP_PROXY",
            Protocol::Https => "HTTPS",
            Protocol::Mongo => "MONGO",
            Protocol::Mysql => "MYSQL",
            Protocol::Redis => "REDIS",
            Protocol::Tcp => "TCP",
            Protocol::Tls => "TLS",
            Protocol::Udp => "UDP",
        }
    }

    /// Returns the protocol with this name.
    pub fn from_name(name: &str) -> Option<Protocol> {
        Protocol::NAMED
            .into_iter()
            .find(|protocol| protocol.as_str().eq_ignore_ascii_case(name))
    }

    /// Whether the protocol is HTTP in plain text.
    pub fn is_http(self) -> bool {
        matches!(
            self,
            Protocol::Grpc
                | Protocol::GrpcWeb
                | Protocol::Http
                | Protocol::Http2
                | Protocol::HttpProxy
        )
    }

    /// Whether the protocol is HTTP/2 in plain text, so that HTTP/1.1 must not be used.
    pub fn is_http2(self) -> bool {
        matches!(self, Protocol::Grpc | Protocol::GrpcWeb | Protocol::Http2)
    }

    /// Whether connections start with a TLS handshake.
    pub fn is_tls(self) -> bool {
        matches!(self, Protocol::Https | Protocol::Tls)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
