//! Limits of response heads and trailers.

/// Maximum bytes of a response head; a longer one is a protocol error. Envoy's default.
pub const RESPONSE_HEAD_BYTES_MAX: usize = 60 * 1024;

/// Maximum header fields of a response head; more is a protocol error.
pub const RESPONSE_HEADERS_MAX: usize = 100;
