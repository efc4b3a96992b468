//! Header lists to heads of requests and responses, and to trailers (RFC 9113, section 8).

use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TE};
use http::uri::{Authority, Parts, PathAndQuery, Scheme};
use http::{Method, StatusCode, Uri};

use super::hpack::decoder::Sink;
use super::hpack::encoder::is_of_connection;
use super::hpack::table::Field;

/// Head of a request.
#[derive(Debug)]
pub struct Request {
    /// Method.
    pub method: Method,
    /// Scheme, authority and path; only the authority for plain CONNECT.
    pub uri: Uri,
    /// Header fields.
    pub headers: HeaderMap,
    /// Protocol of an extended CONNECT (RFC 8441).
    pub protocol: Option<HeaderValue>,
    /// Value of `content-length`.
    pub content_length: Option<u64>,
}

/// Head of a response.
#[derive(Debug)]
pub struct Response {
    /// Status code.
    pub status: StatusCode,
    /// Header fields.
    pub headers: HeaderMap,
    /// Value of `content-length`.
    pub content_length: Option<u64>,
}

/// Reason that a header list is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// Violates a rule; the stream is reset.
    Malformed,
    /// Exceeds the limit; the reply is 431.
    TooLarge,
}

/// Collects the fields of one header list.
#[derive(Debug)]
pub struct Builder {
    method: Option<Method>,
    scheme: Option<Scheme>,
    authority: Option<Authority>,
    path: Option<PathAndQuery>,
    protocol: Option<HeaderValue>,
    status: Option<StatusCode>,
    headers: HeaderMap,
    content_length: Option<u64>,
    /// Remaining bytes for further fields.
    room: usize,
    /// Whether pseudo-headers are still permitted.
    pseudo: bool,
    flaw: Option<Flaw>,
}

impl Builder {
    /// Returns a builder for a head of at most `bytes_max` bytes; `headers` must be empty.
    pub fn head(headers: HeaderMap, bytes_max: usize) -> Self {
        Self {
            method: None,
            scheme: None,
            authority: None,
            path: None,
            protocol: None,
            status: None,
            headers,
            content_length: None,
            room: bytes_max,
            pseudo: true,
            flaw: None,
        }
    }

    /// Returns a builder for trailers.
    pub fn trailers(bytes_max: usize) -> Self {
        Self {
            pseudo: false,
            ..Self::head(HeaderMap::new(), bytes_max)
        }
    }

    /// Returns the trailers.
    ///
    /// # Errors
    ///
    /// If they violate a rule or are too large.
    pub fn into_trailers(self) -> Result<HeaderMap, Flaw> {
        self.flaw.map_or(Ok(self.headers), Err)
    }

    /// Returns the head of a request.
    ///
    /// # Errors
    ///
    /// If it violates a rule or is too large.
    pub fn into_request(self) -> Result<Request, Flaw> {
        if let Some(flaw) = self.flaw {
            return Err(flaw);
        }
        let method = self.method.ok_or(Flaw::Malformed)?;
        let whole = self.scheme.is_some() && self.path.is_some();
        let none = self.scheme.is_none() && self.path.is_none();
        let fits = match (method == Method::CONNECT, self.protocol.is_some()) {
            (true, true) => whole && self.authority.is_some(),
            (true, false) => none && self.authority.is_some(),
            (false, true) => false,
            (false, false) => whole,
        };
        let asterisk = self.path.as_ref().is_some_and(|path| path.as_str() == "*");
        if !fits || self.status.is_some() || (asterisk && method != Method::OPTIONS) {
            return Err(Flaw::Malformed);
        }
        let mut parts = Parts::default();
        // without an authority there is no scheme either; Host names the server
        parts.scheme = self.scheme.filter(|_| self.authority.is_some());
        parts.authority = self.authority;
        parts.path_and_query = self.path;
        Ok(Request {
            method,
            uri: Uri::from_parts(parts).map_err(|_| Flaw::Malformed)?,
            headers: self.headers,
            protocol: self.protocol,
            content_length: self.content_length,
        })
    }

    /// Returns the head of a response.
    ///
    /// # Errors
    ///
    /// If it violates a rule or is too large.
    pub fn into_response(self) -> Result<Response, Flaw> {
        if let Some(flaw) = self.flaw {
            return Err(flaw);
        }
        let of_request = self.method.is_some()
            || self.scheme.is_some()
            || self.authority.is_some()
            || self.path.is_some()
            || self.protocol.is_some();
        if of_request {
            return Err(Flaw::Malformed);
        }
        Ok(Response {
            status: self.status.ok_or(Flaw::Malformed)?,
            headers: self.headers,
            content_length: self.content_length,
        })
    }

    fn mark_malformed(&mut self) {
        self.flaw.get_or_insert(Flaw::Malformed);
    }

    /// Stores a pseudo-header; `None` if it is repeated, or comes after a regular one.
    fn pseudo<T>(pseudo: bool, place: &mut Option<T>, value: T) -> Option<()> {
        (pseudo && place.is_none()).then(|| *place = Some(value))
    }

    fn header(&mut self, name: HeaderName, value: HeaderValue) -> Option<()> {
        self.pseudo = false;
        // compare lengths first: they distinguish nearly all names
        match name.as_str().len() {
            2 if name == TE => {
                let trailers = value.as_bytes().eq_ignore_ascii_case(b"trailers");
                trailers.then_some(())?;
            }
            7 | 10 | 16 | 17 if is_of_connection(&name) => return None,
            14 if name == CONTENT_LENGTH => {
                let length = length(value.as_bytes())?;
                self.content_length.is_none().then_some(())?;
                self.content_length = Some(length);
            }
            _ => {}
        }
        if self.headers.try_append(name, value).is_err() {
            self.flaw = Some(Flaw::TooLarge);
        }
        Some(())
    }
}

impl Sink for Builder {
    #[inline]
    fn wants(&mut self, size: usize) -> bool {
        match self.room.checked_sub(size) {
            Some(room) => {
                self.room = room;
                true
            }
            None => {
                self.room = 0;
                self.flaw = Some(Flaw::TooLarge);
                false
            }
        }
    }

    #[inline]
    fn field(&mut self, field: Field) {
        let pseudo = self.pseudo;
        let fits = match field {
            Field::Authority(value) => Self::pseudo(pseudo, &mut self.authority, value),
            Field::Header(name, value) => self.header(name, value),
            Field::Malformed(_) => None,
            Field::Method(value) => Self::pseudo(pseudo, &mut self.method, value),
            Field::Path(value) => Self::pseudo(pseudo, &mut self.path, value),
            Field::Protocol(value) => Self::pseudo(pseudo, &mut self.protocol, value),
            Field::Scheme(value) => Self::pseudo(pseudo, &mut self.scheme, value),
            Field::Status(value) => Self::pseudo(pseudo, &mut self.status, value),
        };
        if fits.is_none() {
            self.mark_malformed();
        }
    }
}

/// Parses `content-length`: digits only, at most 63 bits. An endpoint that holds lengths as signed numbers reads a
/// larger one differently.
fn length(value: &[u8]) -> Option<u64> {
    if value.is_empty() || value.len() > 19 {
        return None;
    }
    let length = value.iter().try_fold(0_u64, |length, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        Some(length * 10 + digit)
    });
    length.filter(|length| *length <= i64::MAX.unsigned_abs())
}

#[cfg(test)]
mod tests;
