//! Matches of rules.

use std::sync::Arc;

use super::extensions::has_prefix_expressions;
use super::shared::{entries, limit_text, pattern, required_text};
use crate::diagnostic::codes::gateway_api::{GA119, GA121, GA132};
use crate::kind::Kind;
use crate::raw::Field;
use crate::raw::gateway_api as raw;
use crate::resource::gateway_api::{GrpcMatch, HttpMatch, PathMatch};
use crate::resource::istio::{HeaderKey, HeaderMatch, Pattern, QueryMatch, StringMatch};
use crate::span::Span;
use crate::validate::{Check, scalar};

/// Headers, and query parameters, of a match.
const KEYS_MAX: usize = 16;
/// Characters of a header's name, of its value, and of a query parameter's value.
const KEY_MAX: usize = 256;
const HEADER_VALUE_MAX: usize = 4096;
const QUERY_VALUE_MAX: usize = 1024;
/// Characters of a service or a method of gRPC.
const GRPC_NAME_MAX: usize = 1024;
/// Bytes of a path.
const PATH_BYTES_MAX: usize = 1024;

pub(super) const METHODS: [(&str, ()); 9] = [
    ("GET", ()),
    ("HEAD", ()),
    ("POST", ()),
    ("PUT", ()),
    ("DELETE", ()),
    ("CONNECT", ()),
    ("OPTIONS", ()),
    ("TRACE", ()),
    ("PATCH", ()),
];

/// Way to compare a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compare {
    Exact,
    Prefix,
    Regex,
}

const VALUE_TYPES: [(&str, Compare); 2] = [
    ("Exact", Compare::Exact),
    ("RegularExpression", Compare::Regex),
];
const PATH_TYPES: [(&str, Compare); 3] = [
    ("Exact", Compare::Exact),
    ("PathPrefix", Compare::Prefix),
    ("RegularExpression", Compare::Regex),
];

/// Returns a match of an HTTPRoute; `None` if it is wrong.
pub(super) fn http_match(
    raw: &raw::HttpMatch,
    span: Span,
    check: &mut Check<'_>,
) -> Option<HttpMatch> {
    let path = path_match(&raw.path, check);
    let headers = headers(&raw.headers, check);
    let mut query_params: Vec<QueryMatch> = Vec::new();
    for key in keys(&raw.query_params, "queryParams", check) {
        query_params.push(QueryMatch {
            name: Arc::from(key.name),
            value: key.value,
            line: check.line(key.span),
        });
    }
    scalar::enum_of(&raw.method, &METHODS, check);
    Some(HttpMatch {
        path: path?,
        method: raw.method.get().map(|method| Arc::from(method.as_str())),
        headers,
        query_params,
        line: check.line(span),
    })
}

/// Whether a rule has one match, which it has without any as well, and its path is a prefix.
pub(super) fn is_one_prefix(field: &Field<Vec<Field<raw::HttpMatch>>>) -> bool {
    let Some(matches) = field.get() else {
        return true;
    };
    let path = |one: &Field<raw::HttpMatch>| one.get()?.path.get()?.match_type.get().cloned();
    let is_prefix = |path: Option<String>| path.is_none_or(|path| path == "PathPrefix");
    matches.len() == 1 && matches.iter().map(path).all(is_prefix)
}

fn path_match(field: &Field<raw::PathMatch>, check: &mut Check<'_>) -> Option<PathMatch> {
    let raw = match field.get() {
        Some(raw) => raw,
        None => return (!field.is_invalid()).then(|| PathMatch::Segments(Arc::from(""))),
    };
    let compare = match raw.match_type.is_set() {
        true => scalar::enum_of(&raw.match_type, &PATH_TYPES, check)?,
        false => Compare::Prefix,
    };
    if compare == Compare::Regex && raw.value.is_set() && has_prefix_expressions(check) {
        // any path that begins with a match, without groups of its own
        let whole = raw.value.map(|text| format!("(?i)(?:{text})(?s:.*)"));
        let regex = pattern(&whole, check)?.regex;
        let source = Arc::from(raw.value.get()?.as_str());
        return Some(PathMatch::Regex(Pattern { source, regex }));
    }
    if compare == Compare::Regex && raw.value.is_set() {
        return pattern(&raw.value, check).map(PathMatch::Regex);
    }
    let path = raw.value.get().map_or("/", String::as_str);
    if let Some(help) = path_problem(path) {
        let message = format!("`{path}` is not a path that a request can have");
        check.error(GA119, raw.value.span(), message).help(help);
    }
    Some(match compare {
        Compare::Exact => PathMatch::Exact(Arc::from(path)),
        _ => PathMatch::Segments(Arc::from(path.strip_suffix('/').unwrap_or(path))),
    })
}

/// Returns how to write a path, if it is not absolute and normalized.
fn path_problem(path: &str) -> Option<String> {
    let contains = ["//", "/./", "/../", "%2f", "%2F", "#"];
    let mut parts = contains.into_iter().filter(|part| path.contains(part));
    let ends = ["/..", "/."].into_iter().find(|end| path.ends_with(end));
    if !path.starts_with('/') {
        Some(format!("begin it with `/`: write `/{path}`"))
    } else if let Some(part) = parts.next().or(ends) {
        Some(format!(
            "write it without `{part}`: paths of requests are normalized"
        ))
    } else if path.len() > PATH_BYTES_MAX {
        Some(format!("use at most {PATH_BYTES_MAX} bytes"))
    } else if !has_path_characters(path) {
        Some(
            "percent-encode what is not a letter, a digit or one of `-/._~!$&'()*+,;=:@`"
                .to_owned(),
        )
    } else {
        None
    }
}

/// Whether a path has only characters of RFC 3986 and percent-encoded ones.
fn has_path_characters(path: &str) -> bool {
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        let is_good = match byte {
            b'%' => {
                let two = [bytes.next(), bytes.next()];
                two.iter()
                    .all(|digit| digit.is_some_and(|digit| digit.is_ascii_hexdigit()))
            }
            _ => byte.is_ascii_alphanumeric() || b"-/._~!$&'()*+,;=:@".contains(&byte),
        };
        if !is_good {
            return false;
        }
    }
    true
}

/// Condition on the value of a key.
struct KeyValue<'f> {
    name: &'f str,
    value: StringMatch,
    span: Span,
}

/// Returns the conditions on keys, each key once.
fn keys<'f>(
    field: &'f Field<Vec<Field<raw::KeyMatch>>>,
    what: &str,
    check: &mut Check<'_>,
) -> Vec<KeyValue<'f>> {
    let mut keys: Vec<KeyValue<'f>> = Vec::new();
    for (entry, raw) in entries(field, what, field.span(), 0..=KEYS_MAX, check) {
        let compare = match raw.match_type.is_set() {
            true => scalar::enum_of(&raw.match_type, &VALUE_TYPES, check),
            false => Some(Compare::Exact),
        };
        let first = keys.iter().map(|key| (key.name, key.span));
        let name = key_name(&raw.name, entry.span(), first, check);
        match what {
            "headers" if check.kind() == Kind::HTTPRoute => header_value(&raw.value, check),
            "headers" => limit_text(&raw.value, HEADER_VALUE_MAX, check),
            _ => limit_text(&raw.value, QUERY_VALUE_MAX, check),
        }
        let value = match compare {
            Some(Compare::Regex) if raw.value.is_set() => {
                pattern(&raw.value, check).map(StringMatch::Regex)
            }
            _ => required_text(&raw.value, entry.span(), "value", check).map(StringMatch::Exact),
        };
        if let (Some(name), Some(value)) = (name, value) {
            keys.push(KeyValue {
                name,
                value,
                span: entry.span(),
            });
        }
    }
    keys
}

/// Checks a value of a header: printable ASCII, with single blanks inside.
pub(super) fn header_value(field: &Field<String>, check: &mut Check<'_>) {
    limit_text(field, HEADER_VALUE_MAX, check);
    let text = field.get().map_or("", String::as_str);
    let mut words = text.split([' ', '\t']);
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_graphic());
    if !text.is_empty() && !words.all(is_word) {
        let message = "the value has characters that the API does not allow";
        let found = check.error(GA121, field.span(), message);
        found.help("write printable ASCII, with single blanks between words");
    }
}

/// Returns a name that its list has once. `earlier` are the names of the list before it, with their spans.
pub(super) fn key_name<'f>(
    field: &'f Field<String>,
    span: Span,
    mut earlier: impl Iterator<Item = (&'f str, Span)>,
    check: &mut Check<'_>,
) -> Option<&'f str> {
    required_text(field, span, "name", check)?;
    limit_text(field, KEY_MAX, check);
    let name = field.get()?;
    if !scalar::is_header_name(name) {
        let message = format!("`{name}` is not a name of a header or a query parameter");
        let found = check.error(GA121, field.span(), message);
        found.help("a name has letters, digits, `-`, `_` and a few other signs, and no blanks");
    } else if let Some((_, first)) = earlier.find(|(known, _)| known == name) {
        let location = check.location(first);
        let found = check.error(GA121, field.span(), format!("`{name}` is listed twice"));
        found.help("remove one of the entries");
        found.related(location, "first written here");
    } else {
        return Some(name);
    }
    None
}

/// Returns conditions on headers. As the API has it, only the first entry of names that differ in case counts.
fn headers(field: &Field<Vec<Field<raw::KeyMatch>>>, check: &mut Check<'_>) -> Vec<HeaderMatch> {
    let mut headers: Vec<HeaderMatch> = Vec::new();
    for key in keys(field, "headers", check) {
        let name = HeaderKey::Named(Arc::from(key.name.to_ascii_lowercase()));
        if headers.iter().all(|known| known.key != name) {
            headers.push(HeaderMatch {
                key: name,
                value: key.value,
                line: check.line(key.span),
            });
        }
    }
    headers
}

/// Returns a match of a GRPCRoute; `None` if it is wrong.
pub(super) fn grpc_match(
    raw: &raw::GrpcMatch,
    span: Span,
    check: &mut Check<'_>,
) -> Option<GrpcMatch> {
    let (mut service, mut method) = (None, None);
    if let Some(written) = raw.method.get() {
        let compare = match written.match_type.is_set() {
            true => scalar::enum_of(&written.match_type, &VALUE_TYPES, check)?,
            false => Compare::Exact,
        };
        if !written.service.is_set() && !written.method.is_set() {
            let found = check.error(
                GA132,
                raw.method.span(),
                "the match has no service or method",
            );
            found.help("write `service`, `method` or both");
        }
        service = grpc_name(&written.service, compare, is_service, check);
        method = grpc_name(&written.method, compare, is_identifier, check);
    }
    Some(GrpcMatch {
        service,
        method,
        headers: headers(&raw.headers, check),
        line: check.line(span),
    })
}

fn grpc_name(
    field: &Field<String>,
    compare: Compare,
    is_name: fn(&str) -> bool,
    check: &mut Check<'_>,
) -> Option<StringMatch> {
    limit_text(field, GRPC_NAME_MAX, check);
    let name = field.get()?;
    if compare == Compare::Regex {
        return pattern(field, check).map(StringMatch::Regex);
    }
    if !is_name(name) {
        let message = format!("`{name}` is not a name that gRPC has");
        let found = check.error(GA132, field.span(), message);
        found.help("write a service such as `package.Service`, and a method such as `Method`");
    }
    Some(StringMatch::Exact(Arc::from(name.as_str())))
}

/// Whether `text` is `^\.?[a-z_][a-z_0-9]*(\.[a-z_][a-z_0-9]*)*$`, without case.
fn is_service(text: &str) -> bool {
    let name = text.strip_prefix('.').unwrap_or(text);
    name.split('.').all(is_identifier)
}

/// Whether `text` is `^[A-Za-z_][A-Za-z_0-9]*$`.
fn is_identifier(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.bytes().all(is_inner)
        && text
            .bytes()
            .next()
            .is_some_and(|byte| !byte.is_ascii_digit())
}
