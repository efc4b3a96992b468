//! Fields, the static table (RFC 7541, appendix A) and the decoder's dynamic table.
//!
//! Entries are kept parsed: a reference to one clones it, and nothing is parsed twice.

use std::collections::VecDeque;

use http::header::{self, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, StatusCode};

use super::{ENTRY_OVERHEAD, Undecodable};
use crate::fields;

/// Number of entries of the static table.
pub const STATIC: usize = 61;

/// Name of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// `:authority`
    Authority,
    /// Regular header.
    Header(HeaderName),
    /// Invalid name, with its length: an unknown pseudo-header, upper case, or invalid bytes.
    Malformed(usize),
    /// `:method`
    Method,
    /// `:path`
    Path,
    /// `:protocol` (RFC 8441)
    Protocol,
    /// `:scheme`
    Scheme,
    /// `:status`
    Status,
}

/// Field of a header list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// `:authority`
    Authority(Authority),
    /// Regular header.
    Header(HeaderName, HeaderValue),
    /// Field that makes its message malformed (RFC 9113, section 8.1.1).
    Malformed(Name),
    /// `:method`
    Method(Method),
    /// `:path`
    Path(PathAndQuery),
    /// `:protocol`
    Protocol(HeaderValue),
    /// `:scheme`
    Scheme(Scheme),
    /// `:status`
    Status(StatusCode),
}

impl Name {
    /// Parses a name.
    pub fn parse(bytes: &[u8]) -> Self {
        match bytes {
            b":authority" => Name::Authority,
            b":method" => Name::Method,
            b":path" => Name::Path,
            b":protocol" => Name::Protocol,
            b":scheme" => Name::Scheme,
            b":status" => Name::Status,
            // no token contains a quotation mark (RFC 9110, section 5.6.2), though `http` accepts it
            _ if bytes.contains(&b'"') => Name::Malformed(bytes.len()),
            _ => {
                HeaderName::from_lowercase(bytes).map_or(Name::Malformed(bytes.len()), Name::Header)
            }
        }
    }

    /// Returns the length of the name.
    fn len(&self) -> usize {
        match self {
            Name::Authority => 10,
            Name::Header(name) => name.as_str().len(),
            Name::Malformed(len) => *len,
            Name::Method | Name::Scheme | Name::Status => 7,
            Name::Path => 5,
            Name::Protocol => 9,
        }
    }
}

impl Field {
    /// Parses the value of a field with this name.
    pub fn parse(name: Name, value: &[u8], sensitive: bool) -> Self {
        let parsed = match &name {
            Name::Authority => Authority::try_from(value).ok().map(Field::Authority),
            Name::Header(header) => header_value(value).map(|mut value| {
                value.set_sensitive(sensitive);
                Field::Header(header.clone(), value)
            }),
            Name::Malformed(_) => None,
            Name::Method => Method::from_bytes(value).ok().map(Field::Method),
            Name::Path => path(value).map(Field::Path),
            Name::Protocol => protocol(value).map(Field::Protocol),
            Name::Scheme => Scheme::try_from(value).ok().map(Field::Scheme),
            Name::Status => StatusCode::from_bytes(value).ok().map(Field::Status),
        };
        parsed.unwrap_or(Field::Malformed(name))
    }

    /// Returns the name of the field.
    pub fn name(&self) -> Name {
        match self {
            Field::Authority(_) => Name::Authority,
            Field::Header(name, _) => Name::Header(name.clone()),
            Field::Malformed(name) => name.clone(),
            Field::Method(_) => Name::Method,
            Field::Path(_) => Name::Path,
            Field::Protocol(_) => Name::Protocol,
            Field::Scheme(_) => Name::Scheme,
            Field::Status(_) => Name::Status,
        }
    }
}

/// Parses a header value: no bytes that could end a line, no white space at the ends (RFC 9113, section 8.2.1).
fn header_value(bytes: &[u8]) -> Option<HeaderValue> {
    let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    if blank(bytes.first()) || blank(bytes.last()) {
        return None;
    }
    HeaderValue::from_bytes(bytes).ok()
}

/// Parses a single protocol, not a list: it becomes the value of `Upgrade`.
fn protocol(bytes: &[u8]) -> Option<HeaderValue> {
    let fits = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~/".contains(byte);
    if bytes.is_empty() || !bytes.iter().all(fits) {
        return None;
    }
    HeaderValue::from_bytes(bytes).ok()
}

/// Parses a path with its query, or an asterisk; a fragment is invalid.
fn path(bytes: &[u8]) -> Option<PathAndQuery> {
    if !matches!(bytes, b"*" | [b'/', ..]) || bytes.contains(&b'#') {
        return None;
    }
    let parsed = PathAndQuery::try_from(bytes);
    let parsed = parsed.or_else(|_| PathAndQuery::try_from(fields::escaped_target(bytes)));
    parsed.ok()
}

/// Names of the static table from index 15 on; the entries before are pseudo-headers.
pub static NAMES: [HeaderName; 47] = [
    header::ACCEPT_CHARSET,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::ACCEPT_RANGES,
    header::ACCEPT,
    header::ACCESS_CONTROL_ALLOW_ORIGIN,
    header::AGE,
    header::ALLOW,
    header::AUTHORIZATION,
    header::CACHE_CONTROL,
    header::CONTENT_DISPOSITION,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LENGTH,
    header::CONTENT_LOCATION,
    header::CONTENT_RANGE,
    header::CONTENT_TYPE,
    header::COOKIE,
    header::DATE,
    header::ETAG,
    header::EXPECT,
    header::EXPIRES,
    header::FROM,
    header::HOST,
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::IF_UNMODIFIED_SINCE,
    header::LAST_MODIFIED,
    header::LINK,
    header::LOCATION,
    header::MAX_FORWARDS,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::RANGE,
    header::REFERER,
    header::REFRESH,
    header::RETRY_AFTER,
    header::SERVER,
    header::SET_COOKIE,
    header::STRICT_TRANSPORT_SECURITY,
    header::TRANSFER_ENCODING,
    header::USER_AGENT,
    header::VARY,
    header::VIA,
    header::WWW_AUTHENTICATE,
];

/// Index of the first of [`NAMES`] in the static table.
pub const FIRST_NAME: usize = 15;

/// Returns the name of an entry of the static table.
fn static_name(index: usize) -> Option<Name> {
    Some(match index {
        1 => Name::Authority,
        2 | 3 => Name::Method,
        4 | 5 => Name::Path,
        6 | 7 => Name::Scheme,
        8..=14 => Name::Status,
        _ => Name::Header(NAMES.get(index.checked_sub(FIRST_NAME)?)?.clone()),
    })
}

/// Returns an entry of the static table, with its size.
fn static_field(index: usize) -> Option<(Field, usize)> {
    const CODINGS: HeaderValue = HeaderValue::from_static("gzip, deflate");
    const EMPTY: HeaderValue = HeaderValue::from_static("");
    let (field, len) = match index {
        // an empty authority
        1 => (Field::Malformed(Name::Authority), 10),
        2 => (Field::Method(Method::GET), 10),
        3 => (Field::Method(Method::POST), 11),
        4 => (Field::Path(PathAndQuery::from_static("/")), 6),
        5 => (Field::Path(PathAndQuery::from_static("/index.html")), 16),
        6 => (Field::Scheme(Scheme::HTTP), 11),
        7 => (Field::Scheme(Scheme::HTTPS), 12),
        8 => (Field::Status(StatusCode::OK), 10),
        9 => (Field::Status(StatusCode::NO_CONTENT), 10),
        10 => (Field::Status(StatusCode::PARTIAL_CONTENT), 10),
        11 => (Field::Status(StatusCode::NOT_MODIFIED), 10),
        12 => (Field::Status(StatusCode::BAD_REQUEST), 10),
        13 => (Field::Status(StatusCode::NOT_FOUND), 10),
        14 => (Field::Status(StatusCode::INTERNAL_SERVER_ERROR), 10),
        16 => (Field::Header(header::ACCEPT_ENCODING, CODINGS), 15 + 13),
        _ => {
            let name = NAMES.get(index.checked_sub(FIRST_NAME)?)?;
            let len = name.as_str().len();
            (Field::Header(name.clone(), EMPTY), len)
        }
    };
    Some((field, len + ENTRY_OVERHEAD))
}

#[derive(Debug)]
struct Entry {
    field: Field,
    size: usize,
}

/// Table of a decoder: the static entries, and the newest added ones.
#[derive(Debug)]
pub struct Table {
    /// Added entries, newest first.
    entries: VecDeque<Entry>,
    size: usize,
    size_max: usize,
    /// Maximum of `size_max`.
    limit: usize,
}

impl Table {
    /// Returns an empty table of at most `limit` bytes, as RFC 7541 counts them.
    pub fn new(limit: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            size: 0,
            size_max: limit,
            limit,
        }
    }

    /// Size of the added entries, as RFC 7541 counts it.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Sets the maximum size that the peer chose.
    ///
    /// # Errors
    ///
    /// If it exceeds the limit.
    pub fn resize(&mut self, size_max: usize) -> Result<(), Undecodable> {
        if size_max > self.limit {
            return Err(Undecodable);
        }
        self.size_max = size_max;
        self.evict(0);
        Ok(())
    }

    /// Returns the size of an entry.
    ///
    /// # Errors
    ///
    /// If there is no entry with this index.
    #[inline]
    pub fn size_of(&self, index: usize) -> Result<usize, Undecodable> {
        match index.checked_sub(STATIC + 1) {
            Some(place) => self.entries.get(place).map(|entry| entry.size),
            None => static_field(index).map(|(_, size)| size),
        }
        .ok_or(Undecodable)
    }

    /// Returns a clone of an entry, and its size.
    ///
    /// # Errors
    ///
    /// If there is no entry with this index.
    #[inline]
    pub fn field(&self, index: usize) -> Result<(Field, usize), Undecodable> {
        match index.checked_sub(STATIC + 1) {
            Some(place) => {
                let entry = self.entries.get(place);
                entry.map(|entry| (entry.field.clone(), entry.size))
            }
            None => static_field(index),
        }
        .ok_or(Undecodable)
    }

    /// Returns the name of an entry, and its length.
    ///
    /// # Errors
    ///
    /// If there is no entry with this index.
    pub fn name(&self, index: usize) -> Result<(Name, usize), Undecodable> {
        let name = match index.checked_sub(STATIC + 1) {
            Some(place) => self.entries.get(place).map(|entry| entry.field.name()),
            None => static_name(index),
        };
        let name = name.ok_or(Undecodable)?;
        let len = name.len();
        Ok((name, len))
    }

    /// Adds an entry, and evicts the oldest ones to make room.
    pub fn add(&mut self, field: Field, size: usize) {
        self.evict(size);
        if size <= self.size_max {
            self.size += size;
            self.entries.push_front(Entry { field, size });
        }
    }

    /// Evicts entries to make room for one of this size; all, if it exceeds the table.
    fn evict(&mut self, room: usize) {
        while self.size + room > self.size_max {
            let Some(oldest) = self.entries.pop_back() else {
                return;
            };
            self.size -= oldest.size;
        }
    }
}
