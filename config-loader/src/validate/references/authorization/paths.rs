//! Paths of policies that no request has, and forbidden paths with other spellings, by how the mesh normalizes paths.

use traffic::authz::{Attribute, Pattern, Values};
use traffic::route::PathNormalization;

use super::policies::{about, conditions};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::istio::{AZ110, AZ132};
use crate::resource::ResourceSet;
use crate::resource::istio::authorization_policy::{Action, Rule};

/// Reason that no path has an escape of an unreserved character.
const DECODED: &str = "escaped letters, digits and `-._~` are decoded";

/// Warns of paths that no normalized path matches, and of forbidden paths where none is normalized.
pub(super) fn check(set: &ResourceSet, how: PathNormalization, found: &mut Vec<Diagnostic>) {
    for policy in set.authorization_policies.values() {
        let denies = matches!(policy.spec.action, Action::Deny | Action::Custom(_));
        for (index, rule) in policy.spec.rules.iter().enumerate() {
            if how == PathNormalization::None && forbids_paths(rule, denies) {
                let message = "paths are not normalized: `/x/../a` is not `/a`, and endpoints may take it as such";
                let mut diagnostic = about(policy, index, rule, AZ132, message);
                diagnostic.help("normalize paths, by --path-normalization or `pathNormalization`, or allow paths instead");
                found.push(diagnostic);
            }
            for path in paths(rule) {
                if let Some(problem) = unmatched(&path, how) {
                    let message = format!("no path matches `{path}`: {problem}");
                    let mut diagnostic = about(policy, index, rule, AZ110, &message);
                    diagnostic.help("paths are compared after normalization, without their query");
                    found.push(diagnostic);
                }
            }
        }
    }
}

/// Whether a rule forbids paths: its matches if the policy `denies`, otherwise all others.
fn forbids_paths(rule: &Rule, denies: bool) -> bool {
    let mut of_paths = conditions(rule).filter(|one| one.attribute == Attribute::Path);
    of_paths.any(|one| one.not_values.is_some() || denies)
}

/// Returns the values of `paths` and `notPaths`, as written, but for templates.
fn paths(rule: &Rule) -> impl Iterator<Item = String> {
    let of_paths = conditions(rule).filter(|one| one.attribute == Attribute::Path);
    let values = of_paths.flat_map(|one| one.values.iter().chain(&one.not_values));
    let patterns = values.flat_map(|values| match values {
        Values::Texts(patterns) => &**patterns,
        _ => &[],
    });
    let plain = patterns.filter(|pattern| !matches!(pattern, Pattern::Template(_)));
    plain.map(Pattern::written)
}

/// Returns the reason that no normalized path matches a value.
fn unmatched(value: &str, how: PathNormalization) -> Option<&'static str> {
    let path = value.trim_end_matches('*');
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
