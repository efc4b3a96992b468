//! Limits of response heads and trailers.

/// Largest response head that is accepted, in bytes; a longer one is a protocol error. Envoy's default.
pub const RESPONSE_HEAD_BYTES_MAX: usize = 60 * 1024;

/// Most header lines in a response head; more is a protocol error.
pub const RESPONSE_HEADERS_MAX: usize = 100;
