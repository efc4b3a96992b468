//! How a text is matched.

use std::sync::Arc;

use regex::bytes::Regex;

/// How a text is matched. Letter case counts, unless the field that holds this says otherwise.
#[derive(Clone, Debug)]
pub enum StringMatch {
    /// The same bytes.
    Exact(Arc<str>),
    /// It starts with these bytes.
    Prefix(Arc<str>),
    /// Any text, as long as there is one.
    Present,
    /// The whole of it matches.
    Regex(Pattern),
}

impl StringMatch {
    /// Whether a text that is there matches.
    pub fn matches(&self, text: &[u8]) -> bool {
        match self {
            StringMatch::Exact(wanted) => text == wanted.as_bytes(),
            StringMatch::Prefix(wanted) => text.starts_with(wanted.as_bytes()),
            StringMatch::Present => true,
            StringMatch::Regex(pattern) => pattern.regex.is_match(text),
        }
    }

    /// Whether both say the same.
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

/// A regular expression of the RE2 dialect, compiled.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// What was written.
    pub source: Arc<str>,
    /// What it compiles to. Where the whole of a text must match, it is anchored at both ends.
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
