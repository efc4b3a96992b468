//! Conditions on a text: exact, prefix, suffix, regular expression, or presence. Compares bytes, case-sensitive.

use crate::pattern::Pattern;

/// One condition on a text (`StringMatch` of the resources).
#[derive(Clone, Debug)]
pub enum TextMatch {
    /// The same bytes.
    Exact(Box<str>),
    /// Starts with these bytes.
    Prefix(Box<str>),
    /// Any value, but present.
    Present,
    /// The whole text matches.
    Regex(Pattern),
    /// Ends with these bytes.
    Suffix(Box<str>),
}

impl TextMatch {
    /// Whether a present text meets the condition.
    pub fn matches(&self, text: &[u8]) -> bool {
        match self {
            Self::Exact(wanted) => text == wanted.as_bytes(),
            Self::Prefix(wanted) => text.starts_with(wanted.as_bytes()),
            Self::Present => true,
            Self::Regex(wanted) => wanted.is_match(text),
            Self::Suffix(wanted) => text.ends_with(wanted.as_bytes()),
        }
    }

    /// The name of this kind of condition in resources.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Exact(_) => "exact",
            Self::Prefix(_) => "prefix",
            Self::Present => "present",
            Self::Regex(_) => "regex",
            Self::Suffix(_) => "suffix",
        }
    }

    /// Wanted text as written; empty for presence.
    pub fn wanted(&self) -> &str {
        match self {
            Self::Exact(wanted) | Self::Prefix(wanted) | Self::Suffix(wanted) => wanted,
            Self::Present => "",
            Self::Regex(wanted) => wanted.written(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffix_is_the_end_of_a_text() {
        let suffix = TextMatch::Suffix("/admin".into());
        for (text, expected) in [
            ("/admin", true),
            ("/v1/admin", true),
            ("admin", false),
            ("/admin/", false),
            ("/ADMIN", false),
            ("", false),
        ] {
            assert_eq!(suffix.matches(text.as_bytes()), expected, "{text}");
        }
        assert!(TextMatch::Suffix("".into()).matches(b""));
    }
}
