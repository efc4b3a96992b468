//! Any bytes as the first ones of a TLS connection.
//!
//! Promises: no panic; a verdict does not change when more bytes come; a name is in its normal form and safe to log;
//! nothing is waited for beyond the limit.

use proxy::detect::client_hello::{HELLO_BYTES_MAX, parse};

/// Looks at all the bytes and at every shorter piece up to a few, as they would come in.
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
