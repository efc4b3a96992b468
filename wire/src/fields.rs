//! Lookups in header fields, fast for messages with few of them, as nearly all have; and HTTP/1 field lines.
//!
//! A `HeaderMap` hashes a name byte by byte before a lookup. Comparing it with a handful of names takes fewer
//! instructions, since standard names are compared as numbers and others by their length first.

use std::ops::Range;

use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, CACHE_CONTROL, CONNECTION,
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, DATE, ETAG, HOST, InvalidHeaderName,
    LAST_MODIFIED, LOCATION, ORIGIN, REFERER, SERVER, SET_COOKIE, TRANSFER_ENCODING, USER_AGENT,
    VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Maximum names that are compared one by one.
const FEW: usize = 16;

/// Whether there is a field with this name.
#[inline]
pub fn has(headers: &HeaderMap, name: &HeaderName) -> bool {
    if headers.keys_len() > FEW {
        return headers.contains_key(name);
    }
    headers.keys().any(|one| one == name)
}

/// Returns the value of the first field with this name.
#[inline]
pub fn first<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    if headers.keys_len() > FEW {
        return headers.get(name);
    }
    let mut fields = headers.iter();
    fields.find_map(|(one, value)| (one == name).then_some(value))
}

/// Sets the single field with this name; optimized for messages that already have it.
#[inline]
pub fn set(headers: &mut HeaderMap, name: &HeaderName, value: &HeaderValue) {
    // as many names as values: no name is repeated
    if headers.keys_len() <= FEW && headers.keys_len() == headers.len() {
        let mut fields = headers.iter_mut();
        if let Some((_, old)) = fields.find(|(one, _)| *one == name) {
            *old = value.clone();
            return;
        }
    }
    headers.insert(name.clone(), value.clone());
}

/// Removes all fields with this name; optimized for messages that have none.
#[inline]
pub fn remove(headers: &mut HeaderMap, name: &HeaderName) {
    if has(headers, name) {
        headers.remove(name);
    }
}

/// Parses a field name, in any case.
///
/// `HeaderName` converts and looks up every name; frequent names, in their two usual forms, are matched by comparing
/// bytes instead.
///
/// # Errors
///
/// If the bytes are no token (RFC 9110, section 5.6.2).
#[inline]
pub fn name(bytes: &[u8]) -> Result<HeaderName, InvalidHeaderName> {
    Ok(match bytes {
        b"Accept" | b"accept" => ACCEPT,
        b"Accept-Encoding" | b"accept-encoding" => ACCEPT_ENCODING,
        b"Accept-Language" | b"accept-language" => ACCEPT_LANGUAGE,
        b"Authorization" | b"authorization" => AUTHORIZATION,
        b"Cache-Control" | b"cache-control" => CACHE_CONTROL,
        b"Connection" | b"connection" => CONNECTION,
        b"Content-Encoding" | b"content-encoding" => CONTENT_ENCODING,
        b"Content-Length" | b"content-length" => CONTENT_LENGTH,
        b"Content-Type" | b"content-type" => CONTENT_TYPE,
        b"Cookie" | b"cookie" => COOKIE,
        b"Date" | b"date" => DATE,
        b"ETag" | b"etag" => ETAG,
        b"Host" | b"host" => HOST,
        b"Last-Modified" | b"last-modified" => LAST_MODIFIED,
        b"Location" | b"location" => LOCATION,
        b"Origin" | b"origin" => ORIGIN,
        b"Referer" | b"referer" => REFERER,
        b"Server" | b"server" => SERVER,
        b"Set-Cookie" | b"set-cookie" => SET_COOKIE,
        b"Transfer-Encoding" | b"transfer-encoding" => TRANSFER_ENCODING,
        b"User-Agent" | b"user-agent" => USER_AGENT,
        b"Vary" | b"vary" => VARY,
        _ => return HeaderName::from_bytes(bytes),
    })
}

/// Whether a byte may be part of a token, such as a method or a field name (RFC 9110, section 5.6.2).
#[inline]
pub fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Escapes characters of a request target that some clients send unescaped though no URI may contain them (RFC 3986,
/// section 2): `"`, `<`, `>` and, in the path, `` ` ``. The authority of an absolute target stays unchanged.
pub fn escaped_target(target: &[u8]) -> Vec<u8> {
    let scheme = memchr::memmem::find(target, b"://");
    let authority = match scheme {
        Some(at) if !target.starts_with(b"/") => at + 3,
        _ => 0,
    };
    let begins = |byte: &u8| matches!(byte, b'/' | b'?');
    let path = target[authority..].iter().position(begins);
    let path = path.map_or(target.len(), |at| authority + at);
    let mut escaped = target[..path].to_vec();
    let mut is_query = false;
    for byte in &target[path..] {
        is_query |= *byte == b'?';
        match byte {
            b'"' => escaped.extend_from_slice(b"%22"),
            b'<' => escaped.extend_from_slice(b"%3C"),
            b'>' => escaped.extend_from_slice(b"%3E"),
            b'`' if !is_query => escaped.extend_from_slice(b"%60"),
            byte => escaped.push(*byte),
        }
    }
    escaped
}

/// Returns the members of a comma-separated list, some of which may be empty (RFC 9110, section 5.6.1).
#[inline]
pub fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let members = value.split(|byte| *byte == b',');
    members.map(<[u8]>::trim_ascii)
}

/// Whether a comma-separated list contains this token, in any case.
#[inline]
pub fn has_token(value: &[u8], token: &[u8]) -> bool {
    list(value).any(|member| member.eq_ignore_ascii_case(token))
}

/// Positions of a field's name and value in a line.
#[derive(Clone, Debug)]
pub struct Field {
    /// Any bytes before the colon.
    pub name: Range<usize>,
    /// Value without surrounding white space (RFC 9110, section 5.6.3).
    pub value: Range<usize>,
}

/// Splits a field line; `None` if it has no colon, or is folded (RFC 9112, section 5.2).
#[inline]
pub fn split(line: &[u8]) -> Option<Field> {
    let colon = find_near(b':', line)?;
    // few bytes are below a space: most need one comparison
    let is_space = |at: usize| line[at] <= b' ' && matches!(line[at], b' ' | b'\t');
    if is_space(0) {
        return None;
    }
    let (mut start, mut end) = (colon + 1, line.len());
    while start < end && is_space(start) {
        start += 1;
    }
    while start < end && is_space(end - 1) {
        end -= 1;
    }
    Some(Field {
        name: 0..colon,
        value: start..end,
    })
}

/// Returns the position of the first such byte, which is expected to be near: comparing eight bytes at a time takes
/// fewer instructions than a call of `memchr`.
#[inline]
fn find_near(byte: u8, bytes: &[u8]) -> Option<usize> {
    let each = |byte: u8| u64::from_ne_bytes([byte; 8]);
    let (eights, rest) = bytes.as_chunks();
    let mut at = 0;
    for eight in eights {
        let differences = u64::from_le_bytes(*eight) ^ each(byte);
        // the lowest mark is correct; higher ones may result from a borrow
        let marks = differences.wrapping_sub(each(1)) & !differences & each(0x80);
        if marks != 0 {
            return Some(at + (marks.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    let rest = rest.iter().position(|one| *one == byte);
    rest.map(|further| at + further)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_are_found_among_few_and_many() {
        let extended = HeaderName::from_static("x-request-id");
        for others in [0, 1, FEW - 3, FEW - 2, FEW, 50] {
            let mut headers = HeaderMap::new();
            for number in 0..others {
                let name = HeaderName::try_from(format!("x-other-{number}")).unwrap();
                headers.append(name, HeaderValue::from_static("o"));
            }
            for (name, value) in [
                (&COOKIE, "a"),
                (&extended, "i"),
                (&COOKIE, "b"),
                (&HOST, "h"),
            ] {
                headers.append(name, HeaderValue::from_static(value));
            }
            for (name, expected) in [
                (&COOKIE, Some("a")),
                (&extended, Some("i")),
                (&HOST, Some("h")),
                (&ACCEPT, None),
            ] {
                let found = first(&headers, name).map(|value| value.to_str().unwrap());
                assert_eq!(found, expected, "{name} beside {others}");
                assert_eq!(has(&headers, name), expected.is_some());
            }
            for (name, count) in [(&HOST, 4), (&COOKIE, 3), (&ACCEPT, 4), (&COOKIE, 4)] {
                set(&mut headers, name, &HeaderValue::from_static("set"));
                let values: Vec<_> = headers.get_all(name).iter().collect();
                assert_eq!(values, ["set"], "{name} beside {others}");
                assert_eq!(headers.len(), others + count);
            }
            remove(&mut headers, &ACCEPT);
            set(&mut headers, &COOKIE, &HeaderValue::from_static("again"));
            assert_eq!(
                (headers.len(), &headers[&COOKIE]),
                (others + 3, &HeaderValue::from_static("again"))
            );
            remove(&mut headers, &COOKIE);
            remove(&mut headers, &ACCEPT);
            assert!(!has(&headers, &COOKIE) && has(&headers, &HOST));
        }
        assert!(!has(&HeaderMap::new(), &HOST));
    }

    #[test]
    fn usual_names_are_what_they_say() {
        for text in [
            "Accept",
            "Accept-Encoding",
            "Accept-Language",
            "Authorization",
            "Cache-Control",
            "Connection",
            "Content-Encoding",
            "Content-Length",
            "Content-Type",
            "Cookie",
            "Date",
            "ETag",
            "Host",
            "Last-Modified",
            "Location",
            "Origin",
            "Referer",
            "Server",
            "Set-Cookie",
            "Transfer-Encoding",
            "User-Agent",
            "Vary",
        ] {
            let lower = text.to_ascii_lowercase();
            for form in [text, &lower, &text.to_ascii_uppercase()] {
                assert_eq!(name(form.as_bytes()).unwrap().as_str(), lower, "{form}");
            }
        }
    }

    #[test]
    fn tokens_are_found_in_lists() {
        for (value, expected) in [
            ("close", true),
            ("Close", true),
            ("a, b ,\tCLOSE\t", true),
            (",close,", true),
            ("", false),
            (",", false),
            ("closed", false),
            ("a close", false),
            ("\"close\"", false),
        ] {
            assert_eq!(has_token(value.as_bytes(), b"close"), expected, "{value:?}");
        }
        assert_eq!(
            list(b"a,, b \t,").collect::<Vec<_>>(),
            [&b"a"[..], b"", b"b", b""]
        );
    }

    #[test]
    fn bytes_of_tokens_are_those_of_names() {
        for byte in 0..=u8::MAX {
            let is_name = HeaderName::from_bytes(&[byte]).is_ok();
            assert_eq!(is_of_token(byte), is_name, "{byte:#x}");
        }
    }

    #[test]
    fn characters_of_no_uri_are_escaped_in_targets() {
        for (target, expected) in [
            ("/a", "/a"),
            ("/a?q={\"b\":<1>}", "/a?q={%22b%22:%3C1%3E}"),
            ("/<a`>?`", "/%3Ca%60%3E?`"),
            ("http://<a>/<b>?<c>", "http://<a>/%3Cb%3E?%3Cc%3E"),
            ("http://a?<c>", "http://a?%3Cc%3E"),
            ("/a?b=http://<c>/", "/a?b=http://%3Cc%3E/"),
            ("<a>:80", "<a>:80"),
        ] {
            let escaped = escaped_target(target.as_bytes());
            assert_eq!(escaped, expected.as_bytes(), "{target}");
        }
    }

    #[test]
    fn field_lines_are_taken_apart() {
        for (line, expected) in [
            ("a:b", Some(("a", "b"))),
            ("a: b", Some(("a", "b"))),
            ("a:\t b\t c \t", Some(("a", "b\t c"))),
            ("a:", Some(("a", ""))),
            ("a: \t", Some(("a", ""))),
            (":b", Some(("", "b"))),
            ("a : b", Some(("a ", "b"))),
            ("a::b:", Some(("a", ":b:"))),
            ("a: \0b\r", Some(("a", "\0b\r"))),
            ("", None),
            ("a", None),
            (" a: b", None),
            ("\ta: b", None),
            (" :", None),
        ] {
            let field = split(line.as_bytes());
            let got = field.map(|Field { name, value }| (&line[name], &line[value]));
            assert_eq!(got, expected, "{line:?}");
        }
    }

    proptest! {
        #[test]
        fn first_colon_is_found(bytes in prop::collection::vec(
            prop_oneof![any::<u8>(), Just(b':'), Just(b':' + 1), Just(b':' - 1)], 0..40,
        )) {
            for start in 0..bytes.len() {
                let bytes = &bytes[start..];
                let expected = bytes.iter().position(|byte| *byte == b':');
                prop_assert_eq!(find_near(b':', bytes), expected);
            }
        }

        #[test]
        fn any_name_is_read_as_the_library_reads_it(bytes in "[a-zA-Z:@-]{0,20}") {
            let bytes = bytes.as_bytes();
            prop_assert_eq!(name(bytes).ok(), HeaderName::from_bytes(bytes).ok());
        }
    }
}
