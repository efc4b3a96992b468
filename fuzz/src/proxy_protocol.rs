//! Fuzz target: arbitrary bytes at the start of a connection that may begin with a PROXY header.
//!
//! Invariants: no panic; more bytes do not change a verdict; no more bytes than the limit are awaited; a header ends
//! within the bytes that it was read from.

use proxy::detect::proxy_protocol::{Found, HEADER_BYTES_MAX, parse};

/// Parses all bytes, and prefixes of them, as they would arrive.
pub fn run(bytes: &[u8]) {
    let whole = parse(bytes);
    if bytes.len() >= HEADER_BYTES_MAX {
        assert_ne!(whole, Ok(Found::More), "more is waited for past the limit");
    }
    if let Ok(Found::Header(header)) = whole {
        assert!(header.bytes <= bytes.len() && header.bytes <= HEADER_BYTES_MAX);
    }
    let step = (bytes.len() / 64).max(1);
    for cut in (0..bytes.len()).step_by(step) {
        let early = parse(&bytes[..cut]);
        if early != Ok(Found::More) {
            assert_eq!(
                early, whole,
                "decided after {cut} bytes, and otherwise after all"
            );
        }
    }
}
