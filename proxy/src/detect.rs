//! Detects the protocol of a connection from its first bytes.
//!
//! Pure: reads bytes that the caller has received and keeps. Bounded: it waits at most for the HTTP/2 preface, 24
//! bytes, or, where TLS is expected, for [`client_hello::HELLO_BYTES_MAX`].

pub mod client_hello;
pub mod first_bytes;
pub mod proxy_protocol;

/// Connection preface of an HTTP/2 client with prior knowledge (RFC 9113, section 3.4).
pub const HTTP2_PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Protocol of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1, or bytes that its parser will reject.
    Http1,
    /// HTTP/2 with prior knowledge.
    Http2,
    /// A TLS handshake.
    Tls,
}

/// Detects the protocol; `None` while more bytes are needed.
pub fn detect(bytes: &[u8]) -> Option<Protocol> {
    // A record of type handshake (22) of version 3.x (RFC 8446, section 5.1).
    if let [0x16, rest @ ..] = bytes {
        return match rest.first() {
            Some(3) => Some(Protocol::Tls),
            Some(_) => Some(Protocol::Http1),
            None => None,
        };
    }
    if bytes.starts_with(HTTP2_PREFACE) {
        return Some(Protocol::Http2);
    }
    let undecided = HTTP2_PREFACE.starts_with(bytes);
    (!undecided).then_some(Protocol::Http1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocol_is_detected_with_the_fewest_bytes() {
        for (bytes, expected) in [
            (&b""[..], None),
            (b"G", Some(Protocol::Http1)),
            (b"P", None),
            (b"PR", None),
            (b"PO", Some(Protocol::Http1)),
            (b"PRI * HTTP/1.1\r\n", Some(Protocol::Http1)),
            (&HTTP2_PREFACE[..23], None),
            (HTTP2_PREFACE, Some(Protocol::Http2)),
            (
                b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04",
                Some(Protocol::Http2),
            ),
            (b"\x16", None),
            (b"\x16\x03\x01", Some(Protocol::Tls)),
            (b"\x16\x02", Some(Protocol::Http1)),
            (b"\r\nGET", Some(Protocol::Http1)),
            (b"\0", Some(Protocol::Http1)),
        ] {
            assert_eq!(detect(bytes), expected, "{:?}", bytes.escape_ascii());
        }
    }
}
