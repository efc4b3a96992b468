//! Rules of rate limits.

use std::time::Duration;

use crate::diagnostic::codes::limits::{
    RL003, RL004, RL005, RL006, RL007, RL008, RL010, RL011, RL012, RL104, RL108, RL109,
};
use crate::raw::Field;
use crate::raw::envoy_gateway as raw;
use crate::re2::Extent;
use crate::resource::envoy_gateway::backend_traffic_policy::{
    LimitRule, PathMatch, Selector, ValueMatch,
};
use crate::resource::istio::{Pattern, StringMatch};
use crate::span::Span;
use crate::validate::scalar::RegexCodes;
use crate::validate::{Check, api, scalar};
use traffic::route::normalize_path;

const DAY: Duration = Duration::from_secs(24 * 3600);
const UNITS: [(&str, Duration); 7] = [
    ("Second", Duration::from_secs(1)),
    ("Minute", Duration::from_secs(60)),
    ("Hour", Duration::from_secs(3600)),
    ("Day", DAY),
    ("Week", Duration::from_secs(7 * 24 * 3600)),
    ("Month", Duration::from_secs(30 * 24 * 3600)),
    ("Year", Duration::from_secs(365 * 24 * 3600)),
];

/// Conditions of a rule.
const SELECTORS_MAX: usize = 8;
/// Headers, and query parameters, of a condition.
const HEADERS_MAX: usize = 16;

const REGEX_CODES: RegexCodes = RegexCodes {
    empty: RL011,
    long: RL011,
    syntax: RL011,
};

/// Ways to compare a value.
#[derive(Clone, Copy)]
enum Compare {
    Distinct,
    Exact,
    Prefix,
    Regex,
}

/// Returns the rules of a limit, which has at most `most`.
pub(super) fn rules(
    field: &Field<raw::Rules>,
    most: usize,
    is_local: bool,
    check: &mut Check<'_>,
) -> Vec<LimitRule> {
    let Some(limit) = field.get() else {
        return Vec::new();
    };
    let rules = listed(&limit.rules, "rules", most, check).into_iter();
    let rules = rules.filter_map(|(entry, raw)| {
        let rule = rule(raw, entry.span(), check)?;
        if is_local && rule.unit > DAY {
            let message = "a restart of the proxy refills the limit";
            let found = check.warning(RL104, raw.limit.span(), message);
            found.help("write a limit of at most a `Day`, or a global limit");
        }
        if rule.cost > rule.requests {
            let message = format!(
                "a request costs {}, and the limit is {}: none passes",
                rule.cost, rule.requests
            );
            let found = check.warning(RL108, entry.span(), message);
            found.help("raise the limit, or lower the cost");
        }
        Some(rule)
    });
    rules.collect()
}

/// Returns the entries of a list that has at most `most`.
fn listed<'f, T>(
    field: &'f Field<Vec<Field<T>>>,
    what: &str,
    most: usize,
    check: &mut Check<'_>,
) -> Vec<(&'f Field<T>, &'f T)> {
    let entries = scalar::items(field, check);
    if entries.len() > most {
        let message = format!("{} {what} are more than {most}", entries.len());
        let found = check.error(RL008, field.span(), message);
        found.help("write a policy for each part of the traffic");
    }
    entries
}

fn rule(raw: &raw::Rule, span: Span, check: &mut Check<'_>) -> Option<LimitRule> {
    let mut selectors = Vec::new();
    let conditions = listed(
        &raw.client_selectors,
        "clientSelectors",
        SELECTORS_MAX,
        check,
    );
    for (entry, condition) in conditions {
        select(condition, entry.span(), &mut selectors, check);
    }
    let sources = |one: &&Selector| matches!(one, Selector::Source(..));
    if selectors.iter().filter(sources).count() > 1 {
        let message = "a rule has several blocks of addresses";
        let found = check.error(RL006, raw.client_selectors.span(), message);
        found.help("write a rule for each");
    }
    let cost = cost(&raw.cost, check);
    let limit = raw.limit.get().cloned().unwrap_or_default();
    let requests = scalar::non_negative(&limit.requests, "requests", RL003, check);
    let unit = scalar::enum_of(&limit.unit, &UNITS, check);
    if !limit.requests.is_set() || !limit.unit.is_set() {
        let at = if raw.limit.is_set() {
            raw.limit.span()
        } else {
            span
        };
        let found = check.error(RL003, at, "the limit needs a number of requests and a unit");
        found.help("write `limit: {requests: 10, unit: Second}`");
    }
    Some(LimitRule {
        selectors,
        requests: requests?,
        unit: unit?,
        cost,
        is_shared: raw.shared.get() == Some(&true),
        is_shadow: raw.shadow_mode.get() == Some(&true),
        line: check.line(span),
    })
}

fn cost(field: &Field<raw::Cost>, check: &mut Check<'_>) -> u32 {
    let Some(source) = field.get().and_then(|cost| cost.request.get()) else {
        return 1;
    };
    let sources = [("Number", ()), ("Metadata", ())];
    scalar::enum_of(&source.from, &sources, check);
    scalar::non_negative(&source.number, "number", RL010, check).unwrap_or(1)
}

fn select(
    raw: &raw::SelectCondition,
    span: Span,
    selectors: &mut Vec<Selector>,
    check: &mut Check<'_>,
) {
    let before = selectors.len();
    let has_any = raw.headers.is_set()
        || raw.methods.is_set()
        || raw.path.is_set()
        || raw.query_params.is_set()
        || raw.source_cidr.is_set();
    for (entry, header) in listed(&raw.headers, "headers", HEADERS_MAX, check) {
        let name = api::text(&header.name).to_ascii_lowercase();
        let is_name = scalar::is_header_name(&name);
        let value = value(header, entry.span(), is_name, "header", check);
        selectors.extend(value.map(|value| Selector::Header(name.into(), value)));
    }
    let mut methods = Vec::new();
    for (entry, method) in scalar::items(&raw.methods, check) {
        let Some(name) = api::some_text(&method.value).filter(|name| scalar::is_header_name(name))
        else {
            let message = format!("`{}` is not a method", api::text(&method.value));
            let found = check.error(RL012, entry.span(), message);
            found.help("write `{value: GET}`");
            continue;
        };
        if name.bytes().any(|byte| byte.is_ascii_lowercase()) {
            let message = format!("no request has the method `{name}`: their case counts");
            let found = check.warning(RL109, entry.span(), message);
            found.help(format!("write `{}`", name.to_ascii_uppercase()));
        }
        methods.push((name, method.invert.get() == Some(&true)));
    }
    if !methods.is_empty() {
        selectors.push(Selector::Methods(methods));
    }
    selectors.extend(path(&raw.path, check));
    for (entry, param) in listed(&raw.query_params, "queryParams", HEADERS_MAX, check) {
        let name = api::text(&param.name);
        let value = value(
            param,
            entry.span(),
            !name.is_empty(),
            "query parameter",
            check,
        );
        selectors.extend(value.map(|value| Selector::QueryParam(name, value)));
    }
    selectors.extend(source(&raw.source_cidr, check));
    if !has_any || selectors.len() == before && !check.failed() {
        let found = check.error(RL004, span, "the condition is empty");
        found.help("write headers, methods, path, queryParams or sourceCIDR, or remove it");
    }
}

fn value(
    raw: &raw::HeaderMatch,
    span: Span,
    is_name: bool,
    what: &str,
    check: &mut Check<'_>,
) -> Option<ValueMatch> {
    if !is_name {
        let name = api::text(&raw.name);
        let found = check.error(RL005, span, format!("`{name}` is not the name of a {what}"));
        found.help("write the name that requests have");
        return None;
    }
    let kinds = [
        ("Exact", Compare::Exact),
        ("RegularExpression", Compare::Regex),
        ("Distinct", Compare::Distinct),
    ];
    let kind = scalar::enum_of(&raw.kind, &kinds, check);
    let is_inverted = raw.invert.get() == Some(&true);
    if let Some(Compare::Distinct) = kind {
        if raw.value.is_set() || is_inverted {
            let message = "Distinct is for all values: it has no `value`, and no `invert`";
            let found = check.error(RL005, span, message);
            found.help("remove them, or write another type");
            return None;
        }
        return Some(ValueMatch::Distinct);
    }
    if !raw.value.is_set() {
        let found = check.error(RL005, span, format!("the {what} has no value"));
        found.help("write its value, or `type: Distinct` for a limit of each value");
        return None;
    }
    let matched = text(kind.unwrap_or(Compare::Exact), &raw.value, check)?;
    Some(ValueMatch::Matches(matched, is_inverted))
}

fn text(kind: Compare, field: &Field<String>, check: &mut Check<'_>) -> Option<StringMatch> {
    if !matches!(kind, Compare::Regex) {
        return Some(StringMatch::Exact(api::text(field)));
    }
    let regex = scalar::regex(field, Extent::Whole, REGEX_CODES, check)?;
    Some(StringMatch::Regex(Pattern {
        source: api::text(field),
        regex,
    }))
}

fn path(field: &Field<raw::PathMatch>, check: &mut Check<'_>) -> Option<Selector> {
    let raw = field.get()?;
    let kinds = [
        ("Exact", Compare::Exact),
        ("PathPrefix", Compare::Prefix),
        ("RegularExpression", Compare::Regex),
    ];
    let kind = scalar::enum_of(&raw.kind, &kinds, check).unwrap_or(Compare::Prefix);
    let written = raw.value.get().map_or("/", String::as_str);
    let is_path = written.starts_with('/') && api::not_of_a_path(written).is_none();
    let is_inverted = raw.invert.get() == Some(&true);
    let normal = normalize_path(written);
    if !matches!(kind, Compare::Regex) && is_path && !normal.as_ref().is_ok_and(|it| it == written)
    {
        let message =
            format!("no path matches `{written}`: paths are compared after normalization");
        let found = check.warning(RL109, raw.value.span(), message);
        match normal {
            Ok(normal) => found.help(format!("write `{normal}`")),
            Err(problem) => found.help(format!("remove the condition: the {problem}")),
        };
    }
    let matched = match kind {
        Compare::Regex => PathMatch::Whole(text(kind, &raw.value, check)?),
        _ if !is_path => {
            let message = format!("`{written}` is not the path of a request");
            let found = check.error(RL007, raw.value.span(), message);
            found.help("write a path that begins with `/`, without its query");
            return None;
        }
        Compare::Exact => PathMatch::Whole(StringMatch::Exact(written.into())),
        _ => PathMatch::Segments(written.trim_end_matches('/').into()),
    };
    Some(Selector::Path(matched, is_inverted))
}

fn source(field: &Field<raw::SourceMatch>, check: &mut Check<'_>) -> Option<Selector> {
    let raw = field.get()?;
    let kinds = [("Exact", false), ("Distinct", true)];
    let is_distinct = scalar::enum_of(&raw.kind, &kinds, check).unwrap_or_default();
    let written = api::text(&raw.value);
    let Some(net) = scalar::subnet(&written) else {
        let at = if raw.value.is_set() {
            raw.value.span()
        } else {
            field.span()
        };
        let found = check.error(
            RL006,
            at,
            format!("`{written}` is not a block of addresses"),
        );
        found.help("write a CIDR such as `10.0.0.0/8`, or `0.0.0.0/0` for every address");
        return None;
    };
    Some(Selector::Source(net.trunc(), is_distinct))
}
