//! CORS policies.

use std::sync::Arc;
use std::time::Duration;

use super::matches::METHODS;
use super::shared::{NAME_MAX, entries, limit_text, unique};
use crate::diagnostic::codes::gateway_api::GA130;
use crate::raw::Field;
use crate::raw::gateway_api as raw;
use crate::resource::gateway_api::{Cors, CorsOrigin, OriginHost};
use crate::resource::istio::Scheme;
use crate::span::Span;
use crate::validate::{Check, scalar};

/// Origins, headers and exposed headers.
const ENTRIES_MAX: usize = 64;
const MAX_AGE_DEFAULT: u32 = 5;

/// Returns the CORS policy at `span`.
pub(super) fn cors(raw: &raw::CorsFilter, span: Span, check: &mut Check<'_>) -> Cors {
    let mut allow_origins = Vec::new();
    for (entry, text) in texts(&raw.allow_origins, "allowOrigins", ENTRIES_MAX, check) {
        let parsed = origin(text);
        if parsed.is_none() {
            let found = check.error(GA130, entry.span(), format!("`{text}` is not an origin"));
            found.help("write `*`, or a scheme and a host such as `https://*.example.com`");
        }
        allow_origins.extend(parsed);
    }
    let is_method = |text: &str| METHODS.iter().any(|(name, ())| *name == text);
    Cors {
        allow_origins,
        allow_credentials: raw.allow_credentials.get().copied().unwrap_or(false),
        allow_methods: names(
            &raw.allow_methods,
            "allowMethods",
            METHODS.len(),
            is_method,
            check,
        ),
        allow_headers: names(
            &raw.allow_headers,
            "allowHeaders",
            ENTRIES_MAX,
            scalar::is_header_name,
            check,
        ),
        expose_headers: exposed(&raw.expose_headers, check),
        max_age: max_age(&raw.max_age, check),
        line: check.line(span),
    }
}

/// Checks that the entries of a list are distinct, and not too long.
fn distinct(texts: &[(&Field<String>, &String)], check: &mut Check<'_>) {
    unique(texts.iter().map(|(entry, _)| *entry), GA130, check);
    for (entry, _) in texts {
        limit_text(entry, NAME_MAX, check);
    }
}

/// Returns the texts of a list in which `*` is the only entry.
fn texts<'f>(
    field: &'f Field<Vec<Field<String>>>,
    name: &str,
    most: usize,
    check: &mut Check<'_>,
) -> Vec<(&'f Field<String>, &'f String)> {
    let texts = entries(field, name, field.span(), 0..=most, check);
    distinct(&texts, check);
    let star = texts.iter().find(|(_, text)| *text == "*");
    if let Some((entry, _)) = star.filter(|_| texts.len() > 1) {
        let message = format!("`{name}` has `*` and other entries");
        let found = check.error(GA130, entry.span(), message);
        found.help("remove `*`, or the others");
    }
    texts
}

fn names(
    field: &Field<Vec<Field<String>>>,
    name: &str,
    most: usize,
    is_name: impl Fn(&str) -> bool,
    check: &mut Check<'_>,
) -> Vec<Arc<str>> {
    let mut names = Vec::new();
    for (entry, text) in texts(field, name, most, check) {
        if text != "*" && !is_name(text) {
            let message = format!("`{text}` cannot be an entry of `{name}`");
            let found = check.error(GA130, entry.span(), message);
            found.help("write methods in upper case, and names of headers without blanks");
        }
        names.push(Arc::from(text.as_str()));
    }
    names
}

/// Returns the response headers that scripts may read. Here, `*` may have other entries beside it.
fn exposed(field: &Field<Vec<Field<String>>>, check: &mut Check<'_>) -> Vec<Arc<str>> {
    let listed = entries(field, "exposeHeaders", field.span(), 0..=ENTRIES_MAX, check);
    distinct(&listed, check);
    let names = listed.into_iter().map(|(entry, text)| {
        if !scalar::is_header_name(text) {
            let message = format!("`{text}` cannot be an entry of `exposeHeaders`");
            let found = check.error(GA130, entry.span(), message);
            found.help("write names of headers without blanks");
        }
        Arc::from(text.as_str())
    });
    names.collect()
}

fn max_age(field: &Field<i64>, check: &mut Check<'_>) -> Duration {
    let most = i64::from(i32::MAX);
    let seconds = scalar::in_range(field, 1..=most, "maxAge", GA130, check);
    let seconds = seconds.and_then(|seconds| u32::try_from(seconds).ok());
    Duration::from_secs(seconds.unwrap_or(MAX_AGE_DEFAULT).into())
}

/// Parses an origin: `*`, or a scheme, a host and a port.
fn origin(text: &str) -> Option<CorsOrigin> {
    if text == "*" {
        return Some(CorsOrigin::Any);
    }
    let (scheme, authority) = text.split_once("://")?;
    let (scheme, default) = match scheme {
        "http" => (Scheme::Http, 80),
        "https" => (Scheme::Https, 443),
        _ => return None,
    };
    let (host, port) = match authority.split_once(':') {
        Some((host, port)) => (host, port.parse().ok().filter(|port| *port > 0)?),
        None => (authority, default),
    };
    let host = host.to_ascii_lowercase();
    let is_label = |label: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && label.bytes().all(is_plain)
    };
    let host = match host.strip_prefix("*.") {
        _ if host == "*" => OriginHost::Any,
        Some(domain) if domain.split('.').all(is_label) => OriginHost::Under(Arc::from(domain)),
        None if host.split('.').all(is_label) => OriginHost::Exact(Arc::from(host)),
        _ => return None,
    };
    Some(CorsOrigin::Of(scheme, host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_have_a_scheme_a_host_and_a_port() {
        let of = |scheme, host, port| Some(CorsOrigin::Of(scheme, host, port));
        let exact = |host: &str| OriginHost::Exact(host.into());
        for (text, expected) in [
            ("*", Some(CorsOrigin::Any)),
            (
                "https://a.example",
                of(Scheme::Https, exact("a.example"), 443),
            ),
            (
                "http://A.example:8080",
                of(Scheme::Http, exact("a.example"), 8080),
            ),
            ("http://10.0.0.1", of(Scheme::Http, exact("10.0.0.1"), 80)),
            (
                "https://*.a.example",
                of(Scheme::Https, OriginHost::Under("a.example".into()), 443),
            ),
            ("https://*", of(Scheme::Https, OriginHost::Any, 443)),
            ("https://*:1", of(Scheme::Https, OriginHost::Any, 1)),
            ("ftp://a", None),
            ("https://", None),
            ("https://a.*.b", None),
            ("https://a/", None),
            ("https://a:0", None),
            ("https://a:99999", None),
            ("a.example", None),
        ] {
            assert_eq!(origin(text), expected, "{text}");
        }
    }
}
