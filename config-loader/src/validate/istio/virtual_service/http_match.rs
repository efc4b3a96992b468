//! Match blocks of HTTP rules.

use std::sync::Arc;

use super::gateways;
use super::head::Head;
use super::source::source_namespace;
use super::string_match::{Allow, of_present, string_match};
use crate::diagnostic::codes::istio::{VS035, VS049, VS050, VS051, VS311, VS313, VS314};
use crate::raw::{self, Field, Map};
use crate::resource::istio::{HeaderKey, HeaderMatch, HttpMatch, QueryMatch, StringMatch};
use crate::span::Span;
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

/// Prefix of header keys that refer to JWT claims.
const CLAIMS: &str = "@request.auth.claims";

/// Pseudo-headers that can be matched.
const PSEUDO_HEADERS: [&str; 4] = [":authority", ":method", ":path", ":scheme"];

/// Returns the match blocks of a rule.
pub(super) fn blocks(
    field: &Field<Vec<Field<raw::istio::HttpMatchRequest>>>,
    head: Head<'_>,
    check: &mut Check<'_>,
) -> Vec<HttpMatch> {
    let entries = scalar::items(field, check);
    let blocks = entries.into_iter().map(|(entry, raw)| {
        let line = check.line(entry.span());
        HttpMatch {
            line,
            ..block(raw, head, check)
        }
    });
    blocks.collect()
}

fn block(raw: &raw::istio::HttpMatchRequest, head: Head<'_>, check: &mut Check<'_>) -> HttpMatch {
    let (gateways, gateway_lines) = gateways::of_match(&raw.gateways, check);
    if !gateways.is_empty() {
        without_effect_beside_gateways(raw, check);
    }
    never_matching(raw, check);
    HttpMatch {
        name: shared::text_or_empty(&raw.name),
        uri: of_present(&raw.uri, Allow::EmptyPrefix, check),
        ignore_uri_case: shared::flag(&raw.ignore_uri_case),
        scheme: of_present(&raw.scheme, Allow::Nothing, check),
        method: of_present(&raw.method, Allow::Nothing, check),
        authority: of_present(&raw.authority, Allow::Nothing, check),
        headers: headers(&raw.headers, Side::With, head, check),
        without_headers: headers(&raw.without_headers, Side::Without, head, check),
        query_params: query_params(&raw.query_params, check),
        port: scalar::port(&raw.port, check),
        source_labels: scalar::labels(&raw.source_labels, check),
        source_namespace: source_namespace(&raw.source_namespace, check),
        gateways,
        gateway_lines,
        stat_prefix: shared::text_or_empty(&raw.stat_prefix),
        line: Default::default(),
    }
}

/// Warns of values that no request has.
fn never_matching(raw: &raw::istio::HttpMatchRequest, check: &mut Check<'_>) {
    let texts = |field: &Field<raw::istio::StringMatch>| -> Vec<(&'static str, String, Span)> {
        let written = field.get().into_iter();
        let written = written.flat_map(|raw| [("exact", &raw.exact), ("prefix", &raw.prefix)]);
        let written =
            written.filter_map(|(name, text)| Some((name, text.get()?.clone(), text.span())));
        written.filter(|(_, text, _)| !text.is_empty()).collect()
    };
    for (name, path, span) in texts(&raw.uri) {
        if !path.starts_with('/') && path != "*" {
            let message = format!("`uri.{name}: {path}` matches no request: paths begin with `/`");
            let help = format!("write `/{path}`");
            check.warning(VS313, span, message).help(help);
        }
    }
    for (name, method, span) in texts(&raw.method) {
        let upper = method.to_ascii_uppercase();
        if method != upper {
            let message = format!(
                "`method.{name}: {method}` matches no usual request: methods are compared with their case"
            );
            check
                .warning(VS314, span, message)
                .help(format!("write `{upper}`"));
        }
    }
}

/// Reports conditions on the proxy that have no effect next to `gateways`, as in Istio.
fn without_effect_beside_gateways(raw: &raw::istio::HttpMatchRequest, check: &mut Check<'_>) {
    let conditions = [
        ("sourceLabels", shared::map_span(&raw.source_labels)),
        ("sourceNamespace", shared::text_span(&raw.source_namespace)),
    ];
    for (name, span) in conditions.into_iter().filter(|(_, span)| !span.is_none()) {
        check
            .warning(
                VS311,
                span,
                format!("`{name}` has no effect beside `gateways`: the block matches without it"),
            )
            .help("remove it, or write a block of its own without `gateways`");
    }
}

/// Header map of a match block: `headers` or `withoutHeaders`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    With,
    Without,
}

fn headers(
    field: &Field<Map<raw::istio::StringMatch>>,
    side: Side,
    head: Head<'_>,
    check: &mut Check<'_>,
) -> Vec<HeaderMatch> {
    let mut found = Vec::new();
    for (name, key, value) in field.get().into_iter().flat_map(Map::iter) {
        let header = header_key(name, key, head, check);
        let matched = if value.is_null() {
            Some(null_header(name, value, side, check))
        } else {
            let allow = if side == Side::Without {
                Allow::StarRegex
            } else {
                Allow::Nothing
            };
            string_match(value, allow, check)
        };
        if let (Some(key_found), Some(value)) = (header, matched) {
            found.push(HeaderMatch {
                key: key_found,
                value,
                line: check.line(key.span()),
            });
        }
    }
    found.shrink_to_fit();
    found
}

fn null_header(
    name: &str,
    value: &Field<raw::istio::StringMatch>,
    side: Side,
    check: &mut Check<'_>,
) -> StringMatch {
    if side == Side::With {
        let message = format!("the match of header `{name}` is null: any value matches");
        check
            .warning(VS051, value.span(), message)
            .help("write `{}`, which says the same");
    }
    StringMatch::Present
}

fn header_key(
    name: &str,
    key: &Field<String>,
    head: Head<'_>,
    check: &mut Check<'_>,
) -> Option<HeaderKey> {
    if name.is_empty() {
        check
            .error(VS049, key.span(), "empty header name")
            .help("write the name of a header, such as `x-user`");
        return None;
    }
    let lower = name.to_ascii_lowercase();
    if lower.starts_with(CLAIMS) {
        return claim(name, key, head, check);
    }
    if scalar::is_header_name(name) || PSEUDO_HEADERS.contains(&lower.as_str()) {
        return Some(HeaderKey::Named(Arc::from(lower)));
    }
    let found = check.error(VS050, key.span(), format!("`{name}` is not a header name"));
    if name.starts_with(':') {
        found.help(format!(
            "the pseudo-headers are {}",
            PSEUDO_HEADERS.join(", ")
        ));
    } else if name.starts_with('@') {
        found.help(format!("JWT claims are written as `{CLAIMS}.name`"));
    } else {
        found.help("write the name of a header, without blanks and colons");
    }
    None
}

/// Parses the path of a claim: `.a.b`, or `[a][b]` if a name has dots.
fn claim(
    name: &str,
    key: &Field<String>,
    head: Head<'_>,
    check: &mut Check<'_>,
) -> Option<HeaderKey> {
    let path = &name[CLAIMS.len()..];
    let parts: Vec<&str> = if let Some(dotted) = path.strip_prefix('.') {
        dotted.split('.').collect()
    } else {
        let inner = path
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        inner.map_or_else(Vec::new, |inner| inner.split("][").collect())
    };
    if parts.is_empty() || parts.iter().any(|part| part.is_empty()) {
        check
            .error(VS050, key.span(), format!("`{name}` does not name a claim"))
            .help(format!(
                "write `{CLAIMS}.name`, or `{CLAIMS}[name]` where the name has dots"
            ));
        return None;
    }
    if !head.gateways_only && !head.delegate {
        check
            .error(
                VS035,
                key.span(),
                format!("claim `{name}` can only be matched at a gateway"),
            )
            .help("name the gateway under `gateways`, and leave out `mesh`");
    }
    Some(HeaderKey::Claim(parts.into_iter().map(Arc::from).collect()))
}

fn query_params(
    field: &Field<Map<raw::istio::StringMatch>>,
    check: &mut Check<'_>,
) -> Vec<QueryMatch> {
    let mut found = Vec::new();
    for (name, key, value) in field.get().into_iter().flat_map(Map::iter) {
        let matched = if value.is_null() {
            Some(StringMatch::Present)
        } else {
            string_match(value, Allow::Nothing, check)
        };
        if let Some(value) = matched {
            found.push(QueryMatch {
                name: Arc::from(name),
                value,
                line: check.line(key.span()),
            });
        }
    }
    found.shrink_to_fit();
    found
}
