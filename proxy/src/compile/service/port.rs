//! Port of a service, with the protocol of its endpoints.

use std::collections::BTreeMap;
use std::sync::Arc;

use config_loader::resource::istio::Protocol as Declared;
use config_loader::resource::port_protocol;

use crate::upstream::Protocol;

/// Labels of an endpoint, shared by all that were written together.
pub(in crate::compile) type Labels = Arc<BTreeMap<String, String>>;

/// Port of a service as clients address it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::compile) struct Port {
    /// Number that clients use.
    pub number: u16,
    /// Name; endpoints may map it to another port.
    pub name: String,
    /// Protocol in which requests are sent to the endpoints.
    pub protocol: Protocol,
    /// Port of endpoints that give no port of their own for the name.
    pub target: u16,
    /// Whether its requests have paths, to which a gateway's prefix can be added.
    pub carries_paths: bool,
    /// Protocol of the connections as a sidecar treats them.
    pub carries: Carries,
    /// Whether its requests go to the address that the client dialed.
    pub original_destination: bool,
}

impl Port {
    /// Returns a port with a number and no declared protocol.
    pub(in crate::compile) fn undeclared(number: u16) -> Self {
        Self {
            number,
            name: String::new(),
            protocol: Protocol::Http1,
            target: number,
            carries_paths: true,
            carries: Carries::Detect,
            original_destination: false,
        }
    }
}

/// Protocol of a port's connections, as far as a sidecar inspects them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::compile) enum Carries {
    /// Raw TCP; the server may speak first.
    Bytes,
    /// No declared protocol: the first bytes decide.
    #[default]
    Detect,
    /// HTTP with gRPC-Web, which is translated into gRPC.
    GrpcWeb,
    /// HTTP.
    Http,
    /// TLS that is not terminated.
    Tls,
}

/// Ports whose servers may speak first, so that they are raw TCP unless declared: SMTP, DNS, MySQL and MongoDB.
const BYTES_BY_NUMBER: [u16; 4] = [25, 53, 3306, 27017];

impl Carries {
    /// Whether connections may carry requests.
    pub(in crate::compile) fn may_be_http(self) -> bool {
        matches!(self, Self::Detect | Self::GrpcWeb | Self::Http)
    }

    /// Returns the protocol of a port of a Service or of a host that represents one, from the same fields as
    /// [`protocol`].
    pub(in crate::compile) fn of(
        app_protocol: Option<&str>,
        name: &str,
        declared: &str,
        number: u16,
    ) -> Self {
        let word = port_protocol::named(app_protocol, name, declared).to_ascii_lowercase();
        match word.as_str() {
            port_protocol::GRPC_WEB => Self::GrpcWeb,
            word if port_protocol::is_http2(word) => Self::Http,
            "http" | "http_proxy" | "kubernetes.io/ws" => Self::Http,
            "https" | "tls" | "kubernetes.io/wss" => Self::Tls,
            "tcp" | "mongo" | "redis" | "mysql"
                if app_protocol.is_some() || declared.is_empty() =>
            {
                Self::Bytes
            }
            // a transport protocol does not tell the application protocol
            "tcp" | "" if !BYTES_BY_NUMBER.contains(&number) => Self::Detect,
            "mongo" | "redis" | "mysql" | "tcp" | "" => Self::Bytes,
            _ => Self::Detect,
        }
    }

    /// Returns the protocol for one of Istio's protocol names.
    pub(in crate::compile) fn of_protocol(protocol: Declared) -> Self {
        match protocol {
            Declared::Detect => Self::Detect,
            Declared::GrpcWeb => Self::GrpcWeb,
            Declared::Https | Declared::Tls => Self::Tls,
            protocol if protocol.is_http() => Self::Http,
            _ => Self::Bytes,
        }
    }
}

/// Returns the protocol in which requests are sent to the endpoints of a port of a Service or of a host that represents
/// one: by `appProtocol`, else by the prefix of the port's name, else by the port's declared protocol, else HTTP/1.1.
pub(in crate::compile) fn protocol(
    app_protocol: Option<&str>,
    name: &str,
    declared: &str,
) -> Protocol {
    match port_protocol::is_http2(port_protocol::named(app_protocol, name, declared)) {
        true => Protocol::Http2,
        false => Protocol::Http1,
    }
}

/// Whether the protocol of a port has paths, from the same fields as [`protocol`].
pub(in crate::compile) fn carries_paths(
    app_protocol: Option<&str>,
    name: &str,
    declared: &str,
) -> bool {
    port_protocol::has_paths(port_protocol::named(app_protocol, name, declared))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_web_is_told_from_other_requests() {
        let rows: &[(Option<&str>, &str, &str, Carries)] = &[
            (None, "grpc-web", "", Carries::GrpcWeb),
            (None, "GRPC-Web-api", "", Carries::GrpcWeb),
            (None, "grpc", "", Carries::Http),
            (None, "web", "grpc-web", Carries::GrpcWeb),
            (Some("grpc-web"), "http", "", Carries::GrpcWeb),
            (Some("grpc"), "grpc-web", "", Carries::Http),
        ];
        for (app_protocol, name, declared, expected) in rows {
            let carries = Carries::of(*app_protocol, name, declared, 80);
            assert_eq!(carries, *expected, "{app_protocol:?} {name} {declared}");
        }
        let declared = Carries::of_protocol(Declared::GrpcWeb);
        assert_eq!(declared, Carries::GrpcWeb);
    }

    #[test]
    fn protocol_comes_from_app_protocol_then_name_then_declaration() {
        let rows: &[(Option<&str>, &str, &str, Protocol)] = &[
            (None, "http", "TCP", Protocol::Http1),
            (None, "http2", "TCP", Protocol::Http2),
            (None, "http2-web", "", Protocol::Http2),
            (None, "grpc", "", Protocol::Http2),
            (None, "grpc-api", "", Protocol::Http2),
            (None, "grpc-web", "", Protocol::Http2),
            (None, "GRPC-Web-api", "", Protocol::Http2),
            (None, "http-grpc", "", Protocol::Http1),
            (None, "web", "HTTP2", Protocol::Http2),
            (None, "web", "GRPC", Protocol::Http2),
            (None, "web", "", Protocol::Http1),
            (Some("http"), "grpc", "GRPC", Protocol::Http1),
            (Some("kubernetes.io/h2c"), "web", "TCP", Protocol::Http2),
            (Some("grpc"), "web", "TCP", Protocol::Http2),
            (Some("grpc-web"), "http", "", Protocol::Http2),
            (Some("http2-api"), "http", "", Protocol::Http2),
            (Some("kubernetes.io/ws"), "http2", "", Protocol::Http1),
            (Some("other"), "http2", "HTTP2", Protocol::Http1),
        ];
        for (app_protocol, name, declared, expected) in rows {
            assert_eq!(
                protocol(*app_protocol, name, declared),
                *expected,
                "{app_protocol:?} {name} {declared}"
            );
        }
    }
}
