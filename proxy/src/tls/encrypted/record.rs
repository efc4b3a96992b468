//! Sizes of TLS records.

/// Maximum plain bytes of a record (RFC 8446, section 5.1).
pub(super) const RECORD_BYTES_MAX: usize = 16 * 1024;

/// Maximum plain bytes that one write accepts.
pub(super) const WRITE_BYTES_MAX: usize = 4 * RECORD_BYTES_MAX;

/// Maximum bytes that encryption adds to a record.
pub(super) const RECORD_OVERHEAD_MAX: usize = 64;
