//! The text that everything that a regular expression matches begins with.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::{ExtractKind, Extractor};
use regex_syntax::hir::{Hir, Look};

/// The longest literal that is common to the beginnings of all matches; empty when there is none, when the expression
/// does not start at the beginning of the text, or when it is not understood.
pub(super) fn literal_prefix(expression: &str) -> Box<[u8]> {
    let parsed = ParserBuilder::new().utf8(false).build().parse(expression);
    match parsed {
        Ok(hir) if starts_text(&hir) => {
            let beginnings = Extractor::new().kind(ExtractKind::Prefix).extract(&hir);
            beginnings
                .longest_common_prefix()
                .unwrap_or_default()
                .into()
        }
        _ => Box::default(),
    }
}

fn starts_text(hir: &Hir) -> bool {
    hir.properties().look_set_prefix().contains(Look::Start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_all_matches_begin_with() {
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
            let found = literal_prefix(expression);
            assert_eq!(String::from_utf8_lossy(&found), expected, "{expression}");
        }
    }
}
