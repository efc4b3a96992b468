//! Conversion of JSON surrogate pairs to YAML escapes.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Replaces surrogate pairs, by which JSON escapes characters above U+FFFF and which YAML does not have.
pub(super) fn join_surrogates(text: &str) -> Cow<'_, str> {
    let is_json = text.trim_start().starts_with(['{', '[']);
    if !is_json || !["\\ud", "\\uD"].iter().any(|escape| text.contains(escape)) {
        return Cow::Borrowed(text);
    }
    let unit = |escape: &str| u32::from_str_radix(escape.strip_prefix("\\u")?.get(..4)?, 16).ok();
    let mut joined = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("\\u") {
        joined.push_str(&rest[..at]);
        rest = &rest[at..];
        let pair = unit(rest).zip(rest.get(6..).and_then(unit));
        match pair {
            Some((high @ 0xd800..=0xdbff, low @ 0xdc00..=0xdfff)) => {
                let character = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                // Writing to a String cannot fail.
                let _ = write!(joined, "\\U{character:08x}");
                rest = &rest[12..];
            }
            _ => {
                joined.push_str(&rest[..2]);
                rest = &rest[2..];
            }
        }
    }
    joined.push_str(rest);
    Cow::Owned(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_joined_in_json_only() {
        for (text, wanted) in [
            (r#"{"a": "\ud83d\ude00b"}"#, r#"{"a": "\U0001f600b"}"#),
            (r#"{"a": "\ud83d\u0041"}"#, r#"{"a": "\ud83d\u0041"}"#),
            (r#"{"a": "\ud83d"#, r#"{"a": "\ud83d"#),
            (r#"a: \ud83d\ude00"#, r#"a: \ud83d\ude00"#),
        ] {
            assert_eq!(join_surrogates(text), wanted);
        }
    }
}
