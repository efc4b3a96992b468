//! Where HTTP/1 requests begin and end on the wire, checked more strictly than the parser does.
//!
//! hyper resolves some ambiguities by itself: it drops a Content-Length next to Transfer-Encoding, takes equal lengths
//! twice, ends lines at a bare LF. A proxy in front of us may have resolved them in another way, and then sees other
//! requests than we do. This reads the same bytes before hyper does and refuses what could be read in two ways
//! (RFC 9112, sections 2.2, 5.2, 6.1 and 11.2).
//!
//! Pure and incremental: bytes in, verdict out. Invariant: the verdict does not depend on how the bytes are cut.

use super::refusal::Refusal;

/// Limits of a request head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request head, and of a trailer section.
    pub head_bytes_max: usize,
    /// Header fields of a request.
    pub headers_max: usize,
}

/// What may be done with the bytes just seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Parse the first so many bytes. The rest may belong to another protocol: keep it until [`Framing::resume`] or
    /// [`Framing::tunnel`] says what it is.
    Hold(usize),
    /// Parse them all.
    Pass,
    /// Parse the first so many bytes, which belong to earlier requests, and refuse what follows.
    Refuse(usize, Refusal),
}

/// Where in the stream of requests the bytes seen so far end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamPosition {
    /// Between two requests.
    Between,
    /// Inside a body.
    Body,
    /// Inside a head.
    Head,
    /// After a request that asks for another protocol.
    Held,
    /// Nothing that follows is parsed.
    Refused,
    /// In another protocol.
    Tunnel,
}

/// Follows the requests of one connection.
#[derive(Debug)]
pub struct Framing {
    limits: Limits,
    state: State,
    line: Line,
    head: Head,
    heads: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// After the bytes of a chunk: its CRLF.
    ChunkEnd,
    ChunkSize,
    Chunk(u64),
    Head,
    Held,
    Length(u64),
    Refused,
    Trailers,
    Tunnel,
}

/// What the head that is being read has said so far.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    /// Bytes of complete lines.
    bytes: usize,
    /// Complete lines, the request line included; empty lines before that are not counted.
    lines: usize,
    chunked: bool,
    length: Option<u64>,
    /// Asks for another protocol after this request.
    upgrade: bool,
    target: Target,
}

/// How far the request target was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Target {
    /// Its method comes first.
    #[default]
    Ahead,
    /// It has begun.
    Begun,
    /// It has a fragment, which is for a client alone (RFC 9112, section 3.2); the parser would drop it unsaid.
    Fragment,
}

impl Target {
    /// Looks at more bytes of the request line.
    fn look(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        if *self == Self::Ahead {
            let Some(space) = memchr::memchr(b' ', rest) else {
                return;
            };
            *self = Self::Begun;
            rest = &rest[space..];
        }
        if *self == Self::Begun && memchr::memchr(b'#', rest).is_some() {
            *self = Self::Fragment;
        }
    }
}

impl Framing {
    /// Before the first request of a connection.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: State::Head,
            line: Line::default(),
            head: Head::default(),
            heads: 0,
        }
    }

    /// How many heads were complete and good.
    pub fn heads(&self) -> u32 {
        self.heads
    }

    /// Where the bytes seen so far end.
    pub fn place(&self) -> StreamPosition {
        match self.state {
            State::Head if self.head.bytes == 0 && self.line.is_empty() => StreamPosition::Between,
            State::Head => StreamPosition::Head,
            State::Held => StreamPosition::Held,
            State::Refused => StreamPosition::Refused,
            State::Tunnel => StreamPosition::Tunnel,
            State::Chunk(_)
            | State::ChunkEnd
            | State::ChunkSize
            | State::Length(_)
            | State::Trailers => StreamPosition::Body,
        }
    }

    /// After [`Verdict::Hold`]: the protocol stays HTTP/1, and what is held are requests.
    pub fn resume(&mut self) {
        if self.state == State::Held {
            self.state = State::Head;
        }
    }

    /// After [`Verdict::Hold`], or before the first byte: what follows is another protocol, and none of our business.
    pub fn tunnel(&mut self) {
        self.state = State::Tunnel;
    }

    /// Looks at the bytes that follow those seen so far.
    pub fn feed(&mut self, bytes: &[u8]) -> Verdict {
        let mut at = 0;
        // Where the head that is being read begins in these bytes.
        let mut start = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            let step = match self.state {
                State::Chunk(left) | State::Length(left) => Ok(self.skip(left, rest.len())),
                State::Held => return Verdict::Hold(at),
                State::Refused => Err(Refusal::Framing),
                State::Tunnel => return Verdict::Pass,
                State::ChunkEnd | State::ChunkSize | State::Head | State::Trailers => {
                    self.line(rest)
                }
            };
            match step {
                Ok(taken) => at += taken,
                Err(refusal) => {
                    self.state = State::Refused;
                    return Verdict::Refuse(start, refusal);
                }
            }
            // What is not part of an incomplete head is the parser's already.
            if self.place() != StreamPosition::Head {
                start = at;
            }
        }
        Verdict::Pass
    }

    /// Takes bytes of a body, of which so many are left.
    fn skip(&mut self, left: u64, available: usize) -> usize {
        let taken = usize::try_from(left).map_or(available, |left| left.min(available));
        let left = left - taken as u64;
        match self.state {
            State::Chunk(_) if left == 0 => self.state = State::ChunkEnd,
            State::Chunk(_) => self.state = State::Chunk(left),
            _ if left == 0 => self.end_message(),
            _ => self.state = State::Length(left),
        }
        taken
    }

    /// Takes bytes up to the end of a line, if there is one.
    fn line(&mut self, bytes: &[u8]) -> Result<usize, Refusal> {
        let in_head = self.state == State::Head;
        let malformed = if in_head {
            Refusal::Header
        } else {
            Refusal::Chunk
        };
        // A line that is too long is refused for that, whatever comes behind the limit.
        let before = self.head.bytes + self.line.length;
        let room = self.limits.head_bytes_max.saturating_sub(before) + 1;
        let within = &bytes[..bytes.len().min(room)];
        let (taken, tail) = self.line.take(within).ok_or(malformed)?;
        if self.head.bytes + self.line.length > self.limits.head_bytes_max {
            return Err(if in_head {
                Refusal::HeadersTooLarge
            } else {
                Refusal::Chunk
            });
        }
        if in_head && self.head.lines == 0 {
            self.head.target.look(&within[..taken]);
        }
        let Some(tail) = tail else { return Ok(taken) };
        let mut line = std::mem::take(&mut self.line);
        self.head.bytes += line.length;
        let content = line.length - LINE_END;
        let whole = if content == tail.len() {
            tail
        } else {
            line.keep(tail);
            &line.stash
        };
        // Also when it came in one piece, so that the verdict does not depend on that.
        let long = content > STASH_MAX;
        match self.state {
            State::ChunkEnd => self.chunk_end(whole),
            State::ChunkSize => self.chunk_size(whole),
            State::Trailers => self.trailer(whole),
            _ => self.head_line(whole, long),
        }?;
        Ok(taken)
    }

    fn head_line(&mut self, line: &[u8], long: bool) -> Result<(), Refusal> {
        if self.head.lines == 0 {
            // RFC 9112, section 2.2: ignore empty lines before the request line.
            if self.head.target == Target::Fragment {
                return Err(Refusal::Target);
            }
            if !line.is_empty() {
                self.head.lines = 1;
                self.head.upgrade = line.starts_with(b"CONNECT ");
            }
            return Ok(());
        }
        match line.first() {
            None => return self.end_head(),
            Some(b' ' | b'\t') => return Err(Refusal::Header),
            Some(b'c' | b'C') => {
                if let Some(value) = value_of(line, b"content-length:") {
                    self.content_length(value, long)?;
                }
            }
            Some(b't' | b'T') => {
                if let Some(value) = value_of(line, b"transfer-encoding:") {
                    self.transfer_encoding(value, long)?;
                }
            }
            Some(b'u' | b'U') => {
                self.head.upgrade |= value_of(line, b"upgrade:").is_some();
            }
            Some(_) => {}
        }
        self.head.lines += 1;
        if self.head.lines - 1 > self.limits.headers_max {
            return Err(Refusal::HeadersTooLarge);
        }
        Ok(())
    }

    fn content_length(&mut self, value: &[u8], long: bool) -> Result<(), Refusal> {
        let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        if long || !digits || self.head.length.is_some() || self.head.chunked {
            return Err(Refusal::Framing);
        }
        let text = str::from_utf8(value).map_err(|_| Refusal::Framing)?;
        self.head.length = Some(text.parse().map_err(|_| Refusal::Framing)?);
        Ok(())
    }

    fn transfer_encoding(&mut self, value: &[u8], long: bool) -> Result<(), Refusal> {
        let chunked = value.eq_ignore_ascii_case(b"chunked");
        if long || !chunked || self.head.length.is_some() || self.head.chunked {
            return Err(Refusal::Framing);
        }
        self.head.chunked = true;
        Ok(())
    }

    fn end_head(&mut self) -> Result<(), Refusal> {
        self.heads = self.heads.wrapping_add(1);
        let head = self.head;
        self.head.bytes = 0;
        self.head.lines = 0;
        match head.length {
            _ if head.chunked => self.state = State::ChunkSize,
            Some(length) if length > 0 => self.state = State::Length(length),
            Some(_) | None => self.end_message(),
        }
        Ok(())
    }

    /// A chunk's size in 1 to 16 hexadecimal digits, then possibly extensions, which are unused and which we don't look at.
    fn chunk_size(&mut self, line: &[u8]) -> Result<(), Refusal> {
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit());
        let (digits, rest) = line.split_at(digits.count());
        if !(1..=16).contains(&digits.len()) || !matches!(rest.first(), None | Some(b';')) {
            return Err(Refusal::Chunk);
        }
        let digits = str::from_utf8(digits).map_err(|_| Refusal::Chunk)?;
        let size = u64::from_str_radix(digits, 16).map_err(|_| Refusal::Chunk)?;
        // The limit is on one line with its extensions, and on all trailers together.
        self.head.bytes = 0;
        self.state = if size == 0 {
            State::Trailers
        } else {
            State::Chunk(size)
        };
        Ok(())
    }

    fn chunk_end(&mut self, line: &[u8]) -> Result<(), Refusal> {
        if !line.is_empty() {
            return Err(Refusal::Chunk);
        }
        self.state = State::ChunkSize;
        Ok(())
    }

    fn trailer(&mut self, line: &[u8]) -> Result<(), Refusal> {
        self.head.lines += 1;
        match line.first() {
            None => self.end_message(),
            Some(b' ' | b'\t') => return Err(Refusal::Chunk),
            Some(_) if self.head.lines > self.limits.headers_max => return Err(Refusal::Chunk),
            Some(_) => {}
        }
        Ok(())
    }

    fn end_message(&mut self) {
        self.state = if self.head.upgrade {
            State::Held
        } else {
            State::Head
        };
        self.head = Head::default();
    }
}

/// The value of a header line whose name, with its colon, is `name`; without white space around it.
fn value_of<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (start, value) = line.split_at_checked(name.len())?;
    start.eq_ignore_ascii_case(name).then(|| trim(value))
}

/// Without the white space that RFC 9110, section 5.6.3, allows around a value.
fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// Bytes of a line that are kept when it comes in pieces: longer than any line that matters.
const STASH_MAX: usize = 64;

/// CR and LF.
const LINE_END: usize = 2;

/// A line that comes in pieces.
#[derive(Debug, Default)]
struct Line {
    /// Its bytes so far, with what there is of its CRLF.
    length: usize,
    /// The first of them, if it did come in pieces.
    stash: Vec<u8>,
    /// Whether the last of them was a CR.
    after_cr: bool,
}

impl Line {
    fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Takes bytes up to the end of the line: how many, and those of them that are content, if the end was among them.
    /// `None` at a CR or LF that is not part of a CRLF.
    fn take<'a>(&mut self, bytes: &'a [u8]) -> Option<(usize, Option<&'a [u8]>)> {
        if self.after_cr {
            self.length += 1;
            return (bytes.first() == Some(&b'\n')).then_some((1, Some(&[])));
        }
        let end = memchr::memchr2(b'\r', b'\n', bytes).unwrap_or(bytes.len());
        let (content, rest) = bytes.split_at(end);
        match rest {
            [b'\r', b'\n', ..] => {
                self.length += end + LINE_END;
                return Some((end + LINE_END, Some(content)));
            }
            [b'\r'] => self.after_cr = true,
            [] => {}
            _ => return None,
        }
        self.keep(content);
        self.length += bytes.len();
        Some((bytes.len(), None))
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = STASH_MAX.saturating_sub(self.stash.len());
        self.stash
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

#[cfg(test)]
mod tests;
