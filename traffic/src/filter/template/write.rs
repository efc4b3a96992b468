//! Printing of values.

use std::io::Write;

pub(super) fn print(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    // Writing to memory does not fail.
    let _ = write!(out, "{value}");
}
