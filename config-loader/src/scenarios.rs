//! Scenarios of `strait simulate`: load, events, and what must hold. Every mistake is a diagnostic with its location.

mod checked;
mod figures;
mod raw;

use std::sync::Arc;
use std::time::Duration;

pub use checked::{
    Comparison, EventAction, ExpectedFigure, Figure, Operator, Scenario, ScenarioEndpoints,
    ScenarioEvent, ScenarioLoad, ScenarioTarget,
};

use crate::diagnostic::Locator;
use crate::diagnostic::codes::common::{CM019, CM029, SIM001, SIM002};
use crate::raw::{Field, IntOrString, Map};
use crate::settings_file::{self, Parsed, SettingsFile};
use crate::span::{Lines, Span};
use crate::validate::scalar::{at_most_one, duration, in_range, items, parse_duration};
use crate::validate::{Check, api};
use crate::written_proxies::WrittenProxy;

/// Largest numbers of proxies, and of workers of each.
const PROXIES_MAX: i64 = 1_000;
const WORKERS_MAX: i64 = 256;

impl SettingsFile for Scenario {
    const FLAG: &'static str = "strait simulate";

    const EMPTY: &'static str = "write `load` with `url`, `rate` and `for`";

    fn parse(file: &Arc<str>, text: &str) -> Parsed<Self> {
        let lines = Lines::new(text);
        let locator = Locator {
            bool_keys: true,
            ..settings_file::whole(file, text, &lines)
        };
        settings_file::parse_text(locator, &[], |raw: &raw::Scenario, root, check| {
            scenario(raw, root.span, check)
        })
    }
}

fn scenario(raw: &raw::Scenario, at: Span, check: &mut Check<'_>) -> Scenario {
    let proxy = raw.proxy.get();
    let proxy = proxy.map_or_else(WrittenProxy::default, |raw| raw.check(check));
    let load = match raw.load.get() {
        Some(one) => load(one, raw.load.span(), check),
        None => {
            if !raw.load.is_invalid() {
                let missing = api::required(at, "load", "", SIM001, check);
                missing.help("write `load: {url: \"http://shop.example/\", rate: 100/s, for: 5m}`");
            }
            ScenarioLoad::default()
        }
    };
    let endpoints = raw.endpoints.get();
    let endpoints = endpoints.map_or_else(ScenarioEndpoints::default, |one| {
        self::endpoints(one, check)
    });
    let mut events = Vec::new();
    for (field, one) in items(&raw.events, check) {
        events.extend(event(one, field.span(), load.duration, check));
    }
    // events at the same time keep their order
    events.sort_by_key(|event: &ScenarioEvent| event.at);
    let mut expected = Vec::new();
    for (field, one) in items(&raw.expect, check) {
        figures::expected(one, field.span(), load.duration, &mut expected, check);
    }
    Scenario {
        config: api::some_text(&raw.config),
        proxy,
        interval: duration(&raw.interval, check),
        load,
        endpoints,
        events,
        expected,
    }
}

fn load(raw: &raw::Load, at: Span, check: &mut Check<'_>) -> ScenarioLoad {
    api::require_text(&raw.url, at, "url", SIM001, check);
    if raw.rate.span().is_none() {
        api::required(at, "rate", "", SIM001, check);
    }
    if raw.duration.span().is_none() {
        api::required(at, "for", "", SIM001, check);
    }
    let headers = raw.headers.get().into_iter().flat_map(Map::iter);
    let count = |field: &Field<i64>, max, name, check: &mut Check<'_>| {
        let value = in_range(field, 1..=max, name, CM029, check);
        value
            .and_then(|value| u16::try_from(value).ok())
            .unwrap_or(1)
    };
    ScenarioLoad {
        method: api::some_text(&raw.method).unwrap_or_else(|| "GET".into()),
        url: api::text(&raw.url),
        headers: headers
            .map(|(name, _, value)| (name.into(), api::text(value)))
            .collect(),
        rate: rate(&raw.rate, check).unwrap_or(1.0),
        duration: duration(&raw.duration, check).unwrap_or(Duration::from_secs(1)),
        proxies: count(&raw.proxies, PROXIES_MAX, "proxies", check),
        workers: count(&raw.workers, WORKERS_MAX, "workers", check),
        location: check.location(at),
    }
}

fn endpoints(raw: &raw::Endpoints, check: &mut Check<'_>) -> ScenarioEndpoints {
    let default = ScenarioEndpoints::default();
    let (p50, p99) = match raw.latency.get() {
        Some(latency) => {
            let p50 = service_time(&latency.p50, check);
            let p99 = service_time(&latency.p99, check).or(p50);
            let p50 = p50.or(p99);
            if p50 > p99 {
                let found = check.error(SIM002, latency.p99.span(), "p99 is shorter than p50");
                found.help("write a p99 that is at least as long as p50");
            }
            (p50.unwrap_or(default.p50), p99.unwrap_or(default.p99))
        }
        None => (default.p50, default.p99),
    };
    let most = i64::from(u32::MAX);
    let concurrency = in_range(&raw.concurrency, 1..=most, "concurrency", CM029, check);
    ScenarioEndpoints {
        p50,
        p99,
        concurrency: concurrency.and_then(|value| u32::try_from(value).ok()),
    }
}

/// Returns a service time, which may be shorter than a millisecond.
fn service_time(field: &Field<String>, check: &mut Check<'_>) -> Option<Duration> {
    let text = field.get()?;
    let nanos = parse_duration(text)
        .ok()
        .and_then(|nanos| u64::try_from(nanos).ok());
    let time = nanos.filter(|nanos| *nanos > 0).map(Duration::from_nanos);
    if time.is_none() {
        let found = check.error(SIM002, field.span(), format!("{text:?} is no time"));
        found.help("write a number and a unit, such as `8ms` or `500us`");
    }
    time
}

fn event(
    raw: &raw::Event,
    at: Span,
    whole: Duration,
    check: &mut Check<'_>,
) -> Option<ScenarioEvent> {
    let begins = figures::time(&raw.at, "at", at, whole, check)?;
    let target = target(raw, check);
    let action = action(raw, at, check)?;
    let is_of_endpoints = !matches!(action, EventAction::Config(_) | EventAction::Rate(_));
    let target = match target {
        Some(target) if !is_of_endpoints => {
            let _ = target;
            let found = check.error(
                SIM002,
                at,
                "the load and the configuration are of no cluster or endpoint",
            );
            found.help("remove `cluster`, `zone`, `host` or `endpoint`");
            return None;
        }
        None if is_of_endpoints && check.failed() => return None,
        None if is_of_endpoints => ScenarioTarget::All,
        target => target.unwrap_or(ScenarioTarget::All),
    };
    Some(ScenarioEvent {
        at: begins,
        target,
        action,
        location: check.location(at),
    })
}

fn target(raw: &raw::Event, check: &mut Check<'_>) -> Option<ScenarioTarget> {
    type Part = fn(Arc<str>) -> ScenarioTarget;
    let parts: [(&str, &Field<String>, Part); 4] = [
        ("cluster", &raw.cluster, ScenarioTarget::Cluster),
        ("zone", &raw.zone, ScenarioTarget::Zone),
        ("host", &raw.host, ScenarioTarget::Host),
        ("endpoint", &raw.endpoint, ScenarioTarget::Endpoint),
    ];
    at_most_one(
        &parts.map(|(name, field, _)| (name, field.span())),
        CM019,
        check,
    );
    let found = parts.iter();
    found
        .filter_map(|(_, field, part)| Some(part(api::some_text(field)?)))
        .next()
}

fn action(raw: &raw::Event, at: Span, check: &mut Check<'_>) -> Option<EventAction> {
    let spans = [
        ("errors", raw.errors.span()),
        ("latency", raw.latency.span()),
        ("stop", raw.stop.span()),
        ("hang", raw.hang.span()),
        ("restore", raw.restore.span()),
        ("rate", raw.rate.span()),
        ("config", raw.config.span()),
    ];
    if !at_most_one(&spans, CM019, check) {
        return None;
    }
    if raw.errors.span().is_none() && !raw.status.span().is_none() {
        let found = check.error(SIM002, raw.status.span(), "`status` is that of `errors`");
        found.help("write the share of requests with it, such as `errors: 100%`");
        return None;
    }
    if let Some(text) = raw.errors.get() {
        let share = figures::percent(text, raw.errors.span(), check)?;
        let status = in_range(&raw.status, 200..=599, "status", CM029, check).unwrap_or(503);
        let status = u16::try_from(status).unwrap_or(503);
        return Some(EventAction::Errors { share, status });
    }
    if let Some(text) = raw.latency.get() {
        return factor(text, raw.latency.span(), check).map(EventAction::Latency);
    }
    if raw.rate.get().is_some() {
        return rate(&raw.rate, check).map(EventAction::Rate);
    }
    if let Some(config) = api::some_text(&raw.config) {
        return Some(EventAction::Config(config));
    }
    let switches = [
        (&raw.stop, EventAction::Stop),
        (&raw.hang, EventAction::Hang),
        (&raw.restore, EventAction::Restore),
    ];
    for (field, action) in switches {
        match field.get() {
            Some(true) => return Some(action),
            Some(false) => {
                let found = check.error(SIM002, field.span(), "`false` does nothing");
                found.help("write `true`, or remove the event; `restore: true` ends what an earlier one began");
                return None;
            }
            None => {}
        }
    }
    let is_invalid = [
        raw.errors.is_invalid(),
        raw.latency.is_invalid(),
        raw.rate.is_invalid(),
        raw.config.is_invalid(),
        raw.stop.is_invalid(),
        raw.hang.is_invalid(),
        raw.restore.is_invalid(),
    ];
    if !check.failed() && !is_invalid.contains(&true) {
        let found = check.error(SIM001, at, "nothing happens");
        found.help(
            "write one of `errors`, `latency`, `stop`, `hang`, `restore`, `rate` and `config`",
        );
    }
    None
}

/// Returns a factor, from `x10`.
fn factor(text: &str, at: Span, check: &mut Check<'_>) -> Option<f64> {
    let factor = text.strip_prefix('x').and_then(|text| text.parse().ok());
    let factor = factor.filter(|factor: &f64| factor.is_finite() && *factor > 0.0);
    if factor.is_none() {
        let found = check.error(SIM002, at, format!("{text:?} is no factor"));
        found.help("write `x` and a number above 0, such as `latency: x10`");
    }
    factor
}

/// Returns requests per second, from `2000/s`, `600/m` or a number of requests per second.
fn rate(field: &Field<IntOrString>, check: &mut Check<'_>) -> Option<f64> {
    let value = match field.get()? {
        IntOrString::Int(number) => Some(*number as f64),
        IntOrString::String(text) => {
            let (number, unit) = text.split_once('/').unwrap_or((text, "s"));
            let seconds = match unit {
                "s" => Some(1.0),
                "m" => Some(60.0),
                "h" => Some(3600.0),
                _ => None,
            };
            let number = number.trim().parse::<f64>().ok();
            number
                .zip(seconds)
                .map(|(number, seconds)| number / seconds)
        }
    };
    let value = value.filter(|value| value.is_finite() && *value > 0.0);
    if value.is_none() {
        let found = check.error(SIM002, field.span(), "not a rate");
        found.help("write a number above 0 and `/s`, `/m` or `/h`, such as `2000/s`");
    }
    value
}

#[cfg(test)]
mod tests;
