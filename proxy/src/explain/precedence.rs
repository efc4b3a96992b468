//! Order of the rules of HTTPRoutes and GRPCRoutes: the step that puts one rule before another that matches as well.

use std::cmp::Reverse;

use traffic::route::{Rule, UriMatch};

/// Returns the step that puts a rule before a later one of the same virtual host, or of a `wider` one; `None` for rules of
/// other kinds, which are in the order in which they are written.
pub(super) fn deciding_step(first: &Rule, next: &Rule, wider: bool) -> Option<&'static str> {
    let object = &next.provenance.object;
    if !object.starts_with("HTTPRoute/") && !object.starts_with("GRPCRoute/") {
        return None;
    }
    if wider {
        return Some("its host is more specific");
    }
    let (path, other) = (rank(&first.conditions.uri), rank(&next.conditions.uri));
    let counts = |rule: &Rule| {
        let conditions = &rule.conditions;
        let (headers, query) = (conditions.headers.len(), conditions.query.len());
        (conditions.method.is_some(), headers, query)
    };
    let ((method, headers, query), (no_method, fewer, less)) = (counts(first), counts(next));
    Some(if path.0 != other.0 && path < other {
        "its path is of a more specific type"
    } else if path < other {
        "its path is longer"
    } else if method && !no_method {
        "it has a method"
    } else if headers > fewer {
        "it has more headers"
    } else if headers == fewer && query > less {
        "it has more query parameters"
    } else if first.provenance.object == *object {
        "it is earlier in the route"
    } else {
        "its route is older, or the first by namespace and name"
    })
}

/// Returns the sort key of a path: exact ones, prefixes, expressions, each by length.
fn rank(path: &UriMatch) -> (u8, Reverse<usize>) {
    let (kind, length) = match path {
        UriMatch::Exact { value, .. } => (0, value.len()),
        UriMatch::Any => (1, 0),
        UriMatch::Prefix { value, .. } | UriMatch::Segments(value) => (1, value.len()),
        UriMatch::Regex(pattern) => (2, pattern.written().len()),
        UriMatch::Call(_) => (1, 0),
    };
    (kind, Reverse(length))
}
