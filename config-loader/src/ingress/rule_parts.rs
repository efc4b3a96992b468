//! Parts of rules of HTTPRoutes.

use std::sync::Arc;

use serde_json::{Value, json};

use super::entries::PathKey;
use super::nginx::{Canary, UrlRedirect};

/// Returns the condition that every path fulfills.
pub(super) fn any_path() -> PathKey {
    PathKey::Prefix(Arc::from(""))
}

/// Returns the rule of a host for paths of no Ingress.
pub(super) fn not_found() -> Value {
    json!({"matches": [{"path": path_match(&any_path())}], "filters": [response(404)]})
}

/// Returns the filter of a response of the proxy itself.
pub(super) fn response(status: u16) -> Value {
    json!({"type": "ExtensionRef", "extensionRef": {
        "group": "strait.io", "kind": "Response", "name": status.to_string(),
    }})
}

/// Returns the match of a path.
pub(super) fn path_match(path: &PathKey) -> Value {
    match path {
        PathKey::Exact(path) => json!({"type": "Exact", "value": &**path}),
        PathKey::Expression(text) => {
            let text = text.strip_prefix('^').unwrap_or(text);
            json!({"type": "RegularExpression", "value": text})
        }
        PathKey::Prefix(path) if path.is_empty() => json!({"type": "PathPrefix", "value": "/"}),
        PathKey::Prefix(path) => json!({"type": "PathPrefix", "value": &**path}),
    }
}

/// Returns the matches of headers that decide about a canary, in their order, each with the decision.
pub(super) fn deciding_headers(canary: &Canary) -> Vec<(Value, bool)> {
    let mut found = Vec::new();
    if let Some(name) = &canary.header {
        let exact = |value: &str| json!({"type": "Exact", "name": &**name, "value": value});
        if let Some(value) = &canary.header_value {
            found.push((exact(value), true));
        } else if let Some(pattern) = &canary.header_pattern {
            let value = format!("(?s:.*)(?:{pattern})(?s:.*)");
            let header = json!({"type": "RegularExpression", "name": &**name, "value": value});
            found.push((header, true));
        } else {
            found.extend([(exact("always"), true), (exact("never"), false)]);
        }
    }
    if let Some(name) = &canary.cookie {
        let name = regex_syntax::escape(name);
        let cookie = |value: &str| {
            let value = format!("(?:.*;\\s*)?{name}={value}(?:\\s*;.*)?");
            json!({"type": "RegularExpression", "name": "cookie", "value": value})
        };
        found.extend([(cookie("always"), true), (cookie("never"), false)]);
    }
    found
}

/// Returns the filter of a redirect to a URL.
pub(super) fn url_redirect(redirect: &UrlRedirect) -> Value {
    let mut written = json!({
        "path": {"type": "ReplaceFullPath", "replaceFullPath": redirect.path},
        "statusCode": redirect.status,
    });
    if let Some(scheme) = redirect.scheme {
        written["scheme"] = scheme.into();
    }
    if let Some(host) = &redirect.host {
        written["hostname"] = host.as_str().into();
    }
    if let Some(port) = redirect.port {
        written["port"] = port.into();
    }
    written
}

/// Returns a new path with its groups as `\1`.
pub(super) fn with_groups(target: &str) -> String {
    let mut text = String::with_capacity(target.len());
    let mut chars = target.chars().peekable();
    while let Some(char) = chars.next() {
        match (char, chars.peek()) {
            ('$', Some(next)) if next.is_ascii_digit() => text.push('\\'),
            ('\\', _) => text.push_str("\\\\"),
            _ => text.push(char),
        }
    }
    text
}

/// Returns a new path without its groups, which are empty for a path that is no expression.
pub(super) fn without_groups(target: &str) -> String {
    let mut text = String::with_capacity(target.len());
    let mut chars = target.chars().peekable();
    while let Some(char) = chars.next() {
        match (char, chars.peek()) {
            ('$', Some(next)) if next.is_ascii_digit() => _ = chars.next(),
            _ => text.push(char),
        }
    }
    match text.starts_with('/') {
        true => text,
        false => format!("/{text}"),
    }
}
