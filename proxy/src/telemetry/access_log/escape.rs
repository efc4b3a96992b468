//! Escapes text from the wire for a log line.
//!
//! Envoy prints such text unchanged, so that a client can end a quoted field or start a new line; this prevents it.

/// Bytes that [`text`] escapes: all but printable ASCII, and those that could end a quoted field or look like an
/// escape. The same set as nginx's.
const TEXT: [bool; 256] = {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        special[byte] =
            byte < 0x20 || byte > 0x7e || byte == b'"' as usize || byte == b'\\' as usize;
        byte += 1;
    }
    special
};

/// Bytes of `TEXT`, and the space, which separates unquoted fields.
const WORD: [bool; 256] = {
    let mut special = TEXT;
    special[b' ' as usize] = true;
    special
};

/// Bytes of valid UTF-8 that JSON strings must escape (RFC 8259, section 7), and DEL.
const JSON: [bool; 256] = {
    let mut special = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        special[byte] =
            byte < 0x20 || byte == 0x7f || byte == b'"' as usize || byte == b'\\' as usize;
        byte += 1;
    }
    special
};

const HEX_UPPER: &[u8; 16] = b"0123456789ABCDEF";

/// Appends text for a quoted field: control bytes, quotes, backslashes and non-ASCII bytes as `\xHH`.
pub(super) fn text(out: &mut Vec<u8>, value: &[u8]) {
    if is_plain(value) {
        return out.extend_from_slice(value);
    }
    copy(out, value, &TEXT, hex);
}

/// Appends text for an unquoted field: like [`text`], with `_` for a space.
pub(super) fn word(out: &mut Vec<u8>, value: &[u8]) {
    if is_plain(value) && !value.contains(&b' ') {
        return out.extend_from_slice(value);
    }
    copy(out, value, &WORD, |out, byte| match byte {
        b' ' => out.push(b'_'),
        _ => hex(out, byte),
    });
}

/// Appends the inside of a JSON string; bytes that are not UTF-8 become U+FFFD.
pub(super) fn json(out: &mut Vec<u8>, value: &[u8]) {
    if is_plain(value) {
        return out.extend_from_slice(value);
    }
    for chunk in value.utf8_chunks() {
        copy(
            out,
            chunk.valid().as_bytes(),
            &JSON,
            |out, byte| match byte {
                b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
                _ => out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high(byte), low(byte)]),
            },
        );
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
}

/// Whether none of these functions escapes any byte, apart from spaces: true for almost every value. Has no branches,
/// so that many bytes are checked in one step.
pub(super) fn is_plain(value: &[u8]) -> bool {
    value.iter().fold(true, |plain, byte| {
        plain & (0x20..=0x7e).contains(byte) & (*byte != b'"') & (*byte != b'\\')
    })
}

/// Copies runs of plain bytes, and passes the others to `escape`.
fn copy(
    out: &mut Vec<u8>,
    mut rest: &[u8],
    special: &[bool; 256],
    escape: impl Fn(&mut Vec<u8>, u8),
) {
    while let Some(plain) = rest.iter().position(|byte| special[usize::from(*byte)]) {
        out.extend_from_slice(&rest[..plain]);
        escape(out, rest[plain]);
        rest = &rest[plain + 1..];
    }
    out.extend_from_slice(rest);
}

fn hex(out: &mut Vec<u8>, byte: u8) {
    out.extend_from_slice(&[b'\\', b'x', high(byte), low(byte)]);
}

fn high(byte: u8) -> u8 {
    HEX_UPPER[usize::from(byte >> 4)]
}

fn low(byte: u8) -> u8 {
    HEX_UPPER[usize::from(byte & 0xf)]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn escaped(escape: fn(&mut Vec<u8>, &[u8]), value: &[u8]) -> String {
        let mut out = Vec::new();
        escape(&mut out, value);
        String::from_utf8(out).expect("escaped text is UTF-8")
    }

    #[test]
    fn quoted_text_cannot_end_its_field_or_its_line() {
        for (value, printed) in [
            (&b"curl/8 (x)"[..], "curl/8 (x)"),
            (b"a\" 200 \"", r"a\x22 200 \x22"),
            (b"a\r\nb", r"a\x0D\x0Ab"),
            (b"\x1b[31m\x00\x7f", r"\x1B[31m\x00\x7F"),
            (br"\x41", r"\x5Cx41"),
            ("é".as_bytes(), r"\xC3\xA9"),
            (b"\xff", r"\xFF"),
            (b"", ""),
        ] {
            assert_eq!(escaped(text, value), printed);
        }
    }

    #[test]
    fn escaped_words_have_no_spaces() {
        assert_eq!(
            escaped(word, b"reset reason: overflow\t"),
            r"reset_reason:_overflow\x09"
        );
    }

    #[test]
    fn json_strings_keep_unicode_and_replace_invalid_bytes() {
        assert_eq!(
            escaped(json, "é\"\\\n\u{7f}".as_bytes()),
            "é\\\"\\\\\\u000A\\u007F"
        );
        assert_eq!(escaped(json, b"a\xff\xfeb"), "a\u{fffd}\u{fffd}b");
    }

    proptest! {
        #[test]
        fn escaped_text_is_printable_ascii_and_unambiguous(a: Vec<u8>, b: Vec<u8>) {
            let (printed_a, printed_b) = (escaped(text, &a), escaped(text, &b));
            prop_assert!(printed_a.bytes().all(|byte| (0x20..0x7f).contains(&byte) && byte != b'"'));
            prop_assert_eq!(a == b, printed_a == printed_b);
        }

        #[test]
        fn fast_and_slow_escaping_agree(value: Vec<u8>) {
            let mut slow = Vec::new();
            copy(&mut slow, &value, &TEXT, hex);
            prop_assert_eq!(escaped(text, &value).into_bytes(), slow);
            prop_assert_eq!(is_plain(&value), !value.iter().any(|byte| TEXT[usize::from(*byte)]));
        }

        #[test]
        fn escaped_json_parses_back(value: String) {
            let quoted = format!("\"{}\"", escaped(json, value.as_bytes()));
            prop_assert_eq!(serde_json::from_str::<String>(&quoted).expect("valid JSON"), value);
        }
    }
}
