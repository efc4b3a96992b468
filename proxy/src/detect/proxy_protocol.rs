//! Parses the PROXY protocol header, versions 1 and 2: the original client of a forwarded connection.
//!
//! Format: <https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>. Pure and non-consuming: the parser is called
//! with all bytes received so far, and again when there are more. Bounded by [`HEADER_BYTES_MAX`].

use std::net::{IpAddr, SocketAddr};

/// Maximum bytes of a header with its extensions, which are skipped; beyond it, the connection is closed.
pub const HEADER_BYTES_MAX: usize = 4096;

/// Maximum bytes of a version 1 header, from the specification.
const V1_BYTES_MAX: usize = 107;

/// Beginning of a version 1 header.
const V1: &[u8] = b"PROXY ";

/// Beginning of a version 2 header.
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// Parsed header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Length of the header.
    pub bytes: usize,
    /// Address of the client, and the address that it dialed. `None` for connections of the sender itself, such as
    /// health checks, for clients on Unix sockets, and if the sender does not know the addresses.
    pub addresses: Option<(SocketAddr, SocketAddr)>,
}

/// Result of parsing the first bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A header.
    Header(Header),
    /// More bytes are needed.
    More,
    /// No header.
    None,
}

/// Error: a malformed header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Parses a header, if the bytes begin with one.
///
/// # Errors
///
/// If the bytes begin like a header and are malformed.
pub fn parse(bytes: &[u8]) -> Result<Found, Malformed> {
    if bytes.starts_with(V2) {
        return v2(bytes);
    }
    if bytes.starts_with(V1) {
        return v1(bytes);
    }
    if V1.starts_with(bytes) || V2.starts_with(bytes) {
        return Ok(Found::More);
    }
    Ok(Found::None)
}

fn v1(bytes: &[u8]) -> Result<Found, Malformed> {
    let window = &bytes[..bytes.len().min(V1_BYTES_MAX)];
    let Some(end) = window.windows(2).position(|pair| pair == b"\r\n") else {
        return match bytes.len() < V1_BYTES_MAX {
            true => Ok(Found::More),
            false => Err(Malformed),
        };
    };
    let line = std::str::from_utf8(&window[V1.len()..end]).map_err(|_| Malformed)?;
    let header = |addresses| {
        let bytes = end + 2;
        Ok(Found::Header(Header { bytes, addresses }))
    };
    let mut words = line.split(' ');
    let is_ipv6 = match words.next() {
        Some("UNKNOWN") => return header(None),
        Some("TCP4") => false,
        Some("TCP6") => true,
        _ => return Err(Malformed),
    };
    let words: Vec<&str> = words.collect();
    let [source, destination, source_port, destination_port] = words[..] else {
        return Err(Malformed);
    };
    let address = |ip: &str, port: &str| {
        let ip: IpAddr = ip.parse().map_err(|_| Malformed)?;
        let plain = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|_| plain).ok_or(Malformed)?;
        match ip.is_ipv6() == is_ipv6 {
            true => Ok(SocketAddr::new(ip, port)),
            false => Err(Malformed),
        }
    };
    header(Some((
        address(source, source_port)?,
        address(destination, destination_port)?,
    )))
}

fn v2(bytes: &[u8]) -> Result<Found, Malformed> {
    let [
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        _,
        version,
        family,
        high,
        low,
        rest @ ..,
    ] = bytes
    else {
        // The received part of version and command must be valid already.
        return match bytes.get(V2.len()) {
            Some(version) if version >> 4 != 2 => Err(Malformed),
            _ => Ok(Found::More),
        };
    };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    let whole = V2.len() + 4 + length;
    if version >> 4 != 2 || whole > HEADER_BYTES_MAX {
        return Err(Malformed);
    }
    let addresses = match (version & 0xf, family) {
        (0, _) => None,
        (1, 0x11) => Some(4),
        (1, 0x21) => Some(16),
        // Unspecified, datagrams, and Unix sockets: no usable address.
        (1, 0x00 | 0x12 | 0x22 | 0x31 | 0x32) => None,
        _ => return Err(Malformed),
    };
    if addresses.is_some_and(|width| length < 2 * width + 4) {
        return Err(Malformed);
    }
    if rest.len() < length {
        return Ok(Found::More);
    }
    Ok(Found::Header(Header {
        bytes: whole,
        addresses: addresses.and_then(|width| v2_addresses(rest, width)),
    }))
}

fn v2_addresses(rest: &[u8], width: usize) -> Option<(SocketAddr, SocketAddr)> {
    let ip = |bytes: &[u8]| match width {
        4 => <[u8; 4]>::try_from(bytes).map(IpAddr::from).ok(),
        _ => <[u8; 16]>::try_from(bytes).map(IpAddr::from).ok(),
    };
    let port = |bytes: &[u8]| Some(u16::from_be_bytes(bytes.try_into().ok()?));
    let (ips, ports) = rest.split_at_checked(2 * width)?;
    Some((
        SocketAddr::new(ip(&ips[..width])?, port(ports.get(..2)?)?),
        SocketAddr::new(ip(&ips[width..])?, port(ports.get(2..4)?)?),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v2_bytes(version: u8, family: u8, content: &[u8]) -> Vec<u8> {
        let length = (content.len() as u16).to_be_bytes();
        [V2, &[version, family], &length, content].concat()
    }

    fn both(source: &str, destination: &str) -> Option<(SocketAddr, SocketAddr)> {
        Some((source.parse().unwrap(), destination.parse().unwrap()))
    }

    #[test]
    fn headers_of_version_1() {
        for (line, expected) in [
            (
                "TCP4 192.0.2.1 198.51.100.2 56324 443",
                Ok(both("192.0.2.1:56324", "198.51.100.2:443")),
            ),
            (
                "TCP6 2001:db8::1 ::1 1 65535",
                Ok(both("[2001:db8::1]:1", "[::1]:65535")),
            ),
            ("UNKNOWN", Ok(None)),
            ("UNKNOWN ffff::1 ffff::2 1 2", Ok(None)),
            ("TCP4 2001:db8::1 ::1 1 2", Err(Malformed)),
            ("TCP4 192.0.2.1 198.51.100.2 56324", Err(Malformed)),
            ("TCP4 192.0.2.1 198.51.100.2 56324 443 1", Err(Malformed)),
            ("TCP4 192.0.2.1 198.51.100.2 +1 443", Err(Malformed)),
            ("TCP4 192.0.2.1 198.51.100.2 65536 443", Err(Malformed)),
            ("UDP4 192.0.2.1 198.51.100.2 1 2", Err(Malformed)),
            ("", Err(Malformed)),
        ] {
            let whole = format!("PROXY {line}\r\nGET /");
            let bytes = whole.len() - 5;
            let expected = expected.map(|addresses| Found::Header(Header { bytes, addresses }));
            assert_eq!(parse(whole.as_bytes()), expected, "{line}");
            for cut in 0..bytes - 2 {
                assert_eq!(
                    parse(&whole.as_bytes()[..cut]),
                    Ok(Found::More),
                    "{line} {cut}"
                );
            }
        }
        let endless = format!("PROXY UNKNOWN {}", "x".repeat(200));
        assert_eq!(parse(endless.as_bytes()), Err(Malformed));
    }

    #[test]
    fn headers_of_version_2() {
        let ipv4 = [192, 0, 2, 1, 198, 51, 100, 2, 0, 80, 1, 187];
        let with_extensions = [&ipv4[..], &[3, 0, 4, 1, 2, 3, 4]].concat();
        let ipv6 = [[0xfd; 16], [0xfe; 16]].concat();
        let ipv6 = [&ipv6[..], &[0, 1, 0, 2]].concat();
        let found4 = both("192.0.2.1:80", "198.51.100.2:443");
        let found6 = both(
            "[fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd]:1",
            "[fefe:fefe:fefe:fefe:fefe:fefe:fefe:fefe]:2",
        );
        for (version, family, content, expected) in [
            (0x21, 0x11, &ipv4[..], Ok(found4)),
            (0x21, 0x11, &with_extensions, Ok(found4)),
            (0x21, 0x21, &ipv6, Ok(found6)),
            (0x20, 0x00, &[], Ok(None)), // LOCAL
            (0x20, 0x11, &ipv4, Ok(None)),
            (0x21, 0x00, &[], Ok(None)),
            (0x21, 0x31, &[0; 216], Ok(None)),
            (0x21, 0x11, &ipv4[..11], Err(Malformed)),
            (0x11, 0x11, &ipv4, Err(Malformed)),
            (0x22, 0x11, &ipv4, Err(Malformed)),
            (0x21, 0x99, &ipv4, Err(Malformed)),
            (0x20, 0x00, &[0; 5000], Err(Malformed)),
        ] {
            let whole = v2_bytes(version, family, content);
            let bytes = whole.len();
            let expected = expected.map(|addresses| Found::Header(Header { bytes, addresses }));
            assert_eq!(parse(&whole), expected, "{version:x} {family:x}");
            if expected.is_ok() {
                for cut in 0..bytes {
                    assert_eq!(parse(&whole[..cut]), Ok(Found::More), "{cut}");
                }
            }
        }
    }

    #[test]
    fn bytes_other_than_a_header_are_rejected_at_once() {
        for bytes in [
            &b"GET / HTTP/1.1"[..],
            b"PR ",
            b"\r\n\r\nx",
            b"\x16\x03\x01",
        ] {
            assert_eq!(parse(bytes), Ok(Found::None));
        }
    }
}
