//! Paths of AuthorizationPolicies: templates, and values that no normalized path equals.

use traffic::route::PathNormalization;

use crate::diagnostic::codes::istio::{AZ015, AZ110};
use crate::span::Span;
use crate::validate::Check;

const ONE: &str = "{*}";
const REST: &str = "{**}";

/// Reason that no path has an escape of an unreserved character.
const DECODED: &str = "escaped letters, digits and `-._~` are decoded";

/// Checks a path; `None` if it is a template with errors.
pub(super) fn check(value: &str, span: Span, check: &mut Check<'_>) -> Option<()> {
    if value.contains(ONE) || value.contains(REST) {
        if let Err(problem) = template(value) {
            let message = format!("`{value}` is not a path template: {problem}");
            let found = check.error(AZ015, span, message);
            found.help(
                "write `{*}` for one whole segment, and `{**}` last, for the rest of the path",
            );
            return None;
        }
    } else {
        let is_wild = value.starts_with('*');
        let how = check.options().path_normalization;
        if let Some(problem) = unmatched(value, is_wild, how) {
            let message = format!("no path matches `{value}`: {problem}");
            let found = check.warning(AZ110, span, message);
            found.help("paths are compared after normalization, without their query");
        }
    }
    Some(())
}

/// Returns the reason that no normalized path matches a value.
fn unmatched(value: &str, is_wild: bool, how: PathNormalization) -> Option<&'static str> {
    let path = value.trim_end_matches('*');
    if !is_wild && !value.starts_with('/') && value != "*" {
        return Some("paths begin with a slash");
    }
    if path.contains(['?', '#']) {
        return Some("a path has no query and no fragment");
    }
    if how == PathNormalization::None {
        return None;
    }
    if how.merges_slashes() && path.contains("//") {
        return Some("adjacent slashes become one");
    }
    if path.contains("/../")
        || path.contains("/./")
        || path.ends_with("/..")
        || path.ends_with("/.")
    {
        return Some("dot segments are resolved");
    }
    if path.contains('\\') {
        return Some("a backslash becomes a slash");
    }
    let escapes = path
        .match_indices('%')
        .filter_map(|(at, _)| path.get(at + 1..at + 3));
    let mut codes = escapes.filter_map(|digits| u8::from_str_radix(digits, 16).ok());
    codes.find_map(|byte| match byte {
        b'/' | b'\\' if how == PathNormalization::DecodeAndMergeSlashes => {
            Some("escaped slashes are decoded")
        }
        b'-' | b'.' | b'_' | b'~' => Some(DECODED),
        _ => byte.is_ascii_alphanumeric().then_some(DECODED),
    })
}

/// Checks a template.
///
/// Source: Istio's validation of `paths`, Envoy's URI template match.
fn template(value: &str) -> Result<(), &'static str> {
    let Some(rest) = value.strip_prefix('/') else {
        return Err("it begins with no slash");
    };
    let mut has_rest = false;
    let last = rest.split('/').count() - 1;
    for (place, segment) in rest.split('/').enumerate() {
        match segment {
            ONE | REST if has_rest => return Err("`{**}` is not the last operator"),
            ONE => {}
            REST => has_rest = true,
            "" if place == last => {}
            "" => return Err("it has an empty segment"),
            segment if segment.contains(ONE) || segment.contains(REST) => {
                return Err("an operator is a whole segment");
            }
            segment if !segment.bytes().all(is_literal) => {
                return Err("a segment has a character that is not allowed in it");
            }
            _ => {}
        }
    }
    Ok(())
}

/// Whether a byte may be in a literal segment: unreserved and sub-delims but `*`, `:`, `@`, `%`.
fn is_literal(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()+,;=:@%".contains(&byte)
}
