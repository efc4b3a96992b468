//! Report of a run, as text and as JSON.

use std::fmt::Write as _;

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

use super::outcome::FailureClass;
use super::percentiles::millis;
use super::settings::Settings;
use super::threads::Outcome;
use super::verdict::{Check, lateness};

/// Schema version of the JSON; it changes when a key is removed or changes its meaning.
pub const SCHEMA: u32 = 1;

/// Reported quantiles, with their names.
pub const QUANTILES: [(&str, f64); 5] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p99", 0.99),
    ("p99_9", 0.999),
    ("p99_99", 0.9999),
];

/// Settings and results of a run, and its limits.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// Settings of the run.
    pub settings: &'a Settings,
    /// Results of the run.
    pub outcome: &'a Outcome,
    /// Results of comparing the run with its limits.
    pub checks: &'a [Check],
}

impl Report<'_> {
    /// Returns a summary of the settings in one line.
    pub fn title(&self) -> String {
        let settings = self.settings;
        let protocol = settings.protocol.name(settings.address.tls);
        let streams = if settings.protocol.is_http2() {
            format!(" with {} streams", settings.streams)
        } else {
            String::new()
        };
        format!(
            "{}: {protocol}, {} requests/s for {:?}, {} connections{streams}, {} thread{}",
            settings.address.url(),
            settings.rate,
            settings.duration,
            settings.connections,
            settings.threads,
            if settings.threads == 1 { "" } else { "s" }
        )
    }

    /// Returns the number of complete responses per second.
    fn achieved(&self) -> f64 {
        let responses: u64 = self.outcome.record.statuses.values().sum();
        responses as f64 / self.outcome.elapsed.as_secs_f64().max(1e-9)
    }

    /// Formats the report as text.
    pub fn text(&self) -> String {
        let record = &self.outcome.record;
        let mut text = format!("{}\n\n", self.title());
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "{name:<12} {value}");
        };
        let outcome = format!(
            "{} sent or due, {} succeeded, {} failed, {:.1} responses/s",
            record.requests,
            record.succeeded(),
            record.failed(),
            self.achieved()
        );
        line("requests", &outcome);
        line("latency", &times(&record.latency));
        line("own lateness", &times(&record.late));
        line("queued", &times(&record.waited));
        line("statuses", &counts(record.statuses.iter(), record.requests));
        if let Some(name) = record.counted() {
            line(
                name.as_str(),
                &counts(record.destinations.iter(), record.requests),
            );
        }
        for (class, count) in &record.failures {
            let reason = record.reasons.get(class).map_or("", String::as_str);
            line(
                "failed",
                &format!("{count} {}, first: {reason}", class.name()),
            );
        }
        for check in self.checks {
            let verdict = if check.met { "met" } else { "BROKEN" };
            let flag = check.name.replace('_', "-");
            line(
                "limit",
                &format!("--{flag} {}: {verdict}, {}", check.limit, check.measured),
            );
        }
        for note in self.notes() {
            line("note", &note);
        }
        text
    }

    /// Returns the notes that a reader needs to judge the figures.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.outcome.stopped {
            notes.push(format!(
                "stopped by a signal; {} requests had no outcome yet",
                self.outcome.abandoned
            ));
        }
        if let Some((count, fault)) = &self.outcome.unopened {
            notes.push(format!(
                "{count} connections could not be opened before the run, first: {}",
                fault.reason
            ));
        }
        notes.extend(lateness(&self.outcome.record));
        notes
    }

    /// Formats the report as JSON.
    pub fn json(&self) -> Value {
        let (settings, record) = (self.settings, &self.outcome.record);
        let failures = FailureClass::ALL.map(|class| {
            let count = record.failures.get(&class).copied().unwrap_or_default();
            (class.name().to_owned(), count.into())
        });
        let reasons = record.reasons.iter();
        let reasons = reasons.map(|(class, reason)| (class.name().to_owned(), json!(reason)));
        let statuses = record.statuses.iter();
        let statuses = statuses.map(|(status, count)| (status.to_string(), json!(count)));
        let destinations = record.destinations.iter();
        let destinations = destinations.map(|(value, count)| (value.clone(), json!(count)));
        let limits = self.checks.iter().map(|check| {
            json!({
                "name": check.name,
                "limit": check.limit,
                "measured": check.measured,
                "met": check.met,
            })
        });
        json!({
            "schema": SCHEMA,
            "url": settings.address.url(),
            "protocol": settings.protocol.name(settings.address.tls),
            "rate": settings.rate,
            "duration_seconds": settings.duration.as_secs_f64(),
            "connections": settings.connections,
            "streams": settings.streams,
            "threads": settings.threads,
            "elapsed_seconds": self.outcome.elapsed.as_secs_f64(),
            "stopped": self.outcome.stopped,
            "requests": record.requests,
            "succeeded": record.succeeded(),
            "failed": record.failed(),
            "abandoned": self.outcome.abandoned,
            "responses_per_second": self.achieved(),
            "body_bytes": record.body_bytes,
            "latency_ms": milliseconds(&record.latency),
            "own_lateness_ms": milliseconds(&record.late),
            "queued_ms": milliseconds(&record.waited),
            "failures": Value::Object(failures.into_iter().collect()),
            "reasons": Value::Object(reasons.collect()),
            "statuses": Value::Object(statuses.collect()),
            "destinations": Value::Object(destinations.collect()),
            "limits": limits.collect::<Vec<_>>(),
            "notes": self.notes(),
        })
    }
}

fn times(histogram: &Histogram<u64>) -> String {
    if histogram.is_empty() {
        return "nothing was measured".to_owned();
    }
    let quantile = |(name, quantile): (&str, f64)| {
        let value = millis(histogram.value_at_quantile(quantile).min(histogram.max()));
        format!("{} {value:.3}", name.replace('_', "."))
    };
    let quantiles = QUANTILES.map(quantile).join(", ");
    format!("{quantiles}, max {:.3} ms", millis(histogram.max()))
}

fn milliseconds(histogram: &Histogram<u64>) -> Value {
    let mut object = Map::new();
    object.insert("count".to_owned(), histogram.len().into());
    object.insert("mean".to_owned(), (histogram.mean() / 1000.0).into());
    for (name, quantile) in QUANTILES {
        let value = histogram.value_at_quantile(quantile).min(histogram.max());
        object.insert(name.to_owned(), millis(value).into());
    }
    object.insert("max".to_owned(), millis(histogram.max()).into());
    Value::Object(object)
}

/// Formats counts by name, each with its fraction of all requests.
fn counts<'a, N: ToString + 'a>(
    counts: impl Iterator<Item = (&'a N, &'a u64)>,
    all: u64,
) -> String {
    let of = |(name, count): (&N, &u64)| {
        let percent = 100.0 * *count as f64 / all.max(1) as f64;
        format!("{} {count} ({percent:.1} %)", name.to_string())
    };
    counts.map(of).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
