//! Paths of AuthorizationPolicies: templates, and values that no path equals.

use crate::diagnostic::codes::istio::{AZ015, AZ110};
use crate::span::Span;
use crate::validate::Check;

const ONE: &str = "{*}";
const REST: &str = "{**}";

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
    } else if let Some(problem) = unmatched(value) {
        let message = format!("no path matches `{value}`: {problem}");
        let found = check.warning(AZ110, span, message);
        found.help("paths are compared after normalization, without their query");
    }
    Some(())
}

/// Returns the reason that no path matches a value, however paths are normalized.
fn unmatched(value: &str) -> Option<&'static str> {
    if !value.starts_with(['/', '*']) {
        return Some("paths begin with a slash");
    }
    value
        .contains(['?', '#'])
        .then_some("a path has no query and no fragment")
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
