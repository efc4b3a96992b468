//! Lines of a request head, and the framing and connection options that follow from them.

use std::ops::Range;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};

use super::refusal::Refusal;
use crate::fields::{self, Field};

/// Head of a request, with its framing and connection options.
#[derive(Debug)]
pub struct Head {
    /// Method, target, version and header fields.
    pub request: Request<()>,
    /// Framing of the body.
    pub body: BodyKind,
    /// Whether the connection can carry another request (RFC 9112, section 9.3).
    pub persistent: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expects: bool,
    /// Whether the request asks for another protocol, by `Upgrade` or as CONNECT.
    pub upgrade: bool,
    /// Whether the client takes trailers (`TE: trailers`).
    pub takes_trailers: bool,
}

/// Framing of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyKind {
    /// Chunks.
    Chunked,
    /// No body.
    Empty,
    /// Length in bytes; never 0.
    Length(u64),
}

/// Lines of a head received so far.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// Start of the line that is not complete yet.
    start: usize,
    method: Progress,
    /// Request line, once it is complete.
    request: Option<RequestLine>,
    /// Names, and positions of the values.
    fields: Vec<(HeaderName, Range<usize>)>,
    said: FramingFields,
}

/// Progress of reading the method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Progress {
    /// No byte, or only empty lines.
    #[default]
    Ahead,
    /// Incomplete method.
    Begun,
    /// Complete method.
    Ended,
}

/// A request line.
#[derive(Debug)]
struct RequestLine {
    method: Method,
    /// Position of the target.
    target: Range<usize>,
    version: Version,
}

/// Framing and connection options of the fields.
#[derive(Debug, Default)]
struct FramingFields {
    chunked: bool,
    /// Unsupported transfer coding, or a second `chunked`.
    unknown_coding: bool,
    length: Option<u64>,
    close: bool,
    keep_alive: bool,
    expects: bool,
    upgrade: bool,
    takes_trailers: bool,
}

impl Lines {
    /// Whether these new bytes can still begin a request. Detects other protocols before the end of their first line,
    /// if it has one.
    pub(super) fn may_begin(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            self.method = match (self.method, byte) {
                (Progress::Ended, _) => return true,
                (Progress::Ahead, b'\r' | b'\n') => Progress::Ahead,
                (Progress::Begun, b' ') => Progress::Ended,
                (_, byte) if fields::is_of_token(*byte) => Progress::Begun,
                _ => return false,
            };
        }
        true
    }

    /// Adds the line whose content ends at `end`; returns whether it is the empty line that ends the head.
    pub(super) fn add_line(
        &mut self,
        input: &[u8],
        end: usize,
        headers_max: usize,
    ) -> Result<bool, Refusal> {
        let start = std::mem::replace(&mut self.start, end + 2);
        let line = &input[start..end];
        if self.request.is_none() {
            self.request = Some(RequestLine::read(line, start)?);
            return Ok(false);
        }
        if line.is_empty() {
            return Ok(true);
        }
        let Field { name, value } = fields::split(line).ok_or(Refusal::Header)?;
        let name = &line[name];
        self.said.note(name, &line[value.clone()])?;
        let name = fields::name(name).map_err(|_| Refusal::Header)?;
        if self.fields.len() == headers_max {
            return Err(Refusal::HeadersTooLarge);
        }
        let value = start + value.start..start + value.end;
        self.fields.push((name, value));
        Ok(false)
    }

    /// Builds the head from all lines, and resets for the next one.
    pub(super) fn finish(&mut self, bytes: Bytes, memory: &mut HeaderMap) -> Result<Head, Refusal> {
        let said = std::mem::take(&mut self.said);
        let RequestLine {
            method,
            target,
            version,
        } = self.request.take().ok_or(Refusal::Header)?;
        (self.start, self.method) = (0, Progress::Ahead);
        let uri = uri(&bytes, target)?;
        let newer = version == Version::HTTP_11;
        let body = match said.length {
            _ if said.chunked => BodyKind::Chunked,
            None | Some(0) => BodyKind::Empty,
            Some(length) => BodyKind::Length(length),
        };
        let is_connect = method == Method::CONNECT;
        // HTTP/1.0 has no codings, and bytes after a CONNECT belong to the tunnel (RFC 9110, section 9.3.6)
        let has_unknown_coding = said.unknown_coding || is_connect && said.chunked;
        let has_length = matches!(body, BodyKind::Length(_));
        if said.chunked && !newer && !has_unknown_coding || is_connect && has_length {
            return Err(Refusal::Framing);
        }
        let mut headers = std::mem::take(memory);
        headers.clear();
        headers.reserve(self.fields.len());
        for (name, value) in self.fields.drain(..) {
            let value = HeaderValue::from_maybe_shared(bytes.slice(value));
            headers.append(name, value.map_err(|_| Refusal::Header)?);
        }
        let mut request = Request::new(());
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.version_mut() = version;
        *request.headers_mut() = headers;
        if has_unknown_coding {
            return Err(Refusal::TransferCoding);
        }
        Ok(Head {
            request,
            body,
            persistent: !said.close && (newer || said.keep_alive),
            expects: said.expects && newer && body != BodyKind::Empty,
            upgrade: is_connect || (said.upgrade && newer),
            takes_trailers: said.takes_trailers,
        })
    }
}

/// Parses the URI of a target; bytes that no URI may contain, but clients send, are escaped.
fn uri(bytes: &Bytes, target: Range<usize>) -> Result<Uri, Refusal> {
    let parsed = Uri::from_maybe_shared(bytes.slice(target.clone()));
    let escaped = || fields::escaped_target(&bytes[target]);
    let parsed = parsed.or_else(|_| Uri::from_maybe_shared(escaped()));
    parsed.map_err(|_| Refusal::Header)
}

impl FramingFields {
    fn note(&mut self, name: &[u8], value: &[u8]) -> Result<(), Refusal> {
        let is = |text: &[u8]| name.eq_ignore_ascii_case(text);
        match name.len() {
            2 if is(b"te") => self.takes_trailers |= fields::has_token(value, b"trailers"),
            6 if is(b"expect") => self.expects = value.eq_ignore_ascii_case(b"100-continue"),
            7 if is(b"upgrade") => self.upgrade = true,
            10 if is(b"connection") => {
                self.close |= fields::has_token(value, b"close");
                self.keep_alive |= fields::has_token(value, b"keep-alive");
            }
            14 if is(b"content-length") => return self.content_length(value),
            17 if is(b"transfer-encoding") => {
                let is_chunked = value.eq_ignore_ascii_case(b"chunked");
                if self.length.is_some() {
                    return Err(Refusal::Framing);
                }
                self.unknown_coding |= !is_chunked || self.chunked;
                self.chunked = true;
            }
            _ => {}
        }
        Ok(())
    }

    fn content_length(&mut self, value: &[u8]) -> Result<(), Refusal> {
        let digits =
            (1..=LENGTH_DIGITS_MAX).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
        if !digits || self.length.is_some() || self.chunked {
            return Err(Refusal::Framing);
        }
        let text = str::from_utf8(value).map_err(|_| Refusal::Framing)?;
        let length = text.parse().ok().filter(|length| *length <= LENGTH_MAX);
        self.length = Some(length.ok_or(Refusal::Framing)?);
        Ok(())
    }
}

/// Maximum digits of a length, leading zeros included.
const LENGTH_DIGITS_MAX: usize = 48;

/// Largest length of a body. An endpoint that holds lengths as signed numbers reads a larger one differently.
const LENGTH_MAX: u64 = i64::MAX.unsigned_abs();

impl RequestLine {
    /// Parses the request line that begins at `start` (RFC 9112, section 3).
    fn read(line: &[u8], start: usize) -> Result<Self, Refusal> {
        let space = memchr::memchr(b' ', line).ok_or(Refusal::Header)?;
        // a fragment is for the client alone (RFC 9112, section 3.2); the URI parser would drop it silently
        if memchr::memchr(b'#', &line[space..]).is_some() {
            return Err(Refusal::Target);
        }
        let (target, version) = match line.split_last_chunk::<9>() {
            Some((before, b" HTTP/1.1")) => (space + 1..before.len(), Version::HTTP_11),
            Some((before, b" HTTP/1.0")) => (space + 1..before.len(), Version::HTTP_10),
            _ => return Err(Refusal::Header),
        };
        if target.is_empty() {
            return Err(Refusal::Header);
        }
        Ok(Self {
            method: Method::from_bytes(&line[..space]).map_err(|_| Refusal::Header)?,
            target: start + target.start..start + target.end,
            version,
        })
    }
}
