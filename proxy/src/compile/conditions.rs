//! Match blocks of rules to the conditions that requests are matched with.

use std::sync::Arc;

use config_loader::resource::istio::{
    HeaderKey as RawHeaderKey, HeaderMatch as RawHeaderMatch, HttpMatch, Pattern as RawPattern,
    StringMatch,
};

use traffic::pattern::Pattern;
use traffic::route::{Conditions, HeaderKey, HeaderMatch, QueryMatch, TextMatch, UriMatch};

/// Returns the conditions of a match block.
pub(in crate::compile) fn conditions(block: &HttpMatch) -> Conditions {
    // every field is named, so that a new condition is not forgotten
    let HttpMatch {
        name: _,
        uri,
        ignore_uri_case,
        scheme,
        method,
        authority,
        headers,
        without_headers,
        query_params,
        // `RuleScope` decides about these: they need no request
        port: _,
        source_labels: _,
        source_namespace: _,
        gateways: _,
        gateway_lines: _,
        stat_prefix: _,
        line: _,
    } = block;
    let query = query_params.iter().map(|query| QueryMatch {
        name: (*query.name).into(),
        value: text(&query.value),
    });
    Conditions {
        uri: uri
            .as_ref()
            .map_or(UriMatch::Any, |uri| uri_match(uri, *ignore_uri_case)),
        is_http2: false,
        scheme: scheme.as_ref().map(text),
        method: method.as_ref().map(text),
        authority: authority.as_ref().map(text),
        headers: headers.iter().filter_map(header).collect(),
        without_headers: without_headers.iter().filter_map(header).collect(),
        query: query.collect(),
        of_policy: None,
    }
}

/// Returns the condition on a header or claim.
pub(in crate::compile) fn header(header: &RawHeaderMatch) -> Option<HeaderMatch> {
    let key = match &header.key {
        RawHeaderKey::Named(name) => HeaderKey::parse(name)?,
        RawHeaderKey::Claim(path) => HeaderKey::Claim(
            format!("@request.auth.claims[{}]", path.join("][")).into(),
            path.iter().map(|name| (**name).into()).collect(),
        ),
    };
    Some(HeaderMatch {
        key,
        value: text(&header.value),
    })
}

/// Returns the condition on a text.
pub(in crate::compile) fn text(value: &StringMatch) -> TextMatch {
    match value {
        StringMatch::Exact(value) => TextMatch::Exact((**value).into()),
        StringMatch::Prefix(value) => TextMatch::Prefix((**value).into()),
        StringMatch::Present => TextMatch::Present,
        StringMatch::Regex(pattern) => TextMatch::Regex(pattern_of(pattern)),
    }
}

/// Returns the condition on a path.
pub(in crate::compile) fn uri_match(value: &StringMatch, ignore_case: bool) -> UriMatch {
    match value {
        StringMatch::Exact(value) => UriMatch::Exact {
            value: (**value).into(),
            ignore_case,
        },
        StringMatch::Prefix(value) => UriMatch::Prefix {
            value: (**value).into(),
            ignore_case,
        },
        StringMatch::Present => UriMatch::Any,
        StringMatch::Regex(pattern) => UriMatch::Regex(pattern_of(pattern)),
    }
}

/// Returns a regular expression as requests use it.
pub(in crate::compile) fn pattern_of(raw: &RawPattern) -> Pattern {
    Pattern::new(Arc::clone(&raw.source), Arc::clone(&raw.regex))
}
