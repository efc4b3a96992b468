//! Fuzz target: arbitrary bytes at the start of a TLS connection.
//!
//! Invariants: no panic; more bytes do not change a verdict; a server name is normalized and safe to log; no more bytes
//! than the limit are awaited.

use proxy::detect::client_hello::{HELLO_BYTES_MAX, parse};

/// Parses all bytes, and up to about 64 prefixes of them, as they would arrive.
pub fn run(bytes: &[u8]) {
    let whole = parse(bytes);
    if bytes.len() > HELLO_BYTES_MAX {
        assert_ne!(whole, Ok(None), "more is waited for past the limit");
    }
    if let Ok(Some(hello)) = &whole {
        if let Some(name) = &hello.server_name {
            assert!(!name.is_empty() && name.len() <= 255);
            assert!(
                name.bytes()
                    .all(|byte| byte.is_ascii_graphic() && !byte.is_ascii_uppercase())
            );
        }
        let _ = hello.alpn().count();
    }
    let step = (bytes.len() / 64).max(1);
    for cut in (0..bytes.len()).step_by(step) {
        let early = parse(&bytes[..cut]);
        if early != Ok(None) {
            assert_eq!(
                early, whole,
                "decided after {cut} bytes, and otherwise after all"
            );
        }
    }
}
