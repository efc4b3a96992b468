//! Responses to bytes (RFC 9112).

use std::io::Write as _;

use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE,
    CONTENT_TYPE, DATE, MAX_FORWARDS, SET_COOKIE, TRAILER, TRANSFER_ENCODING,
};
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use hyper::body::SizeHint;
use hyper::ext::ReasonPhrase;

use super::decoder::is_too_late;
use super::head::line;
use crate::fields;

/// Properties of a request that decide the encoding of its response.
#[derive(Clone, Copy, Debug)]
pub struct RequestTraits {
    /// Kind of method.
    pub method: MethodKind,
    /// Whether the request is HTTP/1.1, not 1.0.
    pub is_http11: bool,
    /// Whether the client keeps the connection open.
    pub persistent: bool,
    /// Whether the client accepts trailers (`TE: trailers`).
    pub takes_trailers: bool,
}

impl RequestTraits {
    /// Properties assumed for an unreadable request; the connection closes after its response.
    pub const LAST: Self = Self {
        method: MethodKind::Other,
        is_http11: true,
        persistent: false,
        takes_trailers: false,
    };
}

/// Methods that change the framing of their responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodKind {
    /// HEAD: the response has no body, whatever its fields say.
    Head,
    /// CONNECT: a 2xx response begins a tunnel.
    Connect,
    /// Any other method.
    Other,
}

impl From<&Method> for MethodKind {
    fn from(method: &Method) -> Self {
        match *method {
            Method::HEAD => Self::Head,
            Method::CONNECT => Self::Connect,
            _ => Self::Other,
        }
    }
}

/// Framing of the rest of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// Chunks; trailers with these names are sent.
    Chunked(Vec<HeaderName>),
    /// Remaining bytes.
    Length(u64),
    /// Body ends with the connection.
    UntilClose,
}

/// Framing of a response whose head has been written.
#[derive(Debug, PartialEq, Eq)]
pub struct ResponseFraming {
    /// Framing of the body.
    pub encoding: Encoding,
    /// Whether the connection can carry another request.
    pub persistent: bool,
}

/// Whether a response switches its connection to another protocol.
pub fn switches_protocol(method: MethodKind, status: StatusCode) -> bool {
    status == StatusCode::SWITCHING_PROTOCOLS
        || (method == MethodKind::Connect && status.is_success())
}

/// Writes the head of a response. `size` is the known length of its body; `date` appends a date if the response has
/// none.
pub fn head(
    out: &mut Vec<u8>,
    parts: &Parts,
    asked: RequestTraits,
    size: &SizeHint,
    date: impl FnOnce(&mut Vec<u8>),
) -> ResponseFraming {
    status_line(out, parts, asked.is_http11);
    let status = parts.status;
    let switch = switches_protocol(asked.method, status);
    let is_head = asked.method == MethodKind::Head;
    // responses without a length to any method (RFC 9110, section 8.6)
    let lengthless = switch || status.is_informational() || status == StatusCode::NO_CONTENT;
    let bodiless = lengthless || is_head || status == StatusCode::NOT_MODIFIED;
    let mut fields = Fields {
        keeps_length: bodiless && !lengthless,
        bodiless,
        ..Fields::default()
    };
    for (name, value) in &parts.headers {
        fields.write(out, name, value, size.exact());
    }
    let encoding = match (bodiless, size.exact().or(fields.length)) {
        (true, exact) => {
            // the length that a GET would get
            if let (true, false, Some(length @ 1..)) =
                (is_head && !lengthless, fields.wrote_length, exact)
            {
                length_line(out, length);
            }
            Encoding::Length(0)
        }
        (false, Some(length)) => {
            if !fields.wrote_length {
                length_line(out, length);
            }
            Encoding::Length(length)
        }
        (false, None) if asked.is_http11 => {
            out.extend_from_slice(b"transfer-encoding: chunked\r\n");
            Encoding::Chunked(match fields.has_trailer {
                true => trailer_names(out, &parts.headers, asked.takes_trailers),
                false => Vec::new(),
            })
        }
        (false, None) => Encoding::UntilClose,
    };
    let persistent = asked.persistent && !fields.closes && encoding != Encoding::UntilClose;
    match (persistent, asked.is_http11) {
        _ if switch => {}
        (true, false) if !fields.keeps_alive => {
            out.extend_from_slice(b"connection: keep-alive\r\n");
        }
        (false, true) if !fields.closes => out.extend_from_slice(b"connection: close\r\n"),
        _ => {}
    }
    if !fields.has_date {
        out.extend_from_slice(b"date: ");
        date(out);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
    ResponseFraming {
        encoding,
        persistent,
    }
}

fn status_line(out: &mut Vec<u8>, parts: &Parts, is_http11: bool) {
    let reason = match parts.extensions.is_empty() {
        true => None,
        false => parts.extensions.get::<ReasonPhrase>(),
    };
    if parts.status == StatusCode::OK && is_http11 && reason.is_none() {
        out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
        return;
    }
    out.extend_from_slice(if is_http11 {
        b"HTTP/1.1 "
    } else {
        b"HTTP/1.0 "
    });
    out.extend_from_slice(parts.status.as_str().as_bytes());
    out.push(b' ');
    let usual = parts.status.canonical_reason().unwrap_or_default();
    out.extend_from_slice(reason.map_or(usual.as_bytes(), ReasonPhrase::as_bytes));
    out.extend_from_slice(b"\r\n");
}

/// Facts about the fields of a response, collected while they are written.
#[derive(Debug, Default)]
struct Fields {
    /// Whether a given length is kept because it is that of a body which is not sent.
    keeps_length: bool,
    bodiless: bool,
    /// Length that the response declares, if its body does not know its own.
    length: Option<u64>,
    wrote_length: bool,
    closes: bool,
    keeps_alive: bool,
    has_date: bool,
    has_trailer: bool,
}

impl Fields {
    /// Writes a field. `Content-Length` only if it is true; `Transfer-Encoding` and `Trailer` are written elsewhere.
    fn write(
        &mut self,
        out: &mut Vec<u8>,
        name: &HeaderName,
        value: &HeaderValue,
        exact: Option<u64>,
    ) {
        match *name {
            CONTENT_LENGTH => return self.write_length(out, value, exact),
            // written by the framing instead
            TRANSFER_ENCODING => return,
            TRAILER => {
                self.has_trailer = true;
                return;
            }
            CONNECTION => {
                self.closes |= fields::has_token(value.as_bytes(), b"close");
                self.keeps_alive |= fields::has_token(value.as_bytes(), b"keep-alive");
            }
            DATE => self.has_date = true,
            _ => {}
        }
        line(out, name, value);
    }

    /// Writes a length only if it is true: after a wrong one, the client would read the next response as a part of this
    /// one (RFC 9112, section 11.2).
    fn write_length(&mut self, out: &mut Vec<u8>, value: &HeaderValue, exact: Option<u64>) {
        if self.keeps_length {
            self.wrote_length = true;
            return line(out, &CONTENT_LENGTH, value);
        }
        if self.bodiless || self.wrote_length {
            return;
        }
        let claimed = || value.to_str().ok()?.parse().ok();
        if let Some(length) = exact.or_else(claimed) {
            self.length = Some(length);
            self.wrote_length = true;
            length_line(out, length);
        }
    }
}

fn length_line(out: &mut Vec<u8>, length: u64) {
    out.extend_from_slice(b"content-length: ");
    out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Writes the `Trailer` fields of a chunked response, and returns the names in them if the client accepts trailers.
fn trailer_names(out: &mut Vec<u8>, headers: &HeaderMap, takes_trailers: bool) -> Vec<HeaderName> {
    let mut names = Vec::new();
    for value in headers.get_all(TRAILER) {
        line(out, &TRAILER, value);
        if takes_trailers {
            let listed = fields::list(value.as_bytes());
            names.extend(listed.filter_map(|name| HeaderName::from_bytes(name).ok()));
        }
    }
    names
}

/// Writes the line of a chunk's size; [`CHUNK_END`] follows the chunk's bytes.
pub fn chunk(out: &mut Vec<u8>, length: usize) {
    // writing to memory cannot fail
    let _ = write!(out, "{length:x}\r\n");
}

/// Bytes after a chunk.
pub const CHUNK_END: &[u8] = b"\r\n";

/// Bytes after the last chunk of a body without trailers.
pub const LAST_CHUNK_END: &[u8] = b"\r\n0\r\n\r\n";

/// Writes the end of a chunked body, with the trailers that were announced.
pub fn end(out: &mut Vec<u8>, announced: &[HeaderName], trailers: &HeaderMap) {
    out.extend_from_slice(b"0\r\n");
    for (name, value) in trailers {
        if announced.contains(name) && !is_too_late(name) && !DESCRIPTIONS.contains(name) {
            line(out, name, value);
        }
    }
    out.extend_from_slice(b"\r\n");
}

/// Further fields that a client needs before the body, and that no trailer may carry (RFC 9110, section 6.5.1).
const DESCRIPTIONS: [HeaderName; 7] = [
    AUTHORIZATION,
    CACHE_CONTROL,
    CONTENT_ENCODING,
    CONTENT_RANGE,
    CONTENT_TYPE,
    MAX_FORWARDS,
    SET_COOKIE,
];

#[cfg(test)]
mod tests;
