//! CORS policies.

use std::sync::Arc;
use std::time::Duration;

use super::string_match::{Allow, string_match};
use crate::diagnostic::codes::istio::{VS087, VS089, VS090, VS092, VS309};
use crate::raw::{self, Field};
use crate::resource::istio::{CorsPolicy, StringMatch, UnmatchedPreflights};
use crate::validate::istio::shared;
use crate::validate::{Check, scalar};

const METHODS: [&str; 9] = [
    "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "CONNECT", "OPTIONS", "TRACE",
];

/// Returns a CORS policy.
pub(super) fn cors_policy(
    field: &Field<raw::istio::CorsPolicy>,
    check: &mut Check<'_>,
) -> Option<CorsPolicy> {
    let raw = field.get()?;
    let unmatched = [
        ("FORWARD", UnmatchedPreflights::Forward),
        ("IGNORE", UnmatchedPreflights::Ignore),
        ("UNSPECIFIED", UnmatchedPreflights::Forward),
    ];
    Some(CorsPolicy {
        allow_origins: origins(raw, check),
        allow_methods: methods(&raw.allow_methods, check),
        allow_headers: header_names(&raw.allow_headers, check),
        expose_headers: header_names(&raw.expose_headers, check),
        max_age: max_age(&raw.max_age, check),
        allow_credentials: shared::flag(&raw.allow_credentials),
        unmatched_preflights: scalar::enum_of(&raw.unmatched_preflights, &unmatched, check)
            .unwrap_or_default(),
        line: check.line(field.span()),
    })
}

fn origins(raw: &raw::istio::CorsPolicy, check: &mut Check<'_>) -> Vec<StringMatch> {
    let old = shared::texts(&raw.allow_origin, check);
    let new = !shared::list(&raw.allow_origins).is_none();
    if !old.is_empty() {
        let what = if new {
            "allowOrigin is ignored beside allowOrigins"
        } else {
            "allowOrigin is deprecated"
        };
        check
            .warning(VS309, raw.allow_origin.span(), what)
            .help("write `allowOrigins: [{exact: ...}]`");
    }
    if !new {
        return old.into_iter().map(StringMatch::Exact).collect();
    }
    let entries = scalar::items(&raw.allow_origins, check);
    entries
        .into_iter()
        .filter_map(|(entry, raw)| origin(entry, raw, check))
        .collect()
}

fn origin(
    entry: &Field<raw::istio::StringMatch>,
    raw: &raw::istio::StringMatch,
    check: &mut Check<'_>,
) -> Option<StringMatch> {
    let members = [&raw.exact, &raw.prefix, &raw.regex];
    if members
        .iter()
        .all(|member| shared::text_span(member).is_none())
    {
        check
            .error(VS087, entry.span(), "empty origin match")
            .help("write `exact: https://example.com`; `exact: \"*\"` allows every origin");
        return None;
    }
    string_match(entry, Allow::EmptyPrefix, check)
}

fn methods(field: &Field<Vec<Field<String>>>, check: &mut Check<'_>) -> Vec<Arc<str>> {
    let mut methods = Vec::new();
    for (entry, method) in scalar::items(field, check) {
        if method != "*" && !METHODS.contains(&method.as_str()) {
            let upper = method.to_ascii_uppercase();
            let found = check.error(
                VS089,
                entry.span(),
                format!("`{method}` is not an HTTP method"),
            );
            if METHODS.contains(&upper.as_str()) {
                found.help(format!("methods are in upper case: write `{upper}`"));
            } else {
                found.help(format!("write one of {}, or `*`", METHODS.join(", ")));
            }
        }
        methods.push(Arc::from(method.as_str()));
    }
    methods
}

fn header_names(field: &Field<Vec<Field<String>>>, check: &mut Check<'_>) -> Vec<Arc<str>> {
    let mut names = Vec::new();
    for (entry, name) in scalar::items(field, check) {
        if name != "*" && !scalar::is_header_name(name) {
            let found = check.error(
                VS090,
                entry.span(),
                format!("`{name}` is not a header name"),
            );
            if name.contains(',') {
                found.help("write each name as an entry of its own");
            } else {
                found.help("write the name of a header, or `*`");
            }
        }
        names.push(Arc::from(name.as_str()));
    }
    names
}

fn max_age(field: &Field<String>, check: &mut Check<'_>) -> Option<Duration> {
    let age = scalar::duration(field, check)?;
    if age.subsec_nanos() != 0 {
        check
            .error(VS092, field.span(), "maxAge must be whole seconds")
            .help("browsers count in seconds: write for example `24h`");
    }
    Some(age)
}
