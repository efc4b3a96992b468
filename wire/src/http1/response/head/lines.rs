//! Lines of a response head (RFC 9112, sections 2 to 5).
//!
//! Lenient where peers are: a line may end in a bare LF, empty lines may come first, and the reason phrase is optional.
//! All else is rejected at the first invalid byte, even before the end of its line. Invariant: the result equals that
//! of `httparse` with its defaults; a property test and a fuzz target compare the two.

use std::ops::Range;

use crate::fields;
use crate::http1::response::limits::{RESPONSE_HEAD_BYTES_MAX, RESPONSE_HEADERS_MAX};

/// Reason that there is no head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The head is incomplete.
    Incomplete,
    /// The head is invalid, for this reason.
    Malformed(&'static str),
}

const LINE_END: &str = "invalid new line";
const NAME: &str = "invalid header name";
const STATUS: &str = "invalid response status";
const VALUE: &str = "invalid header value";
const VERSION: &str = "invalid HTTP version";

/// Status line of a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StatusLine {
    /// Whether the version is HTTP/1.1, not HTTP/1.0.
    pub(super) is_http11: bool,
    /// Any three digits.
    pub(super) status: u16,
    /// Position of the reason phrase.
    pub(super) reason: Range<usize>,
}

/// Positions of the field lines of a head. Located before they are parsed: only the bytes of a complete head are taken
/// off the input, and values share them.
#[derive(Debug)]
pub(super) struct FieldLines {
    /// Start of the first line.
    start: usize,
    /// End of each line: its LF. One more than allowed; 16 bits are enough.
    ends: [u16; RESPONSE_HEADERS_MAX + 1],
    count: usize,
}

const _: () = assert!(RESPONSE_HEAD_BYTES_MAX <= u16::MAX as usize);

impl FieldLines {
    /// Returns an empty list of lines.
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            start: 0,
            ends: [0; RESPONSE_HEADERS_MAX + 1],
            count: 0,
        }
    }

    /// Locates the lines of the head at the front of the input; returns its status line and its length. Of a complete
    /// head, only the ends of the field lines are read.
    #[inline]
    pub(super) fn find(&mut self, input: &[u8]) -> Result<(StatusLine, usize), Stop> {
        let head = &input[..input.len().min(RESPONSE_HEAD_BYTES_MAX)];
        let found = self.find_within(head);
        match found {
            Err(Stop::Incomplete) if head.len() == RESPONSE_HEAD_BYTES_MAX => {
                Err(Stop::Malformed("response head too long"))
            }
            found => found,
        }
    }

    #[inline]
    fn find_within(&mut self, head: &[u8]) -> Result<(StatusLine, usize), Stop> {
        let mut reader = Reader { head, at: 0 };
        while reader.is_at_line_end(LINE_END)? {}
        let status = reader.status_line()?;
        self.start = reader.at;
        let mut at = reader.at;
        while let Some(length) = memchr::memchr(b'\n', &head[at..]) {
            let end = at + length;
            if length == 0 || length == 1 && head[at] == b'\r' {
                return Ok((status, end + 1));
            }
            self.ends[self.count] = u16::try_from(end).expect("no more is read than the limit");
            self.count += 1;
            at = end + 1;
            if self.count > RESPONSE_HEADERS_MAX {
                break;
            }
        }
        Err(self.head_error(head, at))
    }

    /// Number of lines.
    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns the lines, without their ends.
    #[inline]
    pub(super) fn iter(&self, head: &[u8]) -> impl Iterator<Item = Range<usize>> {
        let mut start = self.start;
        self.ends[..self.count].iter().map(move |&end| {
            let end = usize::from(end);
            let line = start..end - usize::from(head[end - 1] == b'\r');
            start = end + 1;
            line
        })
    }

    /// Returns the reason that these lines are no complete head; the line that begins at `rest` is incomplete.
    #[cold]
    fn head_error(&self, head: &[u8], rest: usize) -> Stop {
        for line in self.iter(head) {
            if let Some(text) = flaw(&head[line], true) {
                return Stop::Malformed(text);
            }
        }
        if self.count > RESPONSE_HEADERS_MAX {
            return Stop::Malformed("too many headers");
        }
        flaw(&head[rest..], false).map_or(Stop::Incomplete, Stop::Malformed)
    }
}

/// Returns the error of an invalid field line.
#[cold]
pub(super) fn malformed(line: &[u8]) -> &'static str {
    flaw(line, true).unwrap_or(NAME)
}

/// Returns the error of a field line, or of the received part of one.
fn flaw(line: &[u8], complete: bool) -> Option<&'static str> {
    if let [b'\r', rest @ ..] = line {
        return (complete || !rest.is_empty()).then_some(LINE_END);
    }
    let (name, value) = match memchr::memchr(b':', line) {
        Some(0) => return Some(NAME),
        Some(colon) => (&line[..colon], &line[colon + 1..]),
        None if complete => return Some(NAME),
        None => (line, &[][..]),
    };
    let value = match value {
        // its LF may follow
        [value @ .., b'\r'] if !complete => value,
        value => value,
    };
    if !name.iter().all(|&byte| fields::is_of_token(byte)) {
        return Some(NAME);
    }
    let is_text = value.iter().all(|&byte| is_text(byte));
    (!is_text).then_some(VALUE)
}

/// Whether a byte may be part of a value or of a reason phrase.
fn is_text(byte: u8) -> bool {
    !byte.is_ascii_control() || byte == b'\t'
}

struct Reader<'a> {
    head: &'a [u8],
    /// Position of the next byte.
    at: usize,
}

impl Reader<'_> {
    #[inline]
    fn status_line(&mut self) -> Result<StatusLine, Stop> {
        let is_http11 = self.version()?;
        if self.next()? != b' ' {
            return Err(Stop::Malformed(VERSION));
        }
        Ok(StatusLine {
            is_http11,
            status: self.status()?,
            reason: self.reason()?,
        })
    }

    #[inline]
    fn next(&mut self) -> Result<u8, Stop> {
        let byte = *self.head.get(self.at).ok_or(Stop::Incomplete)?;
        self.at += 1;
        Ok(byte)
    }

    /// Whether a line ends here; skips its end. A bare CR is an error.
    #[inline]
    fn is_at_line_end(&mut self, error: &'static str) -> Result<bool, Stop> {
        match self.head[self.at..] {
            [] | [b'\r'] => return Err(Stop::Incomplete),
            [b'\n', ..] => self.at += 1,
            [b'\r', b'\n', ..] => self.at += 2,
            [b'\r', ..] => return Err(Stop::Malformed(error)),
            [..] => return Ok(false),
        }
        Ok(true)
    }

    /// Whether the version is HTTP/1.1, not HTTP/1.0; any other is an error.
    #[inline]
    fn version(&mut self) -> Result<bool, Stop> {
        let rest = &self.head[self.at..];
        let is_http11 = match rest.first_chunk() {
            Some(b"HTTP/1.1") => true,
            Some(b"HTTP/1.0") => false,
            None if b"HTTP/1.".starts_with(rest) => return Err(Stop::Incomplete),
            _ => return Err(Stop::Malformed(VERSION)),
        };
        self.at += b"HTTP/1.1".len();
        Ok(is_http11)
    }

    #[inline]
    fn status(&mut self) -> Result<u16, Stop> {
        let mut status = 0;
        for _ in 0..3 {
            let digit = self.next()?;
            if !digit.is_ascii_digit() {
                return Err(Stop::Malformed(STATUS));
            }
            status = status * 10 + u16::from(digit - b'0');
        }
        Ok(status)
    }

    /// Reads the reason phrase and the end of its line. Some peers omit the space before it as well.
    #[inline]
    fn reason(&mut self) -> Result<Range<usize>, Stop> {
        if self.is_at_line_end(STATUS)? {
            return Ok(0..0);
        }
        if self.next()? != b' ' {
            return Err(Stop::Malformed(STATUS));
        }
        let start = self.at;
        let text = self.head[start..].iter().take_while(|&&byte| is_text(byte));
        self.at += text.count();
        let end = self.at;
        match self.is_at_line_end(STATUS)? {
            true => Ok(start..end),
            false => Err(Stop::Malformed(STATUS)),
        }
    }
}
