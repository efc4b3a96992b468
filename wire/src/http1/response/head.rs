//! Heads of HTTP/1.1 messages: encodes those of requests, parses those of responses (RFC 9112).

use bytes::BytesMut;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use hyper::ext::ReasonPhrase;

use self::lines::{FieldLines, Stop};
use super::Malformed;
use super::decoder::Decoder;
use crate::fields::{self, Field};

mod lines;

/// Framing of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Chunks: the length is unknown.
    Chunked,
    /// No body.
    Empty,
    /// Length of `Content-Length`.
    Length(u64),
}

impl Framing {
    /// Returns the framing of a body with these headers; `empty` if there is no body.
    pub fn of(headers: &HeaderMap, empty: bool) -> Self {
        if empty {
            return Framing::Empty;
        }
        let length = Lengths::of(headers).one().unwrap_or_default();
        length.map_or(Framing::Chunked, Framing::Length)
    }
}

/// Encodes the head of a request; `more` appends further lines.
pub fn encode(out: &mut Vec<u8>, parts: &Parts, framing: Framing, more: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(parts.method.as_str().as_bytes());
    out.push(b' ');
    let target = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    out.extend_from_slice(target.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    for (name, value) in &parts.headers {
        // A length must be true, or the endpoint would read the next request as this one's body (RFC 9112, section
        // 11.2).
        let untrue = match framing {
            Framing::Chunked => *name == CONTENT_LENGTH,
            Framing::Empty => *name == CONTENT_LENGTH && value != "0",
            Framing::Length(_) => false,
        };
        if !untrue {
            line(out, name, value);
        }
    }
    more(out);
    if framing == Framing::Chunked {
        out.extend_from_slice(b"transfer-encoding: chunked\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

/// Writes one header line.
pub fn line(out: &mut Vec<u8>, name: &HeaderName, value: &HeaderValue) {
    out.extend_from_slice(name.as_str().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value.as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Replaces the value of a header in an encoded head, at any position; does nothing if the header is absent.
pub fn replace(head: &mut Vec<u8>, name: &HeaderName, value: &HeaderValue) {
    let mut sought = Vec::with_capacity(name.as_str().len() + 4);
    sought.extend_from_slice(b"\r\n");
    sought.extend_from_slice(name.as_str().as_bytes());
    sought.extend_from_slice(b": ");
    let find = |text: &[u8], sought: &[u8]| {
        let mut windows = text.windows(sought.len());
        windows.position(|window| window == sought)
    };
    let Some(at) = find(head, &sought) else {
        return;
    };
    let start = at + sought.len();
    // a value contains no line end
    if let Some(length) = find(&head[start..], b"\r\n") {
        head.splice(start..start + length, value.as_bytes().iter().copied());
    }
}

/// Properties of a request that decide how its response is parsed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedResponse {
    /// Whether the method is HEAD: the response has no body, whatever its headers say.
    pub head: bool,
    /// Protocols that the request asks to switch to. Boxed, since it is rare.
    pub upgrade: Option<Box<HeaderValue>>,
}

impl ExpectedResponse {
    /// Returns the properties of this request.
    pub fn by(parts: &Parts) -> Self {
        Self {
            head: parts.method == Method::HEAD,
            upgrade: fields::first(&parts.headers, &UPGRADE)
                .cloned()
                .map(Box::new),
        }
    }

    /// Whether a 101 switches only to protocols that the request asked for, and names at least one (RFC 9110, section
    /// 7.8).
    fn is_agreed(&self, headers: &HeaderMap) -> bool {
        let Some(asked) = self.upgrade.as_deref() else {
            return false;
        };
        let lines = headers.get_all(UPGRADE).iter();
        let mut named = lines
            .flat_map(|line| fields::list(line.as_bytes()))
            .filter(|protocol| !protocol.is_empty())
            .peekable();
        named.peek().is_some() && named.all(|one| fields::has_token(asked.as_bytes(), one))
    }
}

/// Head of a response.
#[derive(Debug)]
pub struct Head {
    /// Status code.
    pub status: StatusCode,
    /// Reason phrase, if it is not the usual one.
    pub reason: Option<ReasonPhrase>,
    /// Header fields.
    pub headers: HeaderMap,
    /// Framing of the body.
    pub decoder: Decoder,
    /// Whether the connection can carry another request after the body.
    pub persistent: bool,
}

/// Framing and connection options of a head.
#[derive(Clone, Copy, Debug, Default)]
struct Delimiters {
    codings: Codings,
    lengths: Lengths,
    close: bool,
    keep_alive: bool,
}

impl Delimiters {
    #[inline]
    fn note(&mut self, name: &HeaderName, value: &HeaderValue) {
        // most names have another length, and need no comparison
        match name.as_str().len() {
            10 if *name == CONNECTION => {
                for option in fields::list(value.as_bytes()) {
                    self.close |= option.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if *name == CONTENT_LENGTH => self.lengths.add(value),
            17 if *name == TRANSFER_ENCODING => self.codings.add(value),
            _ => {}
        }
    }

    /// Whether the peer keeps the connection open (RFC 9112, section 9.3).
    fn stays_open(self, is_http11: bool) -> bool {
        !self.close && (is_http11 || self.keep_alive)
    }
}

/// Transfer codings of a head, over all lines.
#[derive(Clone, Copy, Debug, Default)]
struct Codings {
    /// Whether there is a `Transfer-Encoding` line, even an empty one.
    any: bool,
    /// Number of codings.
    count: u32,
    /// Whether the last coding is `chunked`.
    chunked: bool,
}

impl Codings {
    fn add(&mut self, line: &HeaderValue) {
        self.any = true;
        for coding in fields::list(line.as_bytes()).filter(|coding| !coding.is_empty()) {
            self.count += 1;
            self.chunked = coding.eq_ignore_ascii_case(b"chunked");
        }
    }

    /// Whether `chunked` is the only coding, and named once.
    fn is_chunked(self) -> bool {
        self.count == 1 && self.chunked
    }
}

/// Lengths of a head, over all lines and lists.
#[derive(Clone, Copy, Debug, Default)]
struct Lengths {
    length: Option<u64>,
    /// Number of lengths.
    times: u32,
    /// Whether one of them is no number, or two differ.
    malformed: bool,
}

impl Lengths {
    fn of(headers: &HeaderMap) -> Self {
        let mut lengths = Self::default();
        for line in headers.get_all(CONTENT_LENGTH) {
            lengths.add(line);
        }
        lengths
    }

    fn add(&mut self, line: &HeaderValue) {
        for part in fields::list(line.as_bytes()) {
            self.times += 1;
            let number = number(part);
            let agrees = self.length.is_none_or(|before| number == Some(before));
            self.malformed |= number.is_none() || !agrees;
            self.length = number;
        }
    }

    /// Returns the common length, if there is any.
    fn one(self) -> Result<Option<u64>, Malformed> {
        match self.malformed {
            true => {
                let text = "content-length is not one number";
                Err(Malformed::new(text))
            }
            false => Ok(self.length),
        }
    }
}

/// Takes a complete head off the front of `input`; `None` while it is incomplete. `headers` is reused for the fields.
///
/// # Errors
///
/// [`Malformed`] if the head is malformed, too long, or ambiguously framed.
pub fn parse(
    input: &mut BytesMut,
    headers: &mut HeaderMap,
    asked: &ExpectedResponse,
) -> Result<Option<Head>, Malformed> {
    let mut lines = FieldLines::new();
    let (line, length) = match lines.find(input) {
        Ok(found) => found,
        Err(Stop::Incomplete) => return Ok(None),
        Err(Stop::Malformed(text)) => return Err(refused(text)),
    };
    let bytes = input.split_to(length).freeze();
    headers.clear();
    headers.reserve(lines.count());
    let mut delimiters = Delimiters::default();
    for line in lines.iter(&bytes) {
        let start = line.start;
        let line = &bytes[line];
        let Some(Field { name, value }) = fields::split(line) else {
            return Err(refused(lines::malformed(line)));
        };
        let Ok(name) = fields::name(&line[name]) else {
            return Err(refused(lines::malformed(line)));
        };
        let value = bytes.slice(start + value.start..start + value.end);
        // checks each byte of the value, so that nothing before has to
        let Ok(value) = HeaderValue::from_maybe_shared(value) else {
            return Err(refused(lines::malformed(line)));
        };
        delimiters.note(&name, &value);
        headers.append(name, value);
    }
    let status = StatusCode::from_u16(line.status).map_err(malformed)?;
    let reason = reason(status, &bytes[line.reason]);
    let is_http11 = line.is_http11;
    let mut headers = std::mem::take(headers);
    let (decoder, delimited) = framing(status, is_http11, &mut headers, delimiters, asked)?;
    let persistent = delimited && delimiters.stays_open(is_http11);
    Ok(Some(Head {
        status,
        reason,
        headers,
        decoder,
        persistent,
    }))
}

fn malformed(error: impl std::error::Error + Send + Sync + 'static) -> Malformed {
    Malformed::new(error)
}

#[cold]
fn refused(text: &'static str) -> Malformed {
    Malformed::new(text)
}

fn reason(status: StatusCode, reason: &[u8]) -> Option<ReasonPhrase> {
    match status.canonical_reason() {
        Some(usual) if usual.as_bytes() == reason => None,
        // other bytes have no known encoding
        _ if !reason.is_ascii() => ReasonPhrase::try_from(&b""[..]).ok(),
        _ => ReasonPhrase::try_from(reason).ok(),
    }
}

/// Returns the framing of the body, and whether the connection can carry another request after it (RFC 9112, section
/// 6.3).
fn framing(
    status: StatusCode,
    is_http11: bool,
    headers: &mut HeaderMap,
    delimiters: Delimiters,
    asked: &ExpectedResponse,
) -> Result<(Decoder, bool), Malformed> {
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return match is_http11 && asked.is_agreed(headers) {
            true => Ok((Decoder::End, false)),
            false => Err(refused("101 to a protocol that was not asked for")),
        };
    }
    let bodiless = asked.head
        || status.is_informational()
        || status == StatusCode::NO_CONTENT
        || status == StatusCode::NOT_MODIFIED;
    let length = delimiters.lengths.one()?;
    if let Some(length) = length
        && delimiters.lengths.times > 1
    {
        // equal values here might not look equal to the next reader
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    let coded = delimiters.codings.any;
    if bodiless {
        return Ok((Decoder::End, !coded || length.is_none()));
    }
    if !coded {
        return Ok(match length {
            Some(length) => (Decoder::length(length), true),
            None => (Decoder::UntilClose, false),
        });
    }
    if !is_http11 {
        let text = "transfer-encoding in an HTTP/1.0 response";
        return Err(Malformed::new(text));
    }
    if !delimiters.codings.is_chunked() {
        // The request did not ask for one, the proxy cannot decode it, and the client would not know of it.
        let text = "transfer coding other than chunked";
        return Err(Malformed::new(text));
    }
    // The coding wins, and a peer that also declared a length gets no further request.
    let both = headers.remove(CONTENT_LENGTH).is_some();
    Ok((Decoder::chunked(), !both))
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| digit - b'0')?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests;
