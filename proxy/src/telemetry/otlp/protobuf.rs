//! Writes protobuf fields into a buffer, without a tree of messages in between.

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970, as messages have times.
pub(crate) fn unix_nanos(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// Appends a varint.
pub(crate) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Number of bytes of a varint.
pub(crate) fn varint_length(value: u64) -> usize {
    (u64::BITS - (value | 1).leading_zeros()).div_ceil(7) as usize
}

/// Appends an integer field; zero, the default, is left out.
pub(crate) fn integer(out: &mut Vec<u8>, field: u32, value: u64) {
    if value != 0 {
        varint(out, u64::from(field << 3));
        varint(out, value);
    }
}

/// Appends a field of eight bytes.
pub(crate) fn fixed64(out: &mut Vec<u8>, field: u32, value: u64) {
    varint(out, u64::from(field << 3 | 1));
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a field of four bytes.
pub(crate) fn fixed32(out: &mut Vec<u8>, field: u32, value: u32) {
    varint(out, u64::from(field << 3 | 5));
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a field of bytes.
pub(crate) fn bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    begin(out, field, value.len());
    out.extend_from_slice(value);
}

/// Appends tag and length of a field of bytes, which follow.
pub(crate) fn begin(out: &mut Vec<u8>, field: u32, length: usize) {
    varint(out, u64::from(field << 3 | 2));
    varint(out, length as u64);
}

/// Number of bytes of the length of a [`message`]: enough for 2 MiB.
const LENGTH_BYTES: usize = 3;

/// Appends a message, whose length is set once it is written. The length takes the same number of bytes for every
/// message.
pub(crate) fn message(out: &mut Vec<u8>, field: u32, write: impl FnOnce(&mut Vec<u8>)) {
    varint(out, u64::from(field << 3 | 2));
    let at = out.len();
    out.extend_from_slice(&[0; LENGTH_BYTES]);
    write(out);
    let length = out.len() - at - LENGTH_BYTES;
    debug_assert!(length < 1 << (7 * LENGTH_BYTES));
    out[at] = length as u8 | 0x80;
    out[at + 1] = (length >> 7) as u8 | 0x80;
    out[at + 2] = (length >> 14) as u8 & 0x7f;
}

/// Length of the field that bytes begin with, tag included; `None` if that is no field of bytes.
pub(crate) fn field_length(encoded: &[u8]) -> Option<usize> {
    let (tag, length_at) = read_varint(encoded, 0)?;
    if tag & 7 != 2 {
        return None;
    }
    let (length, at) = read_varint(encoded, length_at)?;
    let end = at.checked_add(usize::try_from(length).ok()?)?;
    (end <= encoded.len()).then_some(end)
}

/// Reads a varint; returns it and the position after it.
fn read_varint(encoded: &[u8], mut at: usize) -> Option<(u64, usize)> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *encoded.get(at)?;
        at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value, at));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_varints_are_those_that_are_written() {
        for value in [
            0,
            1,
            127,
            128,
            16_383,
            16_384,
            u64::from(u32::MAX),
            u64::MAX,
        ] {
            let mut out = Vec::new();
            varint(&mut out, value);
            assert_eq!(out.len(), varint_length(value), "{value}");
            assert_eq!(read_varint(&out, 0), Some((value, out.len())));
        }
    }

    #[test]
    fn fields_are_found_one_after_the_other() {
        let mut out = Vec::new();
        message(&mut out, 2, |out| bytes(out, 1, &[7; 300]));
        let first = out.len();
        bytes(&mut out, 2, b"next");
        assert_eq!(field_length(&out), Some(first));
        assert_eq!(field_length(&out[first..]), Some(out.len() - first));
        assert_eq!(field_length(&out[..first - 1]), None);
        assert_eq!(field_length(&[0x80; 12]), None);
    }
}
