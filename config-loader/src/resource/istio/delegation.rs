//! Conflicts between match blocks of a root rule and of its delegate.

use super::{HeaderMatch, HttpMatch, QueryMatch, StringMatch};

/// Returns the first field in which a delegate's block conflicts with its root's block; `None` if they can be merged.
pub fn conflict(root: &HttpMatch, inner: &HttpMatch) -> Option<&'static str> {
    // every field is named, so that a new condition is not forgotten
    let HttpMatch {
        name: _,
        uri,
        ignore_uri_case,
        scheme,
        method,
        authority,
        headers: with_headers,
        without_headers,
        query_params,
        port,
        source_labels,
        source_namespace,
        gateways,
        gateway_lines: _,
        stat_prefix: _,
        line: _,
    } = root;
    let texts = [
        ("uri", uri, &inner.uri),
        ("scheme", scheme, &inner.scheme),
        ("method", method, &inner.method),
        ("authority", authority, &inner.authority),
    ];
    let mut texts = texts.into_iter();
    if let Some((field, ..)) = texts.find(|(_, root, inner)| match (root, inner) {
        (Some(root), Some(inner)) => conflicting(root, inner),
        _ => false,
    }) {
        return Some(field);
    }
    let labels = |(key, value): (&String, &String)| {
        let other = inner.source_labels.get(key);
        other.is_some_and(|other| other != value)
    };
    let checks = [
        ("headers", headers(with_headers, &inner.headers)),
        (
            "withoutHeaders",
            headers(without_headers, &inner.without_headers),
        ),
        ("queryParams", queries(query_params, &inner.query_params)),
        ("ignoreUriCase", *ignore_uri_case != inner.ignore_uri_case),
        (
            "port",
            matches!((port, inner.port), (Some(a), Some(b)) if *a != b),
        ),
        ("sourceLabels", source_labels.iter().any(labels)),
        (
            "sourceNamespace",
            source_namespace.is_some() && inner.source_namespace != *source_namespace,
        ),
        (
            "gateways",
            !gateways.is_empty()
                && inner
                    .gateways
                    .iter()
                    .any(|gateway| !gateways.contains(gateway)),
        ),
    ];
    let found = checks.into_iter().find(|(_, conflicts)| *conflicts);
    found.map(|(field, _)| field)
}

fn headers(root: &[HeaderMatch], inner: &[HeaderMatch]) -> bool {
    root.iter().any(|a| {
        let mut same = inner.iter().filter(|b| a.key == b.key);
        same.any(|b| conflicting(&a.value, &b.value))
    })
}

fn queries(root: &[QueryMatch], inner: &[QueryMatch]) -> bool {
    root.iter().any(|a| {
        let mut same = inner.iter().filter(|b| a.name == b.name);
        same.any(|b| conflicting(&a.value, &b.value))
    })
}

/// Whether two conditions on one text cannot be merged.
fn conflicting(root: &StringMatch, inner: &StringMatch) -> bool {
    match (root, inner) {
        (StringMatch::Regex(_), _) | (_, StringMatch::Regex(_)) => true,
        (StringMatch::Exact(root), StringMatch::Exact(inner)) => root != inner,
        (StringMatch::Exact(_), StringMatch::Prefix(_)) => true,
        (StringMatch::Prefix(root), StringMatch::Exact(inner) | StringMatch::Prefix(inner)) => {
            !inner.starts_with(&**root)
        }
        (StringMatch::Present, _) | (_, StringMatch::Present) => false,
    }
}
