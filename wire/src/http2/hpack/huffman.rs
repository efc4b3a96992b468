//! Huffman code of header strings (RFC 7541, section 5.2 and appendix B).
//!
//! The code is canonical: the lengths of its codes determine it. Codes of up to eight bits, which text consists of, are
//! decoded by one lookup; longer ones by the first code of their length.

use super::Undecodable;

/// Length of the code of each byte, in bits; the end-of-string code has 30.
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

const LENGTH_MIN: u32 = 5;
const LENGTH_MAX: u32 = 30;

/// Tables derived from the lengths.
struct Code {
    /// Code of each byte, in the low bits.
    codes: [u32; 256],
    /// By the next eight bits of the input: the byte whose code they begin with, and the length of that code; length 0 if
    /// the code is longer than eight bits.
    short: [(u8, u8); 256],
    /// Bytes in the order of their codes.
    ordered: [u8; 256],
    /// By length: the smallest 32 bits of input that begin with a longer code.
    limits: [u64; LENGTH_MAX as usize + 1],
    /// By length: the first code of that length, and the position of its byte in `ordered`.
    firsts: [(u32, u16); LENGTH_MAX as usize + 1],
}

static CODE: Code = code();

const fn code() -> Code {
    let mut made = Code {
        codes: [0; 256],
        short: [(0, 0); 256],
        ordered: [0; 256],
        limits: [0; LENGTH_MAX as usize + 1],
        firsts: [(0, 0); LENGTH_MAX as usize + 1],
    };
    let (mut next, mut place, mut length) = (0_u32, 0, LENGTH_MIN);
    while length <= LENGTH_MAX {
        made.firsts[length as usize] = (next, place as u16);
        let mut byte = 0;
        while byte < 256 {
            if LENGTHS[byte] as u32 == length {
                made.codes[byte] = next;
                made.ordered[place] = byte as u8;
                if length <= 8 {
                    let mut tail = 0;
                    while tail < 1 << (8 - length) {
                        let front = (next << (8 - length)) | tail;
                        made.short[front as usize] = (byte as u8, length as u8);
                        tail += 1;
                    }
                }
                next += 1;
                place += 1;
            }
            byte += 1;
        }
        made.limits[length as usize] = (next as u64) << (32 - length);
        next <<= 1;
        length += 1;
    }
    made
}

/// Decodes a string and appends it to `output`.
///
/// # Errors
///
/// If it contains the end-of-string code, or ends in invalid padding.
pub fn decode(input: &[u8], output: &mut Vec<u8>) -> Result<(), Undecodable> {
    output.reserve(input.len() * 8 / LENGTH_MIN as usize + 1);
    let mut input = input.iter();
    // the next bits are the highest ones
    let (mut bits, mut count) = (0_u64, 0_u32);
    loop {
        while count <= 56 {
            let Some(&byte) = input.next() else {
                return decode_end(bits, count, output);
            };
            bits |= u64::from(byte) << (56 - count);
            count += 8;
        }
        while count >= LENGTH_MAX {
            let (byte, length) = symbol(bits)?;
            output.push(byte);
            bits <<= length;
            count -= length;
        }
    }
}

/// Decodes the rest once all input is in `bits`.
fn decode_end(mut bits: u64, mut count: u32, output: &mut Vec<u8>) -> Result<(), Undecodable> {
    loop {
        // fill up with ones: an incomplete code at the end is padding
        let padded = bits | u64::MAX.checked_shr(count).unwrap_or(0);
        if count < 8 && padded == u64::MAX {
            return Ok(());
        }
        let (byte, length) = symbol(padded)?;
        if length > count {
            return Err(Undecodable);
        }
        output.push(byte);
        bits <<= length;
        count -= length;
    }
}

/// Returns the byte whose code is in the highest bits, and the length of the code.
#[inline]
fn symbol(bits: u64) -> Result<(u8, u32), Undecodable> {
    let (byte, length) = CODE.short[(bits >> 56) as usize];
    if length != 0 {
        return Ok((byte, u32::from(length)));
    }
    let front = bits >> 32;
    for length in 9..=LENGTH_MAX {
        if front < CODE.limits[length as usize] {
            let (first, place) = CODE.firsts[length as usize];
            let code = (front >> (32 - length)) as u32;
            let place = usize::from(place) + (code - first) as usize;
            // the very last code is end-of-string, which a string must not contain
            let byte = CODE.ordered.get(place).ok_or(Undecodable)?;
            return Ok((*byte, length));
        }
    }
    Err(Undecodable)
}

/// Returns the length of a string after encoding.
pub fn encoded_len(input: &[u8]) -> usize {
    let bits: usize = input
        .iter()
        .map(|&byte| usize::from(LENGTHS[usize::from(byte)]))
        .sum();
    bits.div_ceil(8)
}

/// Encodes a string and appends it to `output`.
pub fn encode(input: &[u8], output: &mut Vec<u8>) {
    let (mut bits, mut count) = (0_u64, 0_u32);
    for &byte in input {
        let byte = usize::from(byte);
        let length = u32::from(LENGTHS[byte]);
        bits = (bits << length) | u64::from(CODE.codes[byte]);
        count += length;
        while count >= 8 {
            count -= 8;
            output.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        let padding = 8 - count;
        output.push((bits << padding) as u8 | ((1 << padding) - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(input: &[u8]) -> Result<Vec<u8>, Undecodable> {
        let mut output = Vec::new();
        decode(input, &mut output).map(|()| output)
    }

    #[test]
    fn codes_equal_the_rfc_examples() {
        for (byte, code) in [
            (b'0', 0),
            (b' ', 0x14),
            (b'&', 0xf8),
            (b'Z', 0xfd),
            (0, 0x1ff8),
            (10, 0x3fff_fffc),
            (22, 0x3fff_fffe),
            (255, 0x3ff_ffee),
            (b'\\', 0x7fff0),
        ] {
            assert_eq!(CODE.codes[usize::from(byte)], code, "{byte}");
        }
    }

    #[test]
    fn every_pair_of_bytes_round_trips() {
        for first in 0..=255 {
            for second in 0..=255 {
                let text = [first, second, first];
                let mut output = Vec::new();
                encode(&text, &mut output);
                assert_eq!(output.len(), encoded_len(&text));
                assert_eq!(decoded(&output).unwrap(), text);
            }
        }
        assert_eq!(decoded(&[]).unwrap(), b"");
    }

    #[test]
    fn padding_is_less_than_a_byte_of_ones() {
        // "a" is 00011: three bits of padding
        assert_eq!(decoded(&[0b0001_1111]).unwrap(), b"a");
        assert_eq!(decoded(&[0b0001_1110]), Err(Undecodable));
        assert_eq!(decoded(&[0b0001_1111, 0xff]), Err(Undecodable));
        assert_eq!(decoded(&[0xff]), Err(Undecodable));
        // end-of-string code within a string
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xff]), Err(Undecodable));
        assert_eq!(decoded(&[0xff, 0xff, 0xff, 0xfc, 0x1f]), Err(Undecodable));
    }
}
