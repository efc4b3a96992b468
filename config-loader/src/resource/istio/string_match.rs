//! String matches.

use std::sync::Arc;

use regex::bytes::Regex;

/// String match. Case-sensitive, unless the field with the match says otherwise.
#[derive(Clone, Debug)]
pub enum StringMatch {
    /// Equal text.
    Exact(Arc<str>),
    /// Text with this prefix.
    Prefix(Arc<str>),
    /// Any text, including an empty one.
    Present,
    /// Text that the regular expression matches in whole.
    Regex(Pattern),
}

impl StringMatch {
    /// Whether a present text matches.
    pub fn matches(&self, text: &[u8]) -> bool {
        match self {
            StringMatch::Exact(wanted) => text == wanted.as_bytes(),
            StringMatch::Prefix(wanted) => text.starts_with(wanted.as_bytes()),
            StringMatch::Present => true,
            StringMatch::Regex(pattern) => pattern.regex.is_match(text),
        }
    }

    /// Whether both matches are equal.
    pub fn same(&self, other: &StringMatch) -> bool {
        match (self, other) {
            (StringMatch::Exact(a), StringMatch::Exact(b))
            | (StringMatch::Prefix(a), StringMatch::Prefix(b)) => a == b,
            (StringMatch::Present, StringMatch::Present) => true,
            (StringMatch::Regex(a), StringMatch::Regex(b)) => a.source == b.source,
            _ => false,
        }
    }
}

/// Compiled regular expression of the RE2 dialect.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Expression as written.
    pub source: Arc<str>,
    /// Compiled expression. Anchored at both ends where the whole text must match.
    pub regex: Arc<Regex>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_matched_byte_by_byte() {
        let pattern = |source: &str| {
            StringMatch::Regex(Pattern {
                source: source.into(),
                regex: Arc::new(Regex::new(&format!(r"\A(?:{source})\z")).unwrap()),
            })
        };
        for (form, text, wanted) in [
            (StringMatch::Exact("a".into()), "a", true),
            (StringMatch::Exact("a".into()), "A", false),
            (StringMatch::Exact("a".into()), "ab", false),
            (StringMatch::Prefix("a".into()), "ab", true),
            (StringMatch::Prefix("a".into()), "ba", false),
            (StringMatch::Prefix("".into()), "", true),
            (StringMatch::Present, "", true),
            (pattern("b.*"), "ab", false),
            (pattern("b.*"), "bc", true),
        ] {
            assert_eq!(form.matches(text.as_bytes()), wanted, "{form:?} {text}");
        }
        assert!(pattern("a").same(&pattern("a")));
        assert!(!pattern("a").same(&StringMatch::Exact("a".into())));
    }
}
