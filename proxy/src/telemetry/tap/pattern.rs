//! Texts with `*` for any characters.

/// Text in which each `*` matches any number of characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    text: Box<str>,
}

impl Pattern {
    /// Makes a pattern of a text.
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.into() }
    }

    /// Whether the pattern has this character.
    pub(super) fn has(&self, wanted: char) -> bool {
        self.text.contains(wanted)
    }

    /// Whether a text is as the pattern says.
    pub(super) fn matches(&self, text: &str) -> bool {
        let Some((first, rest)) = self.text.split_once('*') else {
            return *text == *self.text;
        };
        let Some(mut text) = text.strip_prefix(first) else {
            return false;
        };
        let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        // the leftmost place of each part leaves most room for those after it
        for part in middle.split('*').filter(|part| !part.is_empty()) {
            match text.split_once(part) {
                Some((_, after)) => text = after,
                None => return false,
            }
        }
        text.ends_with(last)
    }
}

/// Whether a list is empty, or one of its patterns is as one of the texts.
pub(super) fn any<'a>(patterns: &[Pattern], texts: impl Iterator<Item = &'a str> + Clone) -> bool {
    patterns.is_empty()
        || patterns
            .iter()
            .any(|pattern| texts.clone().any(|text| pattern.matches(text)))
}

/// Whether a list is empty, or one of its patterns is as the text.
pub(super) fn one(patterns: &[Pattern], text: &str) -> bool {
    any(patterns, std::iter::once(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asterisk_matches_any_characters() {
        for (pattern, text, expected) in [
            ("/cart", "/cart", true),
            ("/cart", "/cart/1", false),
            ("/cart*", "/cart", true),
            ("/cart*", "/cart/1", true),
            ("*.example", "shop.example", true),
            ("*.example", "example", false),
            ("/a*/c", "/a/b/c", true),
            ("/a*/c", "/a/c", true),
            ("/a*/c", "/a/c/d", false),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "b a", false),
            ("a*a", "a", false),
            ("*", "", true),
            ("**", "x", true),
            ("", "x", false),
            ("*ab*ab", "ab", false),
            ("*ab*ab", "abab", true),
        ] {
            let found = Pattern::new(pattern).matches(text);
            assert_eq!(found, expected, "{pattern} {text}");
        }
    }
}
