//! Filters of rules and backends.

use std::sync::Arc;

use super::cors::cors;
use super::matches::{header_value, key_name};
use super::reference::{backend_ref, object};
use super::shared::{entries, host, limit_text, missing, required_text};
use crate::diagnostic::codes::gateway_api::{
    GA041, GA045, GA119, GA121, GA123, GA124, GA125, GA127, GA136,
};
use crate::kind::Kind;
use crate::raw::Field;
use crate::raw::gateway_api as raw;
use crate::resource::Percent;
use crate::resource::gateway_api::{
    Filter, HeaderEdits, PathModifier, Redirect, RequestMirror, Respond, Rewrite, Unusable,
};
use crate::resource::istio::Scheme;
use crate::span::Span;
use crate::validate::{Check, api, scalar};

/// Filters of a rule or a backend.
const FILTERS_MAX: usize = 16;
/// Entries of each list of headers.
const HEADERS_MAX: usize = 16;
/// Characters of a path that replaces another one.
const PATH_MAX: usize = 1024;
const STATUS_DEFAULT: u16 = 302;
const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];
/// Types of filters that may be there several times.
const REPEATABLE: [&str; 2] = ["ExtensionRef", "RequestMirror"];
/// Types of filters that a GRPCRoute has.
const OF_GRPC: [&str; 4] = [
    "ExtensionRef",
    "RequestHeaderModifier",
    "RequestMirror",
    "ResponseHeaderModifier",
];

/// API group of filters of Strait itself.
const OWN_GROUP: &str = "strait.io";

/// Type of a filter, the field that it names, and the span of this field, [`Span::NONE`] if it is not set.
type Member = (&'static str, &'static str, Span);

/// Returns the filters of a rule or a backend, in their order.
pub(super) fn filters<F>(field: &Field<Vec<Field<F>>>, check: &mut Check<'_>) -> Vec<Filter>
where
    for<'f> raw::Filter: From<&'f F>,
{
    let mut filters = Vec::new();
    let mut seen: Vec<(Arc<str>, Span)> = Vec::new();
    for (entry, raw) in entries(field, "filters", field.span(), 0..=FILTERS_MAX, check) {
        let (raw, span) = (raw::Filter::from(raw), entry.span());
        let Some(of) = required_text(&raw.filter_type, span, "type", check) else {
            continue;
        };
        let first = seen.iter().find(|(known, _)| *known == of);
        if let Some((_, first)) = first.filter(|_| !REPEATABLE.contains(&&*of)) {
            let location = check.location(*first);
            let found = check.error(GA124, span, format!("there are two filters of type `{of}`"));
            found.help("write one filter that does both");
            found.related(location, "the first one");
        }
        filters.extend(filter(&raw, &of, span, check));
        seen.push((of, span));
    }
    let of_type = |name: &str| seen.iter().find(|(of, _)| **of == *name);
    if let (Some(_), Some((_, span))) = (of_type("RequestRedirect"), of_type("URLRewrite")) {
        let message = "a redirect and a rewrite are in the same list";
        let found = check.error(GA123, *span, message);
        found.help("remove the rewrite: the redirect has `hostname` and `path` of its own");
    }
    filters
}

/// Returns the filter of type `of`; `None` if it is wrong.
fn filter(raw: &raw::Filter, of: &Arc<str>, span: Span, check: &mut Check<'_>) -> Option<Filter> {
    let is_grpc = check.kind() == Kind::GRPCRoute;
    let members = members(raw).into_iter();
    let members: Vec<Member> = members
        .filter(|(name, ..)| !is_grpc || OF_GRPC.contains(name))
        .collect();
    let is_set = is_its_member(&members, of, span, check);
    let is_known = members.iter().any(|(name, ..)| **name == **of);
    if !is_set && is_known {
        return None;
    }
    let line = check.line(span);
    Some(match &**of {
        "RequestHeaderModifier" => {
            Filter::RequestHeaders(edits(&raw.request_header_modifier, true, check)?)
        }
        "ResponseHeaderModifier" => {
            Filter::ResponseHeaders(edits(&raw.response_header_modifier, false, check)?)
        }
        "RequestMirror" => Filter::Mirror(mirror(&raw.request_mirror, check)?),
        "RequestRedirect" if is_known => Filter::Redirect(redirect(&raw.request_redirect, check)?),
        "URLRewrite" if is_known => {
            let rewrite = raw.url_rewrite.get()?;
            Filter::Rewrite(Rewrite {
                hostname: host(&rewrite.hostname, false, check),
                path: path_modifier(&rewrite.path, check),
                line,
            })
        }
        "CORS" if is_known => Filter::Cors(Box::new(cors(raw.cors.get()?, raw.cors.span(), check))),
        _ => {
            if let Some(extension) = raw.extension_ref.get() {
                let span = raw.extension_ref.span();
                let found = object(extension.into(), None, span, check);
                let is_response = found.filter(|one| !is_grpc && one.is(OWN_GROUP, "Response"));
                if let Some(status) = is_response.and_then(|one| status(&one.name)) {
                    return Some(Filter::Respond(Respond { status, line }));
                }
            }
            let message = format!(
                "filters of type `{of}` are not supported: requests get a response with status 500"
            );
            let found = check.warning(GA041, raw.filter_type.span(), message);
            found.help("remove the filter, if requests may be served without it");
            let filter_type = Arc::clone(of);
            Filter::Unusable(Unusable { filter_type, line })
        }
    })
}

/// Returns the status of a response that is named by it.
fn status(name: &str) -> Option<u16> {
    let status = name.parse().ok();
    status.filter(|status| (200..=599).contains(status) && name.len() == 3)
}

fn members(raw: &raw::Filter) -> [Member; 8] {
    fn set<T>(field: &Field<T>) -> Span {
        match field.is_set() {
            true => field.span(),
            false => Span::NONE,
        }
    }
    [
        ("CORS", "cors", set(&raw.cors)),
        ("ExtensionRef", "extensionRef", set(&raw.extension_ref)),
        ("ExternalAuth", "externalAuth", set(&raw.external_auth)),
        (
            "RequestHeaderModifier",
            "requestHeaderModifier",
            set(&raw.request_header_modifier),
        ),
        ("RequestMirror", "requestMirror", set(&raw.request_mirror)),
        (
            "RequestRedirect",
            "requestRedirect",
            set(&raw.request_redirect),
        ),
        (
            "ResponseHeaderModifier",
            "responseHeaderModifier",
            set(&raw.response_header_modifier),
        ),
        ("URLRewrite", "urlRewrite", set(&raw.url_rewrite)),
    ]
}

/// Checks that of `members` the one of type `of` is set, if there is one, and no other. Returns whether it is.
pub(super) fn is_its_member(
    members: &[Member],
    of: &str,
    parent: Span,
    check: &mut Check<'_>,
) -> bool {
    let mut is_set = false;
    for (name, field, span) in members {
        if *name == of {
            is_set = !span.is_none();
            if !is_set {
                let found = check.error(GA125, parent, format!("type `{of}` needs `{field}`"));
                found.help(format!(
                    "write `{field}`, or the type of the field that is written"
                ));
            }
        } else if !span.is_none() {
            let found = check.error(GA125, *span, format!("`{field}` is not of type `{of}`"));
            found.help(format!("remove it, or write `type: {name}`"));
        }
    }
    is_set
}

/// Returns edits of the headers of a request or a response. Of `Host`, only that of a request is set.
fn edits(
    field: &Field<raw::HeaderFilter>,
    of_request: bool,
    check: &mut Check<'_>,
) -> Option<HeaderEdits> {
    let raw = field.get()?;
    let mut set: Vec<(Arc<str>, Arc<str>)> = Vec::new();
    for (name, value) in values(&raw.set, "set", check) {
        // as the API has it, only the first one of names that differ in case counts
        if set.iter().all(|(known, _)| *known != name) {
            set.push((name, value));
        }
    }
    let removed = entries(
        &raw.remove,
        "remove",
        raw.remove.span(),
        0..=HEADERS_MAX,
        check,
    );
    let mut remove: Vec<Arc<str>> = Vec::new();
    for (entry, name) in removed {
        if !scalar::is_header_name(name) {
            let message = format!("`{name}` is not a name of a header");
            let found = check.error(GA121, entry.span(), message);
            found.help("a name has letters, digits, `-`, `_` and a few other signs, and no blanks");
        }
        let name = Arc::from(name.to_ascii_lowercase());
        if is_host(&name) {
            ignored_host("a request cannot go without `Host`", entry.span(), check);
            continue;
        }
        if remove.contains(&name) {
            let found = check.error(GA121, entry.span(), format!("`{name}` is listed twice"));
            found.help("remove one of the entries");
        }
        remove.push(name);
    }
    let mut add = values(&raw.add, "add", check);
    if !of_request && set.iter().chain(&add).any(|(name, _)| is_host(name)) {
        ignored_host("a response has no `Host`", field.span(), check);
        set.retain(|(name, _)| !is_host(name));
        add.retain(|(name, _)| !is_host(name));
    }
    Some(HeaderEdits {
        set,
        add,
        remove,
        line: check.line(field.span()),
    })
}

fn is_host(name: &str) -> bool {
    name == "host"
}

/// Reports an edit of `Host` that has no effect. The API accepts it, so that the route has to serve.
fn ignored_host(why: &str, span: Span, check: &mut Check<'_>) {
    let found = check.warning(GA045, span, format!("{why}: this edit has no effect"));
    found.help("remove the entry; to change the host of requests, set `Host` or write a filter URLRewrite with `hostname`");
}

fn values(
    field: &Field<Vec<Field<raw::HeaderValue>>>,
    what: &str,
    check: &mut Check<'_>,
) -> Vec<(Arc<str>, Arc<str>)> {
    let mut values = Vec::new();
    let mut seen: Vec<(&str, Span)> = Vec::new();
    for (entry, raw) in entries(field, what, field.span(), 0..=HEADERS_MAX, check) {
        let name = key_name(&raw.name, entry.span(), seen.iter().copied(), check);
        let value = required_text(&raw.value, entry.span(), "value", check);
        header_value(&raw.value, check);
        if let (Some(name), Some(value)) = (name, value) {
            seen.push((name, entry.span()));
            values.push((Arc::from(name.to_ascii_lowercase()), value));
        }
    }
    values
}

fn mirror(field: &Field<raw::MirrorFilter>, check: &mut Check<'_>) -> Option<RequestMirror> {
    let raw = field.get()?;
    let members = [
        ("percent", raw.percent.span()),
        ("fraction", raw.fraction.span()),
    ];
    scalar::at_most_one(&members, GA127, check);
    let percent = scalar::int_percent(&raw.percent, GA127, check);
    let percent = percent.map(|percent| Percent::new(percent.into()));
    let percentage = percent.or_else(|| fraction(&raw.fraction, check));
    let target = match raw.backend_ref.get() {
        Some(backend) => backend_ref(backend, raw.backend_ref.span(), check),
        None => {
            if !raw.backend_ref.is_invalid() {
                missing(field.span(), "backendRef", check);
            }
            None
        }
    };
    Some(RequestMirror {
        target: target?,
        percentage: percentage.unwrap_or(Percent::ALL),
        line: check.line(field.span()),
    })
}

fn fraction(field: &Field<raw::Fraction>, check: &mut Check<'_>) -> Option<Percent> {
    let raw = field.get()?;
    if !raw.numerator.is_set() {
        missing(field.span(), "numerator", check);
    }
    let numerator = *raw.numerator.get()?;
    let denominator = raw.denominator.get().copied().unwrap_or(100);
    let is_part = (0..=denominator).contains(&numerator);
    if !is_part || !(1..=i64::from(i32::MAX)).contains(&denominator) {
        let message = format!("{numerator}/{denominator} is not a part of all requests");
        let found = check.error(GA127, field.span(), message);
        found.help("write a numerator from 0 to the denominator, which is at least 1");
        return None;
    }
    Some(Percent::new(100.0 * numerator as f64 / denominator as f64))
}

fn redirect(field: &Field<raw::RedirectFilter>, check: &mut Check<'_>) -> Option<Redirect> {
    let raw = field.get()?;
    let schemes = [("http", Scheme::Http), ("https", Scheme::Https)];
    let status = raw.status_code.get().map_or(Some(STATUS_DEFAULT), |code| {
        STATUSES
            .into_iter()
            .find(|known| i64::from(*known) == *code)
    });
    if status.is_none() {
        let message = "the status is not one of a redirect";
        let found = check.error(GA136, raw.status_code.span(), message);
        found.help("write 301, 302, 303, 307 or 308");
    }
    Some(Redirect {
        scheme: scalar::enum_of(&raw.scheme, &schemes, check),
        hostname: host(&raw.hostname, false, check),
        port: api::port(&raw.port, check),
        path: path_modifier(&raw.path, check),
        status: status?,
        line: check.line(field.span()),
    })
}

fn path_modifier(field: &Field<raw::PathModifier>, check: &mut Check<'_>) -> PathModifier {
    let Some(raw) = field.get() else {
        return PathModifier::Keep;
    };
    let types = [("ReplaceFullPath", ()), ("ReplacePrefixMatch", ())];
    let Some(of) = required_text(&raw.modifier_type, field.span(), "type", check) else {
        return PathModifier::Keep;
    };
    if scalar::enum_of(&raw.modifier_type, &types, check).is_none() {
        return PathModifier::Keep;
    }
    let set = |field: &Field<String>| match field.is_set() {
        true => field.span(),
        false => Span::NONE,
    };
    let members = [
        (
            "ReplaceFullPath",
            "replaceFullPath",
            set(&raw.replace_full_path),
        ),
        (
            "ReplacePrefixMatch",
            "replacePrefixMatch",
            set(&raw.replace_prefix_match),
        ),
    ];
    is_its_member(&members, &of, field.span(), check);
    for path in [&raw.replace_full_path, &raw.replace_prefix_match] {
        limit_text(path, PATH_MAX, check);
        let problem = path.get().and_then(|path| api::not_of_a_path(path));
        if let Some(problem) = problem {
            let found = check.error(GA119, path.span(), "no request has such a path");
            found.help(format!("the path {problem}"));
        }
    }
    match &*of {
        "ReplaceFullPath" => PathModifier::Full(api::text(&raw.replace_full_path)),
        _ => {
            let prefix = api::text(&raw.replace_prefix_match);
            PathModifier::Segments(Arc::from(prefix.strip_suffix('/').unwrap_or(&prefix)))
        }
    }
}
