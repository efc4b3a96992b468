//! Fields to header blocks (RFC 7541, section 6).
//!
//! The table learns which fields recur: a field is added when it is sent again after a first time. So values that
//! always change never displace recurring ones. Secrets are never added (section 7.1). Strings are Huffman-coded only
//! when they are added, since later fields then refer to the entry: elsewhere the code costs more time than it saves
//! bytes.

use std::collections::VecDeque;

use http::header::{
    AUTHORIZATION, COOKIE, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION, SET_COOKIE, TE,
};
use http::{Method, Uri};

use super::table::STATIC;
use super::{ENTRY_OVERHEAD, TABLE_BYTES_DEFAULT, huffman, integer};

/// Maximum bytes of a field that is added to the table.
const ADDED_BYTES_MAX: usize = 256;

/// Lookup slots; a power of two.
const PLACES: usize = 64;

/// Entry of the table: its name, then its value.
#[derive(Debug)]
struct Entry {
    text: Box<[u8]>,
    name_len: usize,
    hash: u32,
}

impl Entry {
    fn size(&self) -> usize {
        self.text.len() + ENTRY_OVERHEAD
    }

    fn is(&self, field: Field<'_>) -> bool {
        let (own_name, own_value) = self.text.split_at(self.name_len);
        own_value == field.value && own_name == field.name
    }
}

/// Bytes of a field.
#[derive(Clone, Copy)]
struct Field<'a> {
    name: &'a [u8],
    value: &'a [u8],
}

/// Representation of a literal: its first bits, and the number of bits that are left for the index of the name.
#[derive(Clone, Copy)]
struct Literal {
    flags: u8,
    prefix: u32,
}

/// Adds the field to the table (RFC 7541, section 6.2.1).
const INDEXED: Literal = Literal {
    flags: 0x40,
    prefix: 6,
};

/// Leaves the table as it is (section 6.2.2).
const UNINDEXED: Literal = Literal {
    flags: 0,
    prefix: 4,
};

/// Leaves the table as it is, at all proxies that follow (section 6.2.3).
const NEVER_INDEXED: Literal = Literal {
    flags: 0x10,
    prefix: 4,
};

/// Slot of the lookup table, by hash.
#[derive(Clone, Copy, Debug, Default)]
struct LookupSlot {
    /// Hash of the last field in this slot.
    hash: u32,
    /// Number of its entry, counted from the first one ever added, plus one; 0 without an entry.
    added: u32,
    /// Whether the entry was used since another field needed the slot: changing values must not displace it.
    used: bool,
}

/// Encoder of a connection's header blocks.
#[derive(Debug)]
pub struct Encoder {
    /// Entries, newest first.
    entries: VecDeque<Entry>,
    size: usize,
    size_max: usize,
    /// Smallest and last size since the last block, to announce to the peer.
    resized: Option<(usize, usize)>,
    /// Number of entries ever added.
    added: u32,
    places: Option<Box<[LookupSlot; PLACES]>>,
}

impl Encoder {
    /// Returns an encoder with the default table.
    pub fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            size: 0,
            size_max: TABLE_BYTES_DEFAULT,
            resized: None,
            added: 0,
            places: None,
        }
    }

    /// Sets the size of the peer's table.
    pub fn resize(&mut self, size: usize) {
        let size = size.min(TABLE_BYTES_DEFAULT);
        if size == self.size_max {
            return;
        }
        let least = self.resized.map_or(size, |(least, _)| least.min(size));
        self.resized = Some((least, size));
        self.size_max = size;
        self.evict(0);
    }

    /// Begins a block; announces a new table size.
    pub fn begin(&mut self, output: &mut Vec<u8>) {
        if let Some((least, last)) = self.resized.take() {
            if least < last {
                integer::write(output, 0x20, 5, least);
            }
            integer::write(output, 0x20, 5, last);
        }
    }

    /// Writes `:status`.
    pub fn status(&mut self, status: http::StatusCode, output: &mut Vec<u8>) {
        let index = match status.as_u16() {
            200 => 8,
            204 => 9,
            206 => 10,
            304 => 11,
            400 => 12,
            404 => 13,
            500 => 14,
            _ => {
                return self.write(8, field(":status", status.as_str().as_bytes()), output);
            }
        };
        output.push(0x80 | index);
    }

    /// Writes `:method`, `:scheme`, `:authority` and `:path`; only CONNECT may lack a scheme and a path (RFC 9113,
    /// section 8.3.1).
    pub fn request(&mut self, method: &Method, uri: &Uri, output: &mut Vec<u8>) {
        match method.as_str() {
            "GET" => output.push(0x80 | 2),
            "POST" => output.push(0x80 | 3),
            other => self.write(2, field(":method", other.as_bytes()), output),
        }
        match uri.scheme_str() {
            None if *method == Method::CONNECT => {}
            None | Some("http") => output.push(0x80 | 6),
            Some("https") => output.push(0x80 | 7),
            Some(other) => literal(UNINDEXED, 6, field(":scheme", other.as_bytes()), output),
        }
        if let Some(authority) = uri.authority() {
            self.write(
                1,
                field(":authority", authority.as_str().as_bytes()),
                output,
            );
        }
        match uri.path_and_query() {
            Some(path) if path.as_str() == "/" => output.push(0x80 | 4),
            // a query may contain a secret, and rarely recurs
            Some(path) if path.query().is_some() => {
                let path = path.as_str().as_bytes();
                literal(UNINDEXED, 4, field(":path", path), output);
            }
            Some(path) => self.write(4, field(":path", path.as_str().as_bytes()), output),
            None if *method == Method::CONNECT => {}
            None => output.push(0x80 | 4),
        }
    }

    /// Writes all headers except connection-specific ones, which HTTP/2 forbids (RFC 9113, section 8.2.2).
    pub fn headers(&mut self, headers: &HeaderMap, output: &mut Vec<u8>) {
        for (name, value) in headers {
            // compare lengths first: they distinguish nearly all names
            let passes = match name.as_str().len() {
                2 => *name != TE || value.as_bytes().eq_ignore_ascii_case(b"trailers"),
                7 | 10 | 16 | 17 => !is_of_connection(name),
                _ => true,
            };
            if passes {
                self.header(name, value, output);
            }
        }
    }

    /// Writes one header.
    pub fn header(&mut self, name: &HeaderName, value: &HeaderValue, output: &mut Vec<u8>) {
        if value.is_sensitive() || is_secret(name) {
            let index = static_index(name.as_str());
            let secret = field(name.as_str(), value.as_bytes());
            return literal(NEVER_INDEXED, index, secret, output);
        }
        let text = name.as_str();
        let index = || static_index(text);
        self.write_with(index, field(text, value.as_bytes()), output);
    }

    fn write(&mut self, index: usize, field: Field<'_>, output: &mut Vec<u8>) {
        self.write_with(|| index, field, output);
    }

    /// Writes a field as a reference to its entry, as a new entry, or as a literal.
    #[inline]
    fn write_with(
        &mut self,
        index: impl FnOnce() -> usize,
        field: Field<'_>,
        output: &mut Vec<u8>,
    ) {
        if field.name.len() + field.value.len() > ADDED_BYTES_MAX {
            return literal(UNINDEXED, index(), field, output);
        }
        let hash = hash(field.name, field.value);
        let places = self
            .places
            .get_or_insert_with(|| Box::new([LookupSlot::default(); PLACES]));
        let place = &mut places[hash as usize % PLACES];
        if place.hash != hash {
            if place.used {
                place.used = false;
            } else {
                *place = LookupSlot {
                    hash,
                    ..LookupSlot::default()
                };
            }
            return literal(UNINDEXED, index(), field, output);
        }
        if place.added != 0 {
            let age = (self.added + 1 - place.added) as usize;
            if let Some(entry) = self.entries.get(age) {
                if entry.is(field) {
                    place.used = true;
                    integer::write(output, 0x80, 7, STATIC + 1 + age);
                    return;
                }
                // two fields with equal hash: the first keeps the entry
                return literal(UNINDEXED, index(), field, output);
            }
        }
        self.add(hash, index(), field, output);
    }

    fn add(&mut self, hash: u32, index: usize, field: Field<'_>, output: &mut Vec<u8>) {
        let entry = Entry {
            text: [field.name, field.value].concat().into(),
            name_len: field.name.len(),
            hash,
        };
        let size = entry.size();
        if size > self.size_max {
            return literal(UNINDEXED, index, field, output);
        }
        literal(INDEXED, index, field, output);
        self.evict(size);
        self.size += size;
        self.entries.push_front(entry);
        // numbers begin at 1; after 4 billion entries the lookup table starts over
        self.added = self.added.wrapping_add(1);
        if self.added >= u32::MAX - 1 {
            self.forget();
        } else if let Some(places) = &mut self.places {
            places[hash as usize % PLACES] = LookupSlot {
                hash,
                added: self.added + 1,
                used: true,
            };
        }
    }

    /// Stops referring to entries of the table; the peer's table is unchanged.
    fn forget(&mut self) {
        self.places = None;
        self.added = 0;
    }

    fn evict(&mut self, room: usize) {
        while self.size + room > self.size_max {
            let before = self.entries.len() as u32;
            let Some(oldest) = self.entries.pop_back() else {
                return;
            };
            self.size -= oldest.size();
            if let Some(places) = &mut self.places {
                let place = &mut places[oldest.hash as usize % PLACES];
                // the same field may have been added again since: that entry stays
                let number = self.added.wrapping_sub(before).wrapping_add(2);
                if place.hash == oldest.hash && place.added == number {
                    *place = LookupSlot {
                        hash: place.hash,
                        ..LookupSlot::default()
                    };
                }
            }
        }
    }
}

impl Default for Encoder {
    fn default() -> Self {
        Self::new()
    }
}

/// Writes a literal: the index of its name, or the name, and the value.
#[inline]
fn literal(form: Literal, index: usize, field: Field<'_>, output: &mut Vec<u8>) {
    integer::write(output, form.flags, form.prefix, index);
    let is_added = form.flags == INDEXED.flags;
    if index == 0 {
        string(field.name, is_added, output);
    }
    string(field.value, is_added, output);
}

fn field<'a>(name: &'a str, value: &'a [u8]) -> Field<'a> {
    let name = name.as_bytes();
    Field { name, value }
}

/// Writes a string literal; `coded` allows the Huffman code where that is shorter.
fn string(text: &[u8], coded: bool, output: &mut Vec<u8>) {
    if coded {
        let len = huffman::encoded_len(text);
        if len < text.len() {
            integer::write(output, 0x80, 7, len);
            return huffman::encode(text, output);
        }
    }
    integer::write(output, 0, 7, text.len());
    output.extend_from_slice(text);
}

/// Whether the field is a secret, about which the size of a block must reveal nothing (RFC 7541, section 7.1.3).
fn is_secret(name: &HeaderName) -> bool {
    matches!(name.as_str().len(), 6 | 10 | 13 | 19)
        && (*name == SET_COOKIE
            || *name == COOKIE
            || *name == AUTHORIZATION
            || *name == PROXY_AUTHORIZATION)
}

/// Whether a header is connection-specific, and so not permitted in HTTP/2.
pub fn is_of_connection(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection" | "keep-alive" | "proxy-connection" | "transfer-encoding" | "upgrade"
    )
}

/// Returns a hash of a field; never 0.
#[inline]
fn hash(name: &[u8], value: &[u8]) -> u32 {
    const FACTOR: u64 = 0x517c_c1b7_2722_0a95;
    let mut hash = (name.len() as u64) << 32 | value.len() as u64;
    for text in [name, value] {
        let (words, rest) = text.as_chunks::<8>();
        for word in words {
            hash = (hash.rotate_left(5) ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash.rotate_left(5) ^ u64::from_le_bytes(last)).wrapping_mul(FACTOR);
    }
    // zero marks an empty slot
    (hash >> 32) as u32 | 1 << 31
}

/// Returns the index of a name in the static table; 0 if absent.
fn static_index(name: &str) -> usize {
    match name {
        "accept-charset" => 15,
        "accept-encoding" => 16,
        "accept-language" => 17,
        "accept-ranges" => 18,
        "accept" => 19,
        "access-control-allow-origin" => 20,
        "age" => 21,
        "allow" => 22,
        "authorization" => 23,
        "cache-control" => 24,
        "content-disposition" => 25,
        "content-encoding" => 26,
        "content-language" => 27,
        "content-length" => 28,
        "content-location" => 29,
        "content-range" => 30,
        "content-type" => 31,
        "cookie" => 32,
        "date" => 33,
        "etag" => 34,
        "expect" => 35,
        "expires" => 36,
        "from" => 37,
        "host" => 38,
        "if-match" => 39,
        "if-modified-since" => 40,
        "if-none-match" => 41,
        "if-range" => 42,
        "if-unmodified-since" => 43,
        "last-modified" => 44,
        "link" => 45,
        "location" => 46,
        "max-forwards" => 47,
        "proxy-authenticate" => 48,
        "proxy-authorization" => 49,
        "range" => 50,
        "referer" => 51,
        "refresh" => 52,
        "retry-after" => 53,
        "server" => 54,
        "set-cookie" => 55,
        "strict-transport-security" => 56,
        "transfer-encoding" => 57,
        "user-agent" => 58,
        "vary" => 59,
        "via" => 60,
        "www-authenticate" => 61,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::{FIRST_NAME, NAMES};
    use super::*;

    #[test]
    fn known_names_use_the_static_table() {
        for (place, name) in NAMES.iter().enumerate() {
            assert_eq!(static_index(name.as_str()), FIRST_NAME + place, "{name}");
        }
        assert_eq!(static_index("x-other"), 0);
    }

    #[test]
    fn repeated_field_is_indexed_and_credentials_never_are() {
        let mut encoder = Encoder::new();
        let mut sizes = |name: HeaderName, value: &'static str| {
            let value = HeaderValue::from_static(value);
            let mut size = || {
                let mut output = Vec::new();
                encoder.header(&name, &value, &mut output);
                output.len()
            };
            (0..4).map(|_| size()).collect::<Vec<_>>()
        };
        let server = sizes(http::header::SERVER, "istio-envoy");
        assert!(server[1] > 2 && server[2..] == [1, 1], "{server:?}");
        assert!(sizes(SET_COOKIE, "a=b").iter().all(|&size| size > 4));
        assert_eq!(encoder.entries.len(), 1);
    }

    #[test]
    fn repeated_fields_stay_indexed_among_changing_ones() {
        let mut encoder = Encoder::new();
        let mut output = Vec::new();
        let mut sizes = Vec::new();
        for number in 0..20_000_u32 {
            output.clear();
            encoder.begin(&mut output);
            for (place, name) in NAMES[..12].iter().enumerate() {
                encoder.header(name, &HeaderValue::from(place), &mut output);
            }
            sizes.push(output.len());
            let random = HeaderValue::from(u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            encoder.header(&http::header::ETAG, &random, &mut output);
            // a value that changes now and then takes space in the table until it is full
            encoder.header(
                &http::header::AGE,
                &HeaderValue::from(number / 3),
                &mut output,
            );
        }
        let last: usize = sizes[19_000..].iter().sum();
        assert!(last < 1000 * 12 * 2, "{last}");
    }

    #[test]
    fn changing_values_are_not_indexed() {
        let mut encoder = Encoder::new();
        for number in 0..10_000_u32 {
            encoder.header(
                &http::header::ETAG,
                &HeaderValue::from(number),
                &mut Vec::new(),
            );
        }
        assert!(encoder.entries.is_empty());
    }
}
