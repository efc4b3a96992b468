//! Lookups in header fields, for messages that have few of them, as nearly all have.
//!
//! A `HeaderMap` hashes a name, byte by byte, before it looks. To compare it with a handful of names takes fewer
//! instructions, since names of the standard are compared as numbers and others by their length first.

use http::{HeaderMap, HeaderName, HeaderValue};

/// Most names that are compared one by one.
const FEW: usize = 16;

/// Whether a field with this name is there.
#[inline]
pub fn has(headers: &HeaderMap, name: &HeaderName) -> bool {
    if headers.keys_len() > FEW {
        return headers.contains_key(name);
    }
    headers.keys().any(|one| one == name)
}

/// The value of the first field with this name.
#[inline]
pub fn first<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    if headers.keys_len() > FEW {
        return headers.get(name);
    }
    let mut fields = headers.iter();
    fields.find_map(|(one, value)| (one == name).then_some(value))
}

/// Removes all fields with this name, which few messages have.
#[inline]
pub fn remove(headers: &mut HeaderMap, name: &HeaderName) {
    if has(headers, name) {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use http::header::{ACCEPT, COOKIE, HOST};

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
            remove(&mut headers, &COOKIE);
            remove(&mut headers, &ACCEPT);
            assert!(!has(&headers, &COOKIE) && has(&headers, &HOST));
        }
        assert!(!has(&HeaderMap::new(), &HOST));
    }
}
