//! Detects the protocol from the first bytes of a connection, on ports that accept any.

use super::HTTP2_PREFACE;

/// Maximum bytes of a request line to wait for. A longer one whose target is no path counts as another protocol.
pub const REQUEST_LINE_BYTES_MAX: usize = 8192;

/// Maximum bytes of a method. Registered ones have at most 17 letters.
const METHOD_BYTES_MAX: usize = 32;

/// Protocol of the first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstBytes {
    /// HTTP/1 request or HTTP/2 preface.
    Http,
    /// Any other protocol.
    Other,
    /// TLS handshake.
    Tls,
}

/// Detects the protocol; `None` while more bytes are needed.
///
/// A request begins with an upper-case method and a path, or its complete first line ends with an HTTP version; lines
/// of other protocols, such as `SET key value` or `EHLO host`, do not.
pub fn first_bytes(bytes: &[u8]) -> Option<FirstBytes> {
    match bytes {
        [] | [0x16] => return None,
        // A record of type handshake (22) of version 3.x (RFC 8446, section 5.1).
        [0x16, 3, ..] => return Some(FirstBytes::Tls),
        _ => (),
    }
    if bytes.starts_with(HTTP2_PREFACE) {
        return Some(FirstBytes::Http);
    }
    // empty lines before a request are allowed (RFC 9112, section 2.2)
    let line = bytes.trim_ascii_start();
    if line.is_empty() || HTTP2_PREFACE.starts_with(bytes) {
        return (bytes.len() > METHOD_BYTES_MAX).then_some(FirstBytes::Other);
    }
    let method = line.iter().take_while(|byte| is_of_method(**byte)).count();
    match line.get(method) {
        None if method <= METHOD_BYTES_MAX => return None,
        Some(b' ') if (1..=METHOD_BYTES_MAX).contains(&method) => (),
        _ => return Some(FirstBytes::Other),
    }
    let target = &line[method + 1..];
    match target {
        [b'/', ..] | [b'*', b' ', b'H', ..] => return Some(FirstBytes::Http),
        _ => (),
    }
    let Some(end) = target.iter().position(|byte| *byte == b'\n') else {
        let is_long = target.len() > REQUEST_LINE_BYTES_MAX;
        return is_long.then_some(FirstBytes::Other);
    };
    let line = target[..end].trim_ascii_end();
    let version = line.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    Some(
        match version.starts_with(b"HTTP/") && version.len() < line.len() {
            true => FirstBytes::Http,
            false => FirstBytes::Other,
        },
    )
}

fn is_of_method(byte: u8) -> bool {
    byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes_tell_requests_from_other_protocols() {
        for (bytes, expected) in [
            (&b""[..], None),
            (b"G", None),
            (b"GET ", None),
            (b"GET /", Some(FirstBytes::Http)),
            (b"\r\nGET /", Some(FirstBytes::Http)),
            (b"OPTIONS * HTTP/1.1\r\n", Some(FirstBytes::Http)),
            (b"GET http://a/ HTTP", None),
            (b"GET http://a/ HTTP/1.1\r\n", Some(FirstBytes::Http)),
            (b"CONNECT a:443 HTTP/1.1\r\n", Some(FirstBytes::Http)),
            (HTTP2_PREFACE, Some(FirstBytes::Http)),
            (&HTTP2_PREFACE[..20], None),
            (b"SET key value\r\n", Some(FirstBytes::Other)),
            (b"GET key\r\n", Some(FirstBytes::Other)),
            (b"GET HTTP/1.1\r\n", Some(FirstBytes::Other)),
            (b"EHLO host\r\n", Some(FirstBytes::Other)),
            (b"get /a HTTP/1.1\r\n", Some(FirstBytes::Other)),
            (b"*1\r\n$4\r\nPING\r\n", Some(FirstBytes::Other)),
            (b"\0\0\0\x08\x04\xd2\x16\x2f", Some(FirstBytes::Other)),
            (b"\x16", None),
            (b"\x16\x03\x01", Some(FirstBytes::Tls)),
            (b"\x16\x02", Some(FirstBytes::Other)),
            (&[b'A'; 33], Some(FirstBytes::Other)),
        ] {
            assert_eq!(first_bytes(bytes), expected, "{:?}", bytes.escape_ascii());
        }
    }

    #[test]
    fn what_bytes_are_does_not_change_as_more_come() {
        for whole in [
            &b"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"[..],
            b"SET key value\r\n+OK /a HTTP/1.1\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0",
            b"PRI * HTTP/1.1\r\n\r\n",
        ] {
            let mut told = (0..=whole.len()).filter_map(|end| first_bytes(&whole[..end]));
            let first = told.next();
            assert!(first.is_some());
            assert!(
                told.all(|next| Some(next) == first),
                "{:?}",
                whole.escape_ascii()
            );
        }
    }

    #[test]
    fn waiting_is_bounded() {
        let line = [b"GET a".as_slice(), &[b'a'; REQUEST_LINE_BYTES_MAX]].concat();
        assert_eq!(first_bytes(&line), Some(FirstBytes::Other));
    }
}
