//! Heads of HTTP/1.1 messages: the request's is written, the response's is parsed (RFC 9112).

use std::mem::MaybeUninit;
use std::ops::Range;

use bytes::BytesMut;
use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use httparse::{ParserConfig, Status};
use hyper::ext::ReasonPhrase;
use smallvec::SmallVec;

use super::decoder::Decoder;
use super::limits::{RESPONSE_HEAD_BYTES_MAX, RESPONSE_HEADERS_MAX};
use crate::error::{Error, Kind};
use crate::fields;

/// How the body of a request is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// In chunks, since its length is unknown.
    Chunked,
    /// There is none.
    Empty,
    /// By its `Content-Length`.
    Length(u64),
}

impl Framing {
    /// The framing of a body that follows these headers.
    pub fn of(headers: &HeaderMap, empty: bool) -> Self {
        if empty {
            return Framing::Empty;
        }
        let length = Lengths::of(headers).one().unwrap_or_default();
        length.map_or(Framing::Chunked, Framing::Length)
    }
}

/// Writes the head of a request, with more lines that `more` writes.
pub fn encode(out: &mut Vec<u8>, parts: &Parts, framing: Framing, more: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(parts.method.as_str().as_bytes());
    out.push(b' ');
    let target = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    out.extend_from_slice(target.as_bytes());
    out.extend_from_slice(b" HTTP/1.1\r\n");
    for (name, value) in &parts.headers {
        // A length must be true, or the next request would be read as this one's body (RFC 9112, section 11.2).
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

/// Gives a header of an encoded head another value, wherever it stands; nothing if it has none of that name.
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
    // a value holds no line end
    if let Some(length) = find(&head[start..], b"\r\n") {
        head.splice(start..start + length, value.as_bytes().iter().copied());
    }
}

/// What the response head depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpectedResponse {
    /// The method is HEAD: the response has no body whatever its headers say.
    pub head: bool,
    /// The request asked for another protocol.
    pub upgrade: bool,
}

impl ExpectedResponse {
    /// What this request asks.
    pub fn by(parts: &Parts) -> Self {
        Self {
            head: parts.method == Method::HEAD,
            upgrade: fields::has(&parts.headers, &UPGRADE),
        }
    }
}

/// The head of a response.
#[derive(Debug)]
pub struct Head {
    /// Its status.
    pub status: StatusCode,
    /// The reason phrase, if it is not the usual one.
    pub reason: Option<ReasonPhrase>,
    /// Its header lines.
    pub headers: HeaderMap,
    /// How its body is delimited.
    pub decoder: Decoder,
    /// Whether the connection can carry another request after the body.
    pub persistent: bool,
}

/// Where a part of a header line lies in the head; 16 bits are enough, and a list of few bytes is cheaper to move.
#[derive(Clone, Copy)]
struct Span {
    from: u16,
    to: u16,
}

const _: () = assert!(RESPONSE_HEAD_BYTES_MAX <= u16::MAX as usize);

impl Span {
    /// Where `part` lies in the bytes that begin at the address `start`.
    fn within(start: usize, part: &[u8]) -> Self {
        let from = part.as_ptr() as usize - start;
        let narrow = |at| u16::try_from(at).expect("a head that is longer is refused");
        Self {
            from: narrow(from),
            to: narrow(from + part.len()),
        }
    }

    fn range(self) -> Range<usize> {
        usize::from(self.from)..usize::from(self.to)
    }
}

/// Which lines a head has that say how its message is delimited: others are not looked for.
#[derive(Clone, Copy, Debug, Default)]
struct Delimiters {
    codings: bool,
    lengths: Lengths,
    options: bool,
}

impl Delimiters {
    fn note(&mut self, name: &HeaderName, value: &HeaderValue) {
        if *name == CONTENT_LENGTH {
            self.lengths.add(value);
        }
        self.codings |= *name == TRANSFER_ENCODING;
        self.options |= *name == CONNECTION;
    }
}

/// What all lengths of a head say together, on lines or in lists.
#[derive(Clone, Copy, Debug, Default)]
struct Lengths {
    length: Option<u64>,
    /// How often it is said.
    times: u32,
    /// One of them is no number, or two differ.
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
        for part in line.as_bytes().split(|&byte| byte == b',') {
            self.times += 1;
            let number = number(part.trim_ascii());
            let agrees = self.length.is_none_or(|before| number == Some(before));
            self.malformed |= number.is_none() || !agrees;
            self.length = number;
        }
    }

    /// The one length that all of them agree on, if there is any.
    fn one(self) -> Result<Option<u64>, Error> {
        match self.malformed {
            true => {
                let text = "content-length is not one number";
                Err(Error::new(Kind::UpstreamProtocol).with_source(text))
            }
            false => Ok(self.length),
        }
    }
}

/// Takes a complete head off the front of `input`; `None` while it is not complete. `headers` is memory for the lines.
///
/// # Errors
///
/// [`Kind::UpstreamProtocol`] for what is not a response, is too long, or is framed in a way that two readers could
/// read differently.
pub fn parse(
    input: &mut BytesMut,
    headers: &mut HeaderMap,
    asked: ExpectedResponse,
) -> Result<Option<Head>, Error> {
    let mut lines = [const { MaybeUninit::uninit() }; RESPONSE_HEADERS_MAX];
    let mut response = httparse::Response::new(&mut []);
    let parsed = ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        input,
        &mut lines,
    );
    let length = match parsed.map_err(malformed)? {
        Status::Complete(length) if length <= RESPONSE_HEAD_BYTES_MAX => length,
        Status::Partial if input.len() < RESPONSE_HEAD_BYTES_MAX => return Ok(None),
        _ => return Err(Error::new(Kind::UpstreamProtocol).with_source("response head too long")),
    };
    let status = response.code.unwrap_or_default();
    let status = StatusCode::from_u16(status).map_err(malformed)?;
    let reason = reason(status, response.reason.unwrap_or_default());
    let newer = response.version == Some(1);
    let start = input.as_ptr() as usize;
    let mut spans: SmallVec<[[Span; 2]; 24]> = SmallVec::new();
    for line in response.headers.iter() {
        let parts = [line.name.as_bytes(), line.value];
        spans.push(parts.map(|part| Span::within(start, part)));
    }
    let bytes = input.split_to(length).freeze();
    headers.clear();
    headers.reserve(spans.len());
    let mut delimiters = Delimiters::default();
    for [name, value] in &spans {
        let name = fields::name(&bytes[name.range()]).map_err(malformed)?;
        let value = bytes.slice(value.range());
        let value = HeaderValue::from_maybe_shared(value).map_err(malformed)?;
        delimiters.note(&name, &value);
        headers.append(name, value);
    }
    let mut headers = std::mem::take(headers);
    let (decoder, delimited) = framing((status, newer), &mut headers, delimiters, asked)?;
    let stays_open = !delimiters.options && newer || stays_open(&headers, newer);
    let persistent = delimited && stays_open;
    Ok(Some(Head {
        status,
        reason,
        headers,
        decoder,
        persistent,
    }))
}

fn malformed(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(Kind::UpstreamProtocol).with_source(error)
}

fn reason(status: StatusCode, reason: &str) -> Option<ReasonPhrase> {
    match status.canonical_reason() {
        Some(usual) if usual == reason => None,
        _ => ReasonPhrase::try_from(reason.as_bytes()).ok(),
    }
}

/// How the body is delimited, and whether its end can be told from the end of the connection (RFC 9112, section 6.3).
fn framing(
    (status, newer): (StatusCode, bool),
    headers: &mut HeaderMap,
    delimiters: Delimiters,
    asked: ExpectedResponse,
) -> Result<(Decoder, bool), Error> {
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return match asked.upgrade {
            true => Ok((Decoder::End, false)),
            false => Err(Error::new(Kind::UpstreamProtocol).with_source("101 to no upgrade")),
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
        // what agrees here need not look so to the next reader
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    let coded = delimiters.codings;
    if bodiless {
        return Ok((Decoder::End, !coded || length.is_none()));
    }
    if !coded {
        return Ok(match length {
            Some(length) => (Decoder::length(length), true),
            None => (Decoder::UntilClose, false),
        });
    }
    if !newer {
        let text = "transfer-encoding in an HTTP/1.0 response";
        return Err(Error::new(Kind::UpstreamProtocol).with_source(text));
    }
    if !is_chunked(headers) {
        // None was asked for, we cannot take it off, and the next hop would not know of it.
        let text = "transfer coding other than chunked";
        return Err(Error::new(Kind::UpstreamProtocol).with_source(text));
    }
    // The coding wins, and what claimed a length as well is not trusted with another request.
    let both = headers.remove(CONTENT_LENGTH).is_some();
    Ok((Decoder::chunked(), !both))
}

/// Whether `chunked` is the only coding, and named once.
fn is_chunked(headers: &HeaderMap) -> bool {
    let codings = headers.get_all(TRANSFER_ENCODING).iter();
    let mut codings = codings
        .flat_map(|line| line.as_bytes().split(|&byte| byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|coding| !coding.is_empty());
    let first = codings.next();
    first.is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked")) && codings.next().is_none()
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

/// Whether the peer keeps the connection open (RFC 9112, section 9.3).
fn stays_open(headers: &HeaderMap, newer: bool) -> bool {
    let options = headers.get_all(CONNECTION).iter();
    let options = options
        .flat_map(|line| line.as_bytes().split(|&byte| byte == b','))
        .map(<[u8]>::trim_ascii);
    let mut stays = newer;
    for option in options {
        if option.eq_ignore_ascii_case(b"close") {
            return false;
        }
        stays |= option.eq_ignore_ascii_case(b"keep-alive");
    }
    stays
}

#[cfg(test)]
mod tests;
