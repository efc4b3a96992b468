//! Literal text in regular expressions: the common prefix of all matches, and a text that they contain.
//!
//! Both are necessary, not sufficient: they avoid running an expression that cannot match.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Hir, HirKind, Look};

/// Minimum length of an inner text; shorter ones are too common in paths to be useful.
const INNER_LEN_MIN: usize = 3;

/// Literal texts of one expression.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Literals {
    /// Longest prefix of every match; empty for none.
    pub(super) prefix: Box<[u8]>,
    /// A text that every match contains after the prefix.
    pub(super) inner: Option<Box<[u8]>>,
}

impl Literals {
    /// Extracts the literals of an expression; none if it is not anchored at the start, or not understood.
    pub(super) fn of(expression: &str) -> Self {
        let parsed = ParserBuilder::new().utf8(false).build().parse(expression);
        match parsed {
            Ok(hir) if hir.properties().look_set_prefix().contains(Look::Start) => {
                let beginnings = Extractor::new().kind(ExtractKind::Prefix).extract(&hir);
                let prefix = beginnings.longest_common_prefix().unwrap_or_default();
                let inner = inner(&hir).filter(|inner| inner.len() >= INNER_LEN_MIN);
                Self {
                    prefix: prefix.into(),
                    inner: inner.map(Into::into),
                }
            }
            _ => Self::default(),
        }
    }
}

/// The longest literal in a concatenation, except for its first part, which is in the prefix.
fn inner(hir: &Hir) -> Option<&[u8]> {
    let HirKind::Concat(parts) = hir.kind() else {
        return None;
    };
    let texts = parts
        .iter()
        .filter(|part| !matches!(part.kind(), HirKind::Look(_)));
    let literals = texts.skip(1).filter_map(|part| match part.kind() {
        HirKind::Literal(literal) => Some(&*literal.0),
        _ => None,
    });
    literals.max_by_key(|literal| literal.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_literal_prefix_of_all_matches() {
        for (expression, expected) in [
            (r"\A(?:/v[0-9]+/.*)\z", "/v"),
            (r"\A(?:/api/(users|orders)/[^/]+)\z", "/api/"),
            (r"\A(?:/a\.b/\d+)\z", "/a.b/"),
            (r"\A(?:/ab?c)\z", "/a"),
            (r"\A(?:/ab*)\z", "/a"),
            (r"\A(?:/ab+)\z", "/ab"),
            (r"\A(?:/exact)\z", "/exact"),
            (r"\A(?:.*)\z", ""),
            (r"\A(?:/a|/b)\z", "/"),
            (r"\A(?:/a|b)\z", ""),
            (r"\A(?:(?i)/foo)\z", "/"),
            (r"\A(?:)\z", ""),
            (r"/unanchored", ""),
            (r"\A(?:/open", ""),
        ] {
            let found = Literals::of(expression).prefix;
            assert_eq!(String::from_utf8_lossy(&found), expected, "{expression}");
        }
    }

    #[test]
    fn finds_the_longest_literal_after_the_prefix() {
        for (expression, expected) in [
            (r"\A(?:/v[0-9]+/users/[^/]+/cart)\z", Some("/users/")),
            (r"\A(?:/v[0-9]+/us)\z", Some("/us")),
            (r"\A(?:/v[0-9]+/u)\z", None),
            (r"\A(?:/users/.*)\z", None),
            (r"\A(?:/(?:a|b)/users/.*)\z", Some("/users/")),
            (r"\A(?:/a.*/users|/b.*/users)\z", None),
            (r"\A(?:/a(/users)?/.*)\z", None),
            (r"/a.*/users", None),
        ] {
            let found = Literals::of(expression).inner;
            let found = found.as_deref().map(String::from_utf8_lossy);
            assert_eq!(found.as_deref(), expected, "{expression}");
        }
    }
}
