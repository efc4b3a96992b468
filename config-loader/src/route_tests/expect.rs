//! Fields of `expect`, each as one expectation.

use std::sync::Arc;
use std::time::Duration;

use super::checked::{Expectation, Expected, ExpectedDestination};
use super::raw;
use crate::diagnostic::codes::common::{CM029, TST001};
use crate::raw::{Field, Map};
use crate::span::Span;
use crate::validate::scalar::{duration_or_zero, in_range, items};
use crate::validate::{Check, api};

/// Word for a header that must not be there.
const ABSENT: &str = "absent";

/// Word for a timeout or retries that must not be there.
const NONE: &str = "none";

/// Collected expectations.
struct Collected<'c, 'a> {
    all: Vec<Expected>,
    check: &'c mut Check<'a>,
}

impl Collected<'_, '_> {
    fn add(&mut self, field: &str, span: Span, what: Option<Expectation>) {
        let location = self.check.location(span);
        self.all.extend(what.map(|what| Expected {
            what,
            field: field.to_owned(),
            location,
        }));
    }

    fn text(&mut self, name: &str, field: &Field<String>, what: fn(Arc<str>) -> Expectation) {
        self.add(name, field.span(), api::some_text(field).map(what));
    }

    fn status(&mut self, name: &str, field: &Field<i64>, what: fn(u16) -> Expectation) {
        let status = in_range(field, 100..=599, "status", CM029, self.check);
        let status = status.and_then(|status| u16::try_from(status).ok());
        self.add(name, field.span(), status.map(what));
    }

    fn time(
        &mut self,
        name: &str,
        field: &Field<String>,
        what: fn(Option<Duration>) -> Expectation,
    ) {
        let time = match field.get() {
            Some(text) if text == NONE => Some(None),
            _ => duration_or_zero(field, self.check).map(Some),
        };
        self.add(name, field.span(), time.map(what));
    }

    fn headers(
        &mut self,
        name: &str,
        field: &Field<Map<String>>,
        what: fn(Arc<str>, Option<Arc<str>>) -> Expectation,
    ) {
        for (header, key, value) in field.get().into_iter().flat_map(Map::iter) {
            let wanted = api::text(value);
            let wanted = (&*wanted != ABSENT).then_some(wanted);
            let header: Arc<str> = header.to_ascii_lowercase().into();
            self.add(
                &format!("{name}.{header}"),
                key.span(),
                Some(what(header, wanted)),
            );
        }
    }

    fn shares(
        &mut self,
        name: &str,
        field: &Field<Map<f64>>,
        what: fn(Vec<(Arc<str>, f64)>) -> Expectation,
    ) {
        let Some(map) = field.get() else { return };
        let shares = map.iter().map(|(key, _, share)| {
            let share = percent(share, self.check).unwrap_or_default();
            (key.into(), share)
        });
        let shares = shares.collect();
        self.add(name, field.span(), Some(what(shares)));
    }
}

/// Returns the expectations. Those of several requests are of requests that `is_varied` says differ.
pub(super) fn expectations(
    raw: &raw::Expect,
    is_varied: bool,
    check: &mut Check<'_>,
) -> Vec<Expected> {
    // every field is named, so that none is forgotten
    let raw::Expect {
        status,
        flags,
        rule,
        allowed,
        destination,
        destinations,
        mirrors,
        clusters,
        endpoints,
        path,
        authority,
        request_headers,
        response_headers,
        timeout,
        retries,
        redirect,
        same_endpoint_for_same,
        spread,
    } = raw;
    let mut found = Collected {
        all: Vec::new(),
        check,
    };
    found.status("status", status, Expectation::Status);
    found.text("flags", flags, Expectation::Flags);
    found.text("rule", rule, Expectation::Rule);
    let decision = allowed.get().map(|allowed| Expectation::Allowed(*allowed));
    found.add("allowed", allowed.span(), decision);
    self::destinations(destination, destinations, mirrors, &mut found);
    found.shares("clusters", clusters, Expectation::Clusters);
    found.shares("endpoints", endpoints, Expectation::Endpoints);
    found.text("path", path, Expectation::Path);
    found.text("authority", authority, Expectation::Authority);
    let edited = Expectation::RequestHeader as fn(_, _) -> _;
    found.headers("request-headers", request_headers, edited);
    found.headers(
        "response-headers",
        response_headers,
        Expectation::ResponseHeader,
    );
    found.time("timeout", timeout, Expectation::Timeout);
    self::retries(retries, &mut found);
    if let Some(raw) = redirect.get() {
        found.status("redirect.status", &raw.status, Expectation::RedirectStatus);
        let location = Expectation::RedirectLocation as fn(_) -> _;
        found.text("redirect.location", &raw.location, location);
    }
    varied(same_endpoint_for_same, spread, is_varied, &mut found);
    found.all
}

/// Adds destinations and mirrors.
fn destinations(
    destination: &Field<raw::Destination>,
    destinations: &raw::List<raw::Destination>,
    mirrors: &raw::List<raw::Destination>,
    found: &mut Collected<'_, '_>,
) {
    if let Some(one) = destination.get() {
        let one = self::destination(one, found.check);
        let what = Expectation::Destinations(vec![one]);
        found.add("destination", destination.span(), Some(what));
    }
    for (name, list, what) in [
        (
            "destinations",
            destinations,
            Expectation::Destinations as fn(_) -> _,
        ),
        ("mirrors", mirrors, Expectation::Mirrors),
    ] {
        let all = items(list, found.check).into_iter();
        let all: Vec<_> = all.map(|(_, raw)| raw).collect();
        let all = all
            .into_iter()
            .map(|raw| self::destination(raw, found.check));
        let all: Vec<_> = all.collect();
        found.add(name, list.span(), list.get().map(|_| what(all)));
    }
}

fn retries(field: &Field<raw::Retries>, found: &mut Collected<'_, '_>) {
    let Some(raw) = field.get() else { return };
    let attempts = api::count(&raw.attempts, found.check);
    let what = raw
        .attempts
        .get()
        .map(|_| Expectation::RetryAttempts(attempts));
    found.add("retries.attempts", raw.attempts.span(), what);
    let on = items(&raw.on, found.check).into_iter();
    let on: Vec<Arc<str>> = on.map(|(_, text)| text.as_str().into()).collect();
    let what = raw.on.get().map(|_| Expectation::RetryOn(on));
    found.add("retries.on", raw.on.span(), what);
    let time = Expectation::PerTryTimeout as fn(_) -> _;
    found.time("retries.per-try-timeout", &raw.per_try_timeout, time);
}

/// Adds what is expected of several requests.
fn varied(
    same: &Field<String>,
    spread: &Field<raw::Spread>,
    is_varied: bool,
    found: &mut Collected<'_, '_>,
) {
    for (name, span) in [
        ("same-endpoint-for-same", same.span()),
        ("spread", spread.span()),
    ] {
        if !is_varied && !span.is_none() {
            let error =
                found
                    .check
                    .error(TST001, span, format!("`{name}` is about several requests"));
            error.help("write `requests` with `count` and `vary`");
        }
    }
    let what = same.get().map(|_| Expectation::SameEndpoint);
    found.add("same-endpoint-for-same", same.span(), what);
    if let Some(raw) = spread.get() {
        let least = api::count(&raw.min_endpoints, found.check);
        found.add(
            "spread.min-endpoints",
            raw.min_endpoints.span(),
            Some(Expectation::Spread(least)),
        );
    }
}

fn destination(raw: &raw::Destination, check: &mut Check<'_>) -> ExpectedDestination {
    ExpectedDestination {
        host: api::text(&raw.host),
        subset: raw.subset.get().map(|text| text.as_str().into()),
        port: api::port(&raw.port, check),
        percent: percent(&raw.weight, check),
    }
}

fn percent(field: &Field<f64>, check: &mut Check<'_>) -> Option<f64> {
    let value = *field.get()?;
    if !(0.0..=100.0).contains(&value) {
        let found = check.error(CM029, field.span(), format!("{value} is no percentage"));
        found.help("write a number from 0 to 100");
    }
    Some(value)
}
