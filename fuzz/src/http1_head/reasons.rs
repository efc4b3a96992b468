//! Listed reasons: for each refusal of the decoder, the inputs that may be refused although hyper accepts them.
//!
//! | refusal           | may be refused although hyper serves it                                  | RFC                  |
//! | ----------------- | ------------------------------------------------------------------------ | -------------------- |
//! | `Chunk`           | white space behind a chunk's size, which others read as another size     | 9112, 7.1            |
//! |                   | more than 16 digits of a size, with leading zeros                        | 9112, 7.1            |
//! |                   | a size line, all extensions or a trailer section past the limits         | 9112, 7.1.1          |
//! |                   | a trailer line that ends in a bare LF                                    | 9112, 2.2 and 7.1.2  |
//! | `Framing`         | a length beside a transfer coding                                        | 9112, 6.1 and 11.2   |
//! |                   | several lengths, even if they are the same                               | 9112, 6.3 (5.)       |
//! |                   | a length of more than 48 digits or 63 bits, which others read as another | 9110, 8.6            |
//! |                   | a body of a CONNECT                                                      | 9110, 9.3.6          |
//! | `Header`          | a line of the head, or an empty line before it, that ends in a bare LF   | 9112, 2.2 and 11.2   |
//! | `HeadersTooLarge` | a head past the limits                                                   | 9110, 5.4; 6585, 5   |
//! | `Target`          | a fragment in the request target                                         | 9112, 3.2            |
//! | `TransferCoding`  | a transfer coding other than `chunked`, or `chunked` twice               | 9112, 6.1            |
//!
//! The parser of this module is lenient, and shares no code with the decoder.

use proxy::codec::refusal::Refusal;
use wire::http1::request::decoder::{EXTENSION_BYTES_MAX, Limits};

/// Refusal of the decoder with its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Reason of the refusal.
    pub refusal: Refusal,
    /// Offset of the refused head or body.
    pub began: usize,
    /// Offset of the refused line of the body; `None` for a head.
    pub line: Option<usize>,
}

impl Refused {
    /// Whether the refusal is on the list.
    pub fn is_listed(&self, bytes: &[u8], limits: Limits) -> bool {
        let Some(line) = self.line else {
            let head = Head::read(&bytes[self.began..]);
            return match self.refusal {
                Refusal::Framing | Refusal::TransferCoding => head.has_ambiguous_framing(),
                Refusal::Header => head.has_bare_lf,
                Refusal::HeadersTooLarge => {
                    head.bytes > limits.head_bytes_max || head.fields.len() > limits.headers_max
                }
                Refusal::Target => head.request.contains(&b'#'),
                _ => false,
            };
        };
        let line = line - self.began;
        self.refusal == Refusal::Chunk && may_refuse_chunk(&bytes[self.began..], line, limits)
    }
}

/// Head whose lines end in LF.
#[derive(Debug, Default)]
struct Head<'a> {
    /// Number of bytes, including the empty lines before and after the head.
    bytes: usize,
    has_bare_lf: bool,
    request: &'a [u8],
    /// Field names in lower case, and values.
    fields: Vec<(Vec<u8>, &'a [u8])>,
}

impl<'a> Head<'a> {
    fn read(bytes: &'a [u8]) -> Self {
        let mut head = Self::default();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            head.bytes += line.len();
            head.has_bare_lf |= is_bare(line);
            let line = content(line);
            match (head.request.is_empty(), line.is_empty()) {
                (true, true) => {}
                (true, false) => head.request = line,
                (false, true) => break,
                (false, false) => {
                    let colon = line.iter().position(|byte| *byte == b':');
                    let (name, value) = line.split_at(colon.unwrap_or(line.len()));
                    let value = value.strip_prefix(b":").unwrap_or(value).trim_ascii();
                    head.fields.push((name.to_ascii_lowercase(), value));
                }
            }
        }
        head
    }

    fn values(&self, name: &[u8]) -> Vec<&'a [u8]> {
        let named = self.fields.iter().filter(|field| field.0 == name);
        named.map(|field| field.1).collect()
    }

    fn has_ambiguous_framing(&self) -> bool {
        let codings = self.values(b"transfer-encoding");
        let lengths = self.values(b"content-length");
        let is_other = |coding: &&[u8]| !coding.eq_ignore_ascii_case(b"chunked");
        let is_zero = |length: &&[u8]| length.iter().all(|digit| *digit == b'0');
        let has_body = !codings.is_empty() || !lengths.iter().all(is_zero);
        codings.len() + lengths.len() > 1
            || codings.iter().any(is_other)
            || lengths.iter().any(|length| is_too_long(length))
            || self.request.starts_with(b"CONNECT ") && has_body
    }
}

/// Whether a length has too many digits, or exceeds 63 bits.
fn is_too_long(length: &[u8]) -> bool {
    let number = str::from_utf8(length).ok();
    let number = number.and_then(|text| text.parse::<i64>().ok());
    length.len() > 48 || (length.iter().all(u8::is_ascii_digit) && number.is_none())
}

/// Whether a chunked body may be refused for the line at `at`, or for an earlier one.
fn may_refuse_chunk(body: &[u8], at: usize, limits: Limits) -> bool {
    let (mut rest, mut extensions) = (body, 0);
    loop {
        let begin = body.len() - rest.len();
        let Some(line) = next_line(&mut rest).filter(|_| begin <= at) else {
            // a line that is too long is refused before its end came
            return begin <= at && body.len() - begin > limits.head_bytes_max;
        };
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit());
        let (digits, extension) = content(line).split_at(digits.count());
        extensions += extension.len();
        let is_spaced = matches!(extension.first(), Some(b' ' | b'\t'));
        let is_long = line.len() > limits.head_bytes_max || extensions > EXTENSION_BYTES_MAX;
        if is_spaced || is_long || digits.len() > 16 {
            return true;
        }
        let size = str::from_utf8(digits).ok();
        let size = size.and_then(|digits| usize::from_str_radix(digits, 16).ok());
        match size {
            Some(0) => break,
            Some(size) if size < rest.len() => rest = &rest[size..],
            _ => return false,
        }
        if !next_line(&mut rest).is_some_and(|line| content(line).is_empty()) {
            return false;
        }
    }
    let (mut trailers, mut length) = (0, 0);
    while let Some(line) = next_line(&mut rest) {
        let is_last = line == b"\r\n";
        trailers += usize::from(!is_last);
        length += line.len();
        let is_past = trailers > limits.headers_max || length > limits.head_bytes_max;
        if is_last || is_past || is_bare(line) {
            return is_past || is_bare(line);
        }
    }
    false
}

/// Splits off the first line, including its line ending.
fn next_line<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let (line, after) = rest.split_at(end + 1);
    *rest = after;
    Some(line)
}

/// Whether a line ends in LF without CR.
fn is_bare(line: &[u8]) -> bool {
    line.ends_with(b"\n") && !line.ends_with(b"\r\n")
}

/// Returns a line without its line ending.
fn content(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}
