//! Rules of routes.

use std::sync::Arc;

use super::filter::filters;
use super::matches::{grpc_match, http_match, is_one_prefix};
use super::reference::{BACKENDS_MAX, backend, section};
use super::shared::{entries, limit};
use crate::diagnostic::codes::gateway_api::{GA041, GA122, GA126, GA128, GA129};
use crate::raw::Field;
use crate::raw::gateway_api as raw;
use crate::resource::gateway_api::{
    Backend, Filter, GrpcMatch, HttpMatch, L4Rule, PathMatch, PathModifier, Retry, RouteRule,
    Unusable,
};
use crate::span::{Line, Span};
use crate::validate::{Check, scalar};

/// Matches of a rule.
const MATCHES_MAX: usize = 64;
const ATTEMPTS_DEFAULT: u32 = 2;
/// Statuses that can be retried.
const CODES: std::ops::RangeInclusive<i64> = 400..=599;

/// Returns a rule of an HTTPRoute.
pub(super) fn http_rule(
    raw: &raw::HttpRule,
    span: Span,
    check: &mut Check<'_>,
) -> RouteRule<HttpMatch> {
    let mut matches = Vec::new();
    for (entry, raw) in entries(
        &raw.matches,
        "matches",
        raw.matches.span(),
        0..=MATCHES_MAX,
        check,
    ) {
        matches.extend(http_match(raw, entry.span(), check));
    }
    if matches.is_empty() {
        matches.push(every_request(check.line(span)));
    }
    let filters = filters(&raw.filters, check);
    let backends = filtered_backends(&raw.backend_refs, check);
    let is_redirect = |filter: &&Filter| matches!(filter, Filter::Redirect(_));
    if let Some(Filter::Redirect(redirect)) = filters.iter().find(is_redirect)
        && !backends.is_empty()
    {
        let message = format!(
            "the rule redirects with status {}, and has backends",
            redirect.status
        );
        let found = check.error(GA122, raw.backend_refs.span(), message);
        found.help("remove `backendRefs`, or the filter of type `RequestRedirect`");
    }
    let of_backends = backends.iter().flat_map(|backend| &backend.filters);
    let replaces = filters.iter().chain(of_backends).any(replaces_prefix);
    if replaces && !is_one_prefix(&raw.matches) {
        let message = "a prefix is replaced, and the rule has not one match of a prefix";
        let found = check.error(GA126, span, message);
        found.help("write a rule with one match of type `PathPrefix`, or `replaceFullPath`");
    }
    let timeouts = raw.timeouts.get().cloned().unwrap_or_default();
    let timeout = limit(&timeouts.request, check);
    let attempt_timeout = limit(&timeouts.backend_request, check);
    if let (Some(all), Some(one)) = (timeout, attempt_timeout)
        && one > all
    {
        let message = "an attempt has a longer timeout than its request";
        let found = check.error(GA128, timeouts.backend_request.span(), message);
        found.help("write a `backendRequest` of at most `request`");
    }
    not_persistent(&raw.session_persistence, check);
    RouteRule {
        name: section(&raw.name, check),
        matches,
        filters,
        backends,
        timeout,
        attempt_timeout,
        retry: retry(&raw.retry, check).map(Box::new),
        line: check.line(span),
    }
}

/// Returns the rule of an HTTPRoute without rules: it takes every request, and has no backends.
pub(super) fn default_rule(line: Line) -> RouteRule<HttpMatch> {
    RouteRule {
        name: None,
        matches: vec![every_request(line)],
        filters: Vec::new(),
        backends: Vec::new(),
        timeout: None,
        attempt_timeout: None,
        retry: None,
        line,
    }
}

fn every_request(line: Line) -> HttpMatch {
    HttpMatch {
        path: PathMatch::Segments(Arc::from("")),
        method: None,
        headers: Vec::new(),
        query_params: Vec::new(),
        line,
    }
}

fn replaces_prefix(filter: &Filter) -> bool {
    let path = match filter {
        Filter::Redirect(redirect) => &redirect.path,
        Filter::Rewrite(rewrite) => &rewrite.path,
        _ => return false,
    };
    matches!(path, PathModifier::Segments(_))
}

/// Returns a rule of a GRPCRoute.
pub(super) fn grpc_rule(
    raw: &raw::GrpcRule,
    span: Span,
    check: &mut Check<'_>,
) -> RouteRule<GrpcMatch> {
    let mut matches = Vec::new();
    for (entry, raw) in entries(
        &raw.matches,
        "matches",
        raw.matches.span(),
        0..=MATCHES_MAX,
        check,
    ) {
        matches.extend(grpc_match(raw, entry.span(), check));
    }
    if matches.is_empty() {
        matches.push(GrpcMatch {
            service: None,
            method: None,
            headers: Vec::new(),
            line: check.line(span),
        });
    }
    not_persistent(&raw.session_persistence, check);
    RouteRule {
        name: section(&raw.name, check),
        matches,
        filters: filters(&raw.filters, check),
        backends: filtered_backends(&raw.backend_refs, check),
        timeout: None,
        attempt_timeout: None,
        retry: None,
        line: check.line(span),
    }
}

/// Returns the rule of a TLSRoute or a TCPRoute.
pub(super) fn l4_rule(
    field: &Field<Vec<Field<raw::L4Rule>>>,
    check: &mut Check<'_>,
) -> Option<L4Rule> {
    let rules = entries(field, "rules", check.body(), 1..=1, check);
    let (entry, raw) = rules.into_iter().next()?;
    let mut backends = Vec::new();
    for (entry, raw) in entries(
        &raw.backend_refs,
        "backendRefs",
        entry.span(),
        1..=BACKENDS_MAX,
        check,
    ) {
        backends.extend(backend(raw, entry.span(), check));
    }
    Some(L4Rule {
        name: section(&raw.name, check),
        backends,
        line: check.line(entry.span()),
    })
}

fn filtered_backends<F>(
    field: &Field<Vec<Field<raw::FilteredBackend<F>>>>,
    check: &mut Check<'_>,
) -> Vec<Backend>
where
    for<'f> raw::Filter: From<&'f F>,
{
    let mut backends = Vec::new();
    for (entry, raw) in entries(field, "backendRefs", field.span(), 0..=BACKENDS_MAX, check) {
        let filters = filters(&raw.filters, check);
        let span = raw.filters.span();
        let filters = filters.into_iter().map(|one| of_backend(one, span, check));
        let filters = filters.collect();
        let backend = backend(&raw.unfiltered(), entry.span(), check);
        backends.extend(backend.map(|backend| Backend { filters, ..backend }));
    }
    backends
}

/// Returns a filter of a backend, among the filters at `span`. CORS is not followed there.
fn of_backend(filter: Filter, span: Span, check: &mut Check<'_>) -> Filter {
    let Filter::Cors(cors) = filter else {
        return filter;
    };
    let message = "a filter of type `CORS` is not followed at a backend: its share of the requests gets a response with \
                   status 500";
    let found = check.warning(GA041, span, message);
    found.help("write the filter in the rule");
    Filter::Unusable(Unusable {
        filter_type: Arc::from("CORS"),
        line: cors.line,
    })
}

fn retry(field: &Field<raw::Retry>, check: &mut Check<'_>) -> Option<Retry> {
    let raw = field.get()?;
    let mut codes: Vec<u16> = Vec::new();
    for (entry, _) in scalar::items(&raw.codes, check) {
        let code = scalar::in_range(entry, CODES, "status", GA129, check);
        let Some(code) = code.and_then(|code| u16::try_from(code).ok()) else {
            continue;
        };
        if codes.contains(&code) {
            let found = check.error(GA129, entry.span(), format!("{code} is listed twice"));
            found.help("remove one of the entries");
        }
        codes.push(code);
    }
    let most = i64::from(i32::MAX);
    let attempts = scalar::in_range(&raw.attempts, 1..=most, "number", GA129, check);
    let attempts = attempts.and_then(|attempts| u32::try_from(attempts).ok());
    Some(Retry {
        codes,
        attempts: attempts.unwrap_or(ATTEMPTS_DEFAULT),
        backoff: limit(&raw.backoff, check),
        line: check.line(field.span()),
    })
}

fn not_persistent<T>(field: &Field<T>, check: &mut Check<'_>) {
    if field.is_set() {
        let message = "`sessionPersistence` has no effect";
        let found = check.warning(GA041, field.span(), message);
        found.help(
            "use `consistentHash` of a DestinationRule for the Service, and remove the field",
        );
    }
}
