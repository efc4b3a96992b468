//! Conditions of a match block in comparable form.

use std::collections::BTreeMap;

use crate::resource::istio::{GatewayRef, HeaderKey, HeaderMatch, HttpMatch, StringMatch};

/// Match of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Text<'a> {
    Exact(&'a str),
    Prefix(&'a str),
    Present,
    Regex(&'a str),
}

impl<'a> Text<'a> {
    pub(super) fn of(value: &'a StringMatch) -> Text<'a> {
        match value {
            StringMatch::Exact(text) => Text::Exact(text),
            StringMatch::Prefix(text) => Text::Prefix(text),
            StringMatch::Present => Text::Present,
            StringMatch::Regex(pattern) => Text::Regex(&pattern.source),
        }
    }
}

/// All conditions of a block except its URI. Lists are sorted, because their order has no meaning, so that equal
/// conditions compare equal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Conditions<'a> {
    scheme: Option<Text<'a>>,
    method: Option<Text<'a>>,
    authority: Option<Text<'a>>,
    ignore_uri_case: bool,
    headers: Vec<(&'a HeaderKey, Text<'a>)>,
    without_headers: Vec<(&'a HeaderKey, Text<'a>)>,
    query_params: Vec<(&'a str, Text<'a>)>,
    port: Option<u16>,
    source_namespace: Option<&'a str>,
    source_labels: Option<&'a BTreeMap<String, String>>,
    gateways: Vec<&'a GatewayRef>,
}

impl<'a> Conditions<'a> {
    pub(super) fn but_uri(block: &'a HttpMatch) -> Conditions<'a> {
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
        } = block;
        let query = query_params.iter();
        Conditions {
            scheme: scheme.as_ref().map(Text::of),
            method: method.as_ref().map(Text::of),
            authority: authority.as_ref().map(Text::of),
            ignore_uri_case: *ignore_uri_case && uri.is_some(),
            headers: headers(with_headers),
            without_headers: headers(without_headers),
            query_params: sorted(query.map(|query| (&*query.name, Text::of(&query.value)))),
            port: *port,
            source_namespace: source_namespace.as_deref(),
            source_labels: Some(source_labels).filter(|labels| !labels.is_empty()),
            gateways: sorted(gateways.iter()),
        }
    }

    /// Whether there are no conditions.
    pub(super) fn is_empty(&self) -> bool {
        *self == Conditions::default()
    }
}

fn headers(list: &[HeaderMatch]) -> Vec<(&HeaderKey, Text<'_>)> {
    let headers = list.iter();
    sorted(headers.map(|header| (&header.key, Text::of(&header.value))))
}

fn sorted<T: Ord>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut values: Vec<T> = values.collect();
    values.sort_unstable();
    values
}
