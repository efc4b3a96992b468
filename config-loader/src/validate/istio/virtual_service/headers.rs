//! Header operations of a rule or a destination.

use std::sync::Arc;

use crate::diagnostic::codes::istio::{
    VS060, VS061, VS062, VS063, VS064, VS065, VS066, VS302, VS312,
};
use crate::diagnostic::suggest;
use crate::raw::{self, Field, Map};
use crate::resource::istio::{HeaderOperations, Headers};
use crate::span::Span;
use crate::validate::Check;
use crate::validate::istio::shared;
use crate::validate::scalar::{
    ABSENT_OPERATORS, HeaderValueProblem, OPERATORS, OperatorProblem, header_value_problem,
    is_header_name, items, operator_problems,
};

/// Help text about the characters of a header name.
const NAME_FORM: &str =
    "a header name has letters, digits, `-`, `_` and a few other signs, and no blanks";

/// Message whose headers are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    Request,
    Response,
}

/// Returns the header operations.
pub(super) fn headers(
    field: &Field<raw::istio::Headers>,
    check: &mut Check<'_>,
) -> Option<Headers> {
    let raw = field.get()?;
    Some(Headers {
        request: operations(&raw.request, Message::Request, check),
        response: operations(&raw.response, Message::Response, check),
        line: check.line(field.span()),
    })
}

/// Reports an authority that is set in more than one of `places`.
pub(super) fn set_once(places: &[(String, Span)], check: &mut Check<'_>) {
    if let [(first, first_span), (second, second_span), ..] = places {
        let location = check.location(*first_span);
        check
            .error(
                VS066,
                *second_span,
                format!("the authority is set twice: `{first}` and `{second}`"),
            )
            .help("keep one of them")
            .related(location, "first set here");
    }
}

/// Whether a header name refers to the authority.
pub(super) fn is_authority(name: &str) -> bool {
    name.eq_ignore_ascii_case("host") || name.eq_ignore_ascii_case(":authority")
}

fn operations(
    field: &Field<raw::istio::HeaderOperations>,
    message: Message,
    check: &mut Check<'_>,
) -> HeaderOperations {
    let Some(raw) = field.get() else {
        return HeaderOperations::default();
    };
    let mut set = values(&raw.set, message, check);
    let mut add = values(&raw.add, message, check);
    let mut authority = None;
    for list in [&mut set, &mut add] {
        list.retain(|(name, value)| {
            let keep = !is_authority(name);
            if !keep && authority.is_none() {
                authority = Some(Arc::clone(value));
            }
            keep
        });
    }
    HeaderOperations {
        authority: authority.filter(|_| message == Message::Request),
        set,
        add,
        remove: removals(&raw.remove, check),
    }
}

fn values(
    field: &Field<Map<String>>,
    message: Message,
    check: &mut Check<'_>,
) -> Vec<(Arc<str>, Arc<str>)> {
    let mut list = Vec::new();
    for (name, key, value) in field.get().into_iter().flat_map(Map::iter) {
        let text = value.get().map_or("", String::as_str);
        if name_to_set(name, key.span(), message, check) {
            value_is_good(name, text, value.span(), check);
        }
        list.push((name, text));
    }
    // Keys are applied in sorted order, as they were written.
    list.sort_unstable();
    let lower =
        |(name, text): (&str, &str)| (Arc::from(name.to_ascii_lowercase()), Arc::from(text));
    list.into_iter().map(lower).collect()
}

fn name_to_set(name: &str, span: Span, message: Message, check: &mut Check<'_>) -> bool {
    if name.is_empty() {
        check
            .error(VS060, span, "empty header name")
            .help(NAME_FORM);
    } else if message == Message::Response && (is_authority(name) || name.starts_with(':')) {
        check
            .error(
                VS062,
                span,
                format!("`{name}` cannot be changed in a response"),
            )
            .help("a response has no Host, and its status is that of the upstream: remove this");
    } else if message == Message::Request && is_authority(name) {
        return true;
    } else if name.starts_with(':') {
        let found = check.error(VS061, span, format!("`{name}` cannot be set"));
        found.help(match name {
            ":path" => "to change the path, write `rewrite`",
            _ => "of the pseudo-headers only `:authority` can be set",
        });
    } else if !is_header_name(name) {
        check
            .error(VS060, span, format!("`{name}` is not a header name"))
            .help(NAME_FORM);
    } else {
        return true;
    }
    false
}

fn removals(field: &Field<Vec<Field<String>>>, check: &mut Check<'_>) -> Vec<Arc<str>> {
    let mut names = Vec::new();
    for (entry, name) in items(field, check) {
        let span = entry.span();
        if name.is_empty() {
            check
                .error(VS060, span, "empty header name")
                .help(NAME_FORM);
        } else if is_authority(name) || name.starts_with(':') {
            check.error(VS062, span, format!("`{name}` cannot be removed")).help("every request has it: to change the host, set `:authority` or write `rewrite.authority`");
        } else if !is_header_name(name) {
            check
                .error(VS060, span, format!("`{name}` is not a header name"))
                .help(NAME_FORM);
        }
        names.push(Arc::from(name.to_ascii_lowercase()));
    }
    names
}

fn value_is_good(name: &str, text: &str, span: Span, check: &mut Check<'_>) {
    match header_value_problem(text) {
        Some(HeaderValueProblem::Control) => {
            check
                .error(
                    VS063,
                    span,
                    format!("the value of `{name}` has control characters"),
                )
                .help("write the value on one line; of control characters only TAB is allowed");
        }
        Some(HeaderValueProblem::OpenPercent) => {
            check
                .error(
                    VS064,
                    span,
                    format!("the value of `{name}` has an open `%`"),
                )
                .help("write `%%` for a percent sign");
        }
        Some(HeaderValueProblem::OpenOperator(operator)) => {
            check
                .error(VS065, span, format!("operator `{operator}` is not closed"))
                .help("close its quotes, brackets and parentheses, and end it with `%`");
        }
        None => known_operators(text, span, check),
    }
}

/// Reports unknown operators. `text` is well-formed.
fn known_operators(text: &str, span: Span, check: &mut Check<'_>) {
    for problem in operator_problems(text) {
        match problem {
            OperatorProblem::Absent(name) => {
                check
                    .warning(
                        VS312,
                        span,
                        format!(
                            "operator `{name}` of Envoy has no value here: `%{name}%` is empty"
                        ),
                    )
                    .help("docs/header-values.md lists the operators that have values");
            }
            OperatorProblem::Unknown(name) => {
                let found = check.error(VS302, span, format!("`%{name}%` is not a known operator"));
                let known = OPERATORS.into_iter().chain(ABSENT_OPERATORS);
                match suggest::nearest(name, known) {
                    Some(near) => found.help(format!("did you mean `%{near}%`?")),
                    None => found.help("write `%%` for a percent sign"),
                };
            }
            OperatorProblem::Argument(name, wrong, help) => {
                check
                    .error(VS302, span, format!("operator `{name}` {wrong}"))
                    .help(help);
            }
        }
    }
}

/// Adds the spans at which request header operations set the authority.
pub(super) fn authority_places(
    field: &Field<raw::istio::Headers>,
    places: &mut Vec<(String, Span)>,
) {
    let Some(request) = field.get().and_then(|headers| headers.request.get()) else {
        return;
    };
    for (name, map) in [("set", &request.set), ("add", &request.add)] {
        for (key, key_field, _) in map.get().into_iter().flat_map(Map::iter) {
            if is_authority(key) {
                places.push((format!("headers.request.{name}.{key}"), key_field.span()));
            }
        }
    }
}

/// Adds the span at which a rewrite sets the authority.
pub(super) fn rewrite_authority_place(
    field: &Field<raw::istio::HttpRewrite>,
    places: &mut Vec<(String, Span)>,
) {
    if let Some(rewrite) = field.get() {
        let span = shared::text_span(&rewrite.authority);
        if !span.is_none() {
            places.push(("rewrite.authority".to_owned(), span));
        }
    }
}
