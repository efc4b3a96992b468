//! Explanations of why a rule matches a request or not: every condition with its wanted and actual value.
//!
//! Decides nothing on its own: each verdict comes from the matcher that traffic uses.

use std::borrow::Cow;

use http::{HeaderMap, Method};

use super::header::HeaderKey;
use super::{Conditions, HeaderMatch, RequestHead, Rule, TextMatch, UriMatch, query};
use crate::pattern::Pattern;

/// One condition of a rule, checked against one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// Field of the resource, such as `headers[end-user].exact`.
    pub field: String,
    /// Wanted text as written; empty for a presence condition.
    pub wanted: String,
    /// Actual value of the request; `None` if it has none.
    pub got: Option<String>,
    /// Whether the condition holds; for `withoutHeaders`, whether it lets the rule match.
    pub held: bool,
    /// Likely mistake, if the condition almost holds.
    pub hint: Option<&'static str>,
}

/// Checks every condition of `rule` against `head`, in the order of the fields in the resource.
///
/// The rule matches if all lines hold; a rule without conditions returns no lines.
pub fn explain(rule: &Rule, head: &RequestHead<'_>) -> Vec<Explained> {
    let mut lines = of_conditions(&rule.conditions, head);
    let mut policy = rule.conditions.of_policy.as_deref();
    while let Some(conditions) = policy {
        let more = of_conditions(conditions, head).into_iter();
        lines.extend(more.map(|line| Explained {
            field: format!("policy {}", line.field),
            ..line
        }));
        policy = conditions.of_policy.as_deref();
    }
    lines
}

fn of_conditions(conditions: &Conditions, head: &RequestHead<'_>) -> Vec<Explained> {
    // every field is named, so that a new condition is not forgotten
    let Conditions {
        uri,
        is_http2,
        scheme,
        method,
        authority,
        headers,
        without_headers,
        query: queries,
        of_policy: _,
    } = conditions;
    let mut lines = Vec::new();
    lines.extend(explain_uri(uri, head.path));
    lines.extend(is_http2.then(|| explain_version(head.is_http2)));
    let texts = [
        ("scheme", scheme, head.scheme),
        ("method", method, head.method.as_str()),
        ("authority", authority, head.authority),
    ];
    for (field, condition, got) in texts {
        if let Some(condition) = condition {
            let held = condition.matches(got.as_bytes());
            lines.push(text_condition(
                field.to_owned(),
                condition,
                Some(got.to_owned()),
                held,
            ));
        }
    }
    for condition in headers {
        let field = format!("headers[{}]", condition.key.as_str());
        lines.push(text_condition(
            field,
            &condition.value,
            header_got(condition, head),
            condition.matches(head),
        ));
    }
    for condition in without_headers {
        let field = format!("withoutHeaders[{}]", condition.key.as_str());
        lines.push(text_condition(
            field,
            &condition.value,
            header_got(condition, head),
            condition.is_absent(head),
        ));
    }
    for condition in queries {
        let field = format!("queryParams[{}]", condition.name);
        let got = query::first_value(head.query, &condition.name).map(str::to_owned);
        lines.push(text_condition(
            field,
            &condition.value,
            got,
            condition.matches(head.query),
        ));
    }
    lines
}

/// Lists every condition of `rule`: the field and the wanted text, as in [`Explained`].
pub fn conditions(rule: &Rule) -> Vec<(String, String)> {
    let any = RequestHead {
        is_http2: false,
        method: &Method::GET,
        scheme: "",
        authority: "",
        host: "",
        path: "/",
        query: None,
        headers: &HeaderMap::new(),
        claims: None,
    };
    let lines = explain(rule, &any).into_iter();
    lines.map(|line| (line.field, line.wanted)).collect()
}

fn explain_version(is_http2: bool) -> Explained {
    Explained {
        field: "httpVersion".to_owned(),
        wanted: "HTTP/2".to_owned(),
        got: Some(if is_http2 { "HTTP/2" } else { "HTTP/1.1" }.to_owned()),
        held: is_http2,
        hint: (!is_http2).then_some("gRPC has a content-type of application/grpc"),
    }
}

fn explain_uri(uri: &UriMatch, path: &str) -> Option<Explained> {
    let (kind, ignore_case) = match uri {
        UriMatch::Any => return None,
        UriMatch::Call(_) => ("call", false),
        UriMatch::Exact { ignore_case, .. } => ("exact", *ignore_case),
        UriMatch::Prefix { ignore_case, .. } => ("prefix", *ignore_case),
        UriMatch::Segments(_) => ("pathPrefix", false),
        UriMatch::Regex(_) => ("regex", false),
    };
    let note = if ignore_case { " (ignoreUriCase)" } else { "" };
    Some(Explained {
        field: format!("uri.{kind}{note}"),
        wanted: uri.wanted().to_owned(),
        got: Some(path.to_owned()),
        held: uri.matches(path.as_bytes()),
        hint: uri_hint(uri, path),
    })
}

/// Describes a condition on a text: what it wants, what the request has, and a hint if both are nearly equal.
fn text_condition(
    field: String,
    condition: &TextMatch,
    got: Option<String>,
    held: bool,
) -> Explained {
    let is_excluded = field.starts_with("withoutHeaders");
    let almost = got.as_deref().filter(|_| !held && !is_excluded);
    Explained {
        hint: almost.and_then(|got| match condition {
            TextMatch::Exact(wanted) => case(wanted, got),
            TextMatch::Prefix(wanted) => case(wanted, got.get(..wanted.len())?),
            TextMatch::Suffix(wanted) => {
                case(wanted, got.get(got.len().checked_sub(wanted.len())?..)?)
            }
            TextMatch::Present => None,
            TextMatch::Regex(wanted) => part(wanted, got),
        }),
        field: format!("{field}.{}", condition.kind()),
        wanted: condition.wanted().to_owned(),
        got,
        held,
    }
}

fn uri_hint(uri: &UriMatch, path: &str) -> Option<&'static str> {
    match uri {
        _ if uri.matches(path.as_bytes()) => None,
        UriMatch::Any | UriMatch::Call(_) => None,
        UriMatch::Exact { value, .. } => case(value, path),
        UriMatch::Prefix { value, .. } => case(value, path.get(..value.len())?),
        UriMatch::Segments(value) => match path.starts_with(&**value) {
            true => Some("a segment goes on: the prefix must end at a slash"),
            false => case(value, path.get(..value.len())?),
        },
        UriMatch::Regex(wanted) => part(wanted, path),
    }
}

/// Hint for a text that would match with different case.
fn case(wanted: &str, got: &str) -> Option<&'static str> {
    let is_it = wanted.eq_ignore_ascii_case(got) && wanted != got;
    is_it.then_some("differs in case only")
}

/// Hint for a text of which only a part matches.
fn part(wanted: &Pattern, got: &str) -> Option<&'static str> {
    let is_part = wanted.matches_part(got.as_bytes());
    is_part.then_some("a part matches, and a regex must match the whole value")
}

/// Values of a header; several lines are separated by `|` if they are matched one by one.
fn header_got(condition: &HeaderMatch, head: &RequestHead<'_>) -> Option<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match &condition.key {
        HeaderKey::Authority | HeaderKey::Host => Some(head.authority.to_owned()),
        HeaderKey::Claim(_, path) => {
            let texts: Vec<&str> = head.claims?.texts(path).collect();
            (!texts.is_empty()).then(|| texts.join(" | "))
        }
        HeaderKey::Method => Some(head.method.as_str().to_owned()),
        HeaderKey::Joined(name) | HeaderKey::Name(name) => {
            let lines: Vec<String> = head
                .headers
                .get_all(name)
                .iter()
                .map(|value| text(value.as_bytes()))
                .collect();
            let is_joined = matches!(condition.key, HeaderKey::Joined(_));
            let separator = if is_joined { "," } else { " | " };
            (!lines.is_empty()).then(|| lines.join(separator))
        }
        HeaderKey::Path => {
            let query = head
                .query
                .map_or(Cow::Borrowed(""), |query| Cow::Owned(format!("?{query}")));
            Some(format!("{}{query}", head.path))
        }
        HeaderKey::Scheme => Some(head.scheme.to_owned()),
    }
}

#[cfg(test)]
mod tests;
