//! Bytes to HTTP/1 requests, one message at a time.
//!
//! A proxy in front of this one may parse ambiguous bytes differently and then sees other requests. Ambiguous bytes are
//! rejected (RFC 9112, sections 2.2, 5.2, 6.1 and 11.2): a bare CR or LF, a folded line, a repeated length or one next
//! to a transfer coding, a coding other than `chunked`.
//!
//! Pure and incremental. Invariant: the result does not depend on how the bytes are split, and each byte is searched
//! for a line end once.

use std::ops::Range;

use bytes::{Buf, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::head::{BodyKind, Head, Lines};
use super::refusal::Refusal;
use crate::fields::{self, Field};

/// Limits of a request's head and trailers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request head, of the line of a chunk's size, and of a trailer section.
    pub head_bytes_max: usize,
    /// Header fields of a request, and fields of its trailers.
    pub headers_max: usize,
}

/// Maximum bytes of chunk extensions in one body: they are useless, and could be most of the bytes.
pub const EXTENSION_BYTES_MAX: usize = 16 * 1024;

/// Next piece of a body.
#[derive(Debug)]
pub enum Piece {
    /// Bytes; never empty.
    Data(BytesMut),
    /// End of the body, with its trailers if any.
    End(Option<HeaderMap>),
    /// More bytes are needed.
    More,
}

/// Position of the decoder in the messages of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Head,
    Length(u64),
    Chunk(u64),
    /// CRLF after the bytes of a chunk.
    ChunkEnd,
    ChunkSize,
    Trailers,
}

/// Parses the requests of one connection from its input.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    state: State,
    /// Bytes at the front of the input that were searched for a line end: none but ends already found.
    searched: usize,
    lines: Lines,
    /// Bytes of empty lines before the head, which are skipped (RFC 9112, section 2.2).
    skipped: usize,
    /// Bytes of chunk extensions, or of trailers, so far.
    extra: usize,
    trailers: HeaderMap,
}

/// Reason that a line is rejected.
enum BadLine {
    /// Bare CR or LF in the line.
    Broken,
    /// Line end past the limit.
    Long,
}

impl BadLine {
    fn of_head(self) -> Refusal {
        match self {
            Self::Broken => Refusal::Header,
            Self::Long => Refusal::HeadersTooLarge,
        }
    }
}

const CRLF: usize = 2;

impl Decoder {
    /// Returns a decoder for a new connection.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            state: State::Head,
            searched: 0,
            lines: Lines::default(),
            skipped: 0,
            extra: 0,
            trailers: HeaderMap::new(),
        }
    }

    /// Returns a decoder for a connection that was parked after this many bytes of empty lines.
    pub fn after(skipped: usize, limits: Limits) -> Self {
        Self {
            skipped,
            ..Self::new(limits)
        }
    }

    /// Bytes of empty lines that were skipped before the next request.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// Whether a body, or the rest of one, follows.
    pub fn is_in_body(&self) -> bool {
        self.state != State::Head
    }

    /// Takes a head off the front of `input`; `None` while it is incomplete. `memory` is reused for its fields.
    ///
    /// # Errors
    ///
    /// The refusal of a head that is malformed, ambiguous, or exceeds a limit. The connection cannot be read after it.
    pub fn head(
        &mut self,
        input: &mut BytesMut,
        memory: &mut HeaderMap,
    ) -> Result<Option<Head>, Refusal> {
        debug_assert_eq!(
            self.state,
            State::Head,
            "a body is read before the next head"
        );
        let mut max = self.limits.head_bytes_max - self.skipped;
        if !self
            .lines
            .may_begin(&input[self.searched..input.len().min(max + 1)])
        {
            return Err(Refusal::Header);
        }
        loop {
            let found = self.line(input, max);
            let Some(end) = found.map_err(BadLine::of_head)? else {
                return Ok(None);
            };
            let next = end + CRLF;
            if end == 0 {
                // skipped at once: a client that sends nothing else is idle
                input.advance(next);
                self.searched = 0;
                self.skipped += next;
                max -= next;
                continue;
            }
            self.searched = next;
            if !self.lines.add_line(input, end, self.limits.headers_max)? {
                continue;
            }
            (self.searched, self.skipped) = (0, 0);
            let head = self.lines.finish(input.split_to(next).freeze(), memory)?;
            self.extra = 0;
            self.state = match head.body {
                BodyKind::Chunked => State::ChunkSize,
                BodyKind::Empty => State::Head,
                BodyKind::Length(length) => State::Length(length),
            };
            return Ok(Some(head));
        }
    }

    /// Takes the next piece of the body off the front of `input`.
    ///
    /// # Errors
    ///
    /// [`Refusal::Chunk`] if the framing is not as announced. The connection cannot be read after it.
    pub fn body(&mut self, input: &mut BytesMut) -> Result<Piece, Refusal> {
        loop {
            match self.state {
                State::Head => return Ok(Piece::End(None)),
                State::Length(_) | State::Chunk(_) if input.is_empty() => return Ok(Piece::More),
                State::Length(left) => {
                    let (data, left) = split(input, left);
                    self.state = match left {
                        0 => State::Head,
                        left => State::Length(left),
                    };
                    return Ok(Piece::Data(data));
                }
                State::Chunk(left) => {
                    let (data, left) = split(input, left);
                    self.state = match left {
                        0 => State::ChunkEnd,
                        left => State::Chunk(left),
                    };
                    return Ok(Piece::Data(data));
                }
                State::ChunkEnd | State::ChunkSize | State::Trailers => {
                    let spent = match self.state {
                        State::Trailers => self.extra,
                        _ => 0,
                    };
                    let found = self.line(input, self.limits.head_bytes_max - spent);
                    let Some(end) = found.map_err(|_| Refusal::Chunk)? else {
                        return Ok(Piece::More);
                    };
                    let ended = self.body_line(&input[..end])?;
                    input.advance(end + CRLF);
                    self.searched = 0;
                    if ended {
                        let trailers = std::mem::take(&mut self.trailers);
                        let any = !trailers.is_empty();
                        return Ok(Piece::End(any.then_some(trailers)));
                    }
                }
            }
        }
    }

    /// Returns the end of the next line's content; `None` while the line is incomplete. Lines must end within `max`
    /// bytes of the input.
    fn line(&mut self, input: &[u8], max: usize) -> Result<Option<usize>, BadLine> {
        // one byte more, to detect a line that is too long before its end arrives
        let window = &input[..input.len().min(max + 1)];
        let Some(found) = memchr::memchr2(b'\r', b'\n', &window[self.searched..]) else {
            self.searched = window.len();
            return match input.len() > max {
                true => Err(BadLine::Long),
                false => Ok(None),
            };
        };
        let at = self.searched + found;
        if input[at] == b'\n' {
            return Err(BadLine::Broken);
        }
        if at + CRLF > max {
            return Err(BadLine::Long);
        }
        match input.get(at + 1) {
            Some(b'\n') => Ok(Some(at)),
            Some(_) => Err(BadLine::Broken),
            None => {
                self.searched = at;
                Ok(None)
            }
        }
    }

    /// Processes a line between the bytes of a body; returns whether it ends the body.
    fn body_line(&mut self, line: &[u8]) -> Result<bool, Refusal> {
        match self.state {
            State::ChunkEnd if line.is_empty() => self.state = State::ChunkSize,
            State::ChunkSize => {
                let (size, extension) = chunk_size(line).ok_or(Refusal::Chunk)?;
                self.extra += extension;
                if self.extra > EXTENSION_BYTES_MAX {
                    return Err(Refusal::Chunk);
                }
                self.state = State::Chunk(size);
                if size == 0 {
                    self.state = State::Trailers;
                    self.extra = 0;
                }
            }
            State::Trailers if line.is_empty() => {
                self.state = State::Head;
                return Ok(true);
            }
            State::Trailers => {
                self.extra += line.len() + CRLF;
                let (name, value) = trailer(line).ok_or(Refusal::Chunk)?;
                self.trailers.append(name, value);
                if self.trailers.len() > self.limits.headers_max {
                    return Err(Refusal::Chunk);
                }
            }
            _ => return Err(Refusal::Chunk),
        }
        Ok(false)
    }
}

/// Takes at most `left` bytes, and returns how many of `left` remain.
fn split(input: &mut BytesMut, left: u64) -> (BytesMut, u64) {
    let taken = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
    (input.split_to(taken), left - taken as u64)
}

/// Parses a chunk size of 1 to 16 hexadecimal digits; also returns the length of its extensions.
fn chunk_size(line: &[u8]) -> Option<(u64, usize)> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit());
    let (digits, rest) = line.split_at(digits.count());
    if !(1..=16).contains(&digits.len()) || !matches!(rest.first(), None | Some(b';')) {
        return None;
    }
    let digits = str::from_utf8(digits).ok()?;
    let size = u64::from_str_radix(digits, 16).ok()?;
    Some((size, rest.len()))
}

fn trailer(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let Field { name, value } = fields::split(line)?;
    let part = |range: Range<usize>| &line[range];
    let name = HeaderName::from_bytes(part(name)).ok()?;
    let value = HeaderValue::from_bytes(part(value)).ok()?;
    Some((name, value))
}

#[cfg(test)]
mod tests;
