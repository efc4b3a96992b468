//! Encodes the PROXY protocol header, for endpoints that need the client's address.
//!
//! Format: <https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>.

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;

use traffic::connection::ProxyProtocol;

/// Addresses of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Client {
    /// Client's address.
    pub source: SocketAddr,
    /// Address that the client dialed.
    pub destination: SocketAddr,
}

/// PROXY header at the start of a connection. Part of the pool key: only requests with an equal header share the
/// connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AnnouncedClient {
    /// Version of the header.
    pub version: ProxyProtocol,
    /// Addresses in the header.
    pub client: Client,
}

impl AnnouncedClient {
    /// Encodes the header.
    pub fn header(&self) -> Bytes {
        let canonical = |at: SocketAddr| SocketAddr::new(at.ip().to_canonical(), at.port());
        let source = canonical(self.client.source);
        let destination = canonical(self.client.destination);
        match self.version {
            ProxyProtocol::V1 => v1(source, destination),
            ProxyProtocol::V2 => v2(source, destination),
        }
    }
}

fn v1(source: SocketAddr, destination: SocketAddr) -> Bytes {
    let family = match (source, destination) {
        (SocketAddr::V4(_), SocketAddr::V4(_)) => "TCP4",
        (SocketAddr::V6(_), SocketAddr::V6(_)) => "TCP6",
        _ => return Bytes::from_static(b"PROXY UNKNOWN\r\n"),
    };
    let (from, to) = (source.ip(), destination.ip());
    let (from_port, to_port) = (source.port(), destination.port());
    format!("PROXY {family} {from} {to} {from_port} {to_port}\r\n").into()
}

fn v2(source: SocketAddr, destination: SocketAddr) -> Bytes {
    let mut out = b"\r\n\r\n\0\r\nQUIT\n\x21".to_vec();
    let (family, ips) = match (source.ip(), destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => (0x11, [from.octets(), to.octets()].concat()),
        (IpAddr::V6(from), IpAddr::V6(to)) => (0x21, [from.octets(), to.octets()].concat()),
        _ => (0x00, Vec::new()),
    };
    let ports = match family {
        0x00 => Vec::new(),
        _ => [
            source.port().to_be_bytes(),
            destination.port().to_be_bytes(),
        ]
        .concat(),
    };
    let length = (ips.len() + ports.len()) as u16;
    out.push(family);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(&ips);
    out.extend_from_slice(&ports);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_has_source_and_destination_address() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        for (from, to, text, family) in [
            (
                "192.0.2.1:5",
                "198.51.100.2:443",
                "TCP4 192.0.2.1 198.51.100.2 5 443",
                0x11,
            ),
            (
                "[::ffff:192.0.2.1]:5",
                "198.51.100.2:443",
                "TCP4 192.0.2.1 198.51.100.2 5 443",
                0x11,
            ),
            (
                "[2001:db8::1]:5",
                "[::1]:443",
                "TCP6 2001:db8::1 ::1 5 443",
                0x21,
            ),
            ("192.0.2.1:5", "[::1]:443", "UNKNOWN", 0x00),
        ] {
            let header = |version| {
                let (source, destination) = (at(from), at(to));
                let client = Client {
                    source,
                    destination,
                };
                AnnouncedClient { version, client }.header()
            };
            let line = header(ProxyProtocol::V1);
            assert_eq!(line, format!("PROXY {text}\r\n"));
            let binary = header(ProxyProtocol::V2);
            assert_eq!(binary[..13], *b"\r\n\r\n\0\r\nQUIT\n\x21");
            assert_eq!(binary[13], family);
            let length = u16::from_be_bytes([binary[14], binary[15]]);
            assert_eq!(usize::from(length), binary.len() - 16);
        }
    }
}
