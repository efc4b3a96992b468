//! Integers with a prefix (RFC 7541, section 5.1).

use super::Undecodable;

/// Largest accepted integer: far above every meaningful length and index.
const MAX: usize = 1 << 24;

/// Reads an integer with a prefix of `prefix` bits in the first byte; also returns its length. `None` if the input is
/// incomplete.
///
/// # Errors
///
/// If it exceeds the maximum.
#[inline]
pub fn read(input: &[u8], prefix: u32) -> Result<Option<(usize, usize)>, Undecodable> {
    let mask = (1_usize << prefix) - 1;
    let Some(&first) = input.first() else {
        return Ok(None);
    };
    let mut value = usize::from(first) & mask;
    if value < mask {
        return Ok(Some((value, 1)));
    }
    for (index, &byte) in input[1..].iter().enumerate() {
        // four more bytes reach past the maximum; longer encodings only add zeros
        if index == 4 {
            return Err(Undecodable);
        }
        value += usize::from(byte & 0x7f) << (7 * index);
        if value > MAX {
            return Err(Undecodable);
        }
        if byte & 0x80 == 0 {
            return Ok(Some((value, index + 2)));
        }
    }
    Ok(None)
}

/// Writes an integer; `flags` are the bits of the first byte above the prefix.
#[inline]
pub fn write(output: &mut Vec<u8>, flags: u8, prefix: u32, value: usize) {
    let mask = (1_usize << prefix) - 1;
    if value < mask {
        output.push(flags | value as u8);
        return;
    }
    output.push(flags | mask as u8);
    let mut rest = value - mask;
    while rest >= 0x80 {
        output.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    output.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_equal_the_rfc_examples() {
        // RFC 7541, appendix C.1
        for (value, prefix, bytes) in [
            (10, 5, &[0b01010][..]),
            (1337, 5, &[0b11111, 0b1001_1010, 0b0000_1010]),
            (42, 8, &[42]),
            (127, 7, &[127, 0]),
        ] {
            let mut output = Vec::new();
            write(&mut output, 0, prefix, value);
            assert_eq!(output, bytes);
            assert_eq!(read(bytes, prefix), Ok(Some((value, bytes.len()))));
        }
    }

    #[test]
    fn integers_round_trip_and_are_bounded() {
        for prefix in 1..=8 {
            for value in (0..2000).chain([65_535, 1 << 20, MAX]) {
                let mut output = Vec::new();
                write(&mut output, 0, prefix, value);
                for cut in 0..output.len() {
                    assert_eq!(read(&output[..cut], prefix), Ok(None));
                }
                assert_eq!(read(&output, prefix), Ok(Some((value, output.len()))));
            }
        }
        for bytes in [
            &[0xff, 0x80, 0x80, 0x80, 0x80, 0x80][..],
            &[
                0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
            ],
            &[0xff, 0xff, 0xff, 0xff, 0x7f],
        ] {
            assert_eq!(read(bytes, 7), Err(Undecodable), "{bytes:x?}");
        }
    }
}
