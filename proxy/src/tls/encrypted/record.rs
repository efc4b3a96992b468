//! Sizes of TLS records.

/// The most plain bytes of a record (RFC 8446, section 5.1).
pub(super) const RECORD_BYTES_MAX: usize = 16 * 1024;

/// The most plain bytes that are taken at once to be written.
pub(super) const WRITE_BYTES_MAX: usize = 4 * RECORD_BYTES_MAX;

/// What a record is longer than what is in it, at most.
pub(super) const RECORD_OVERHEAD_MAX: usize = 64;
