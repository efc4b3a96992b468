//! Table of the results of a scenario under load.

use super::course::{Course, Entrant, Turn, Unit};
use crate::compare::configure::Proxy;
use crate::compare::report::{Section, number, ratio};
use crate::compare::statistics::{median, range};

impl Unit {
    /// Returns the unit of the CPU time column.
    pub(super) fn of_cpu(self) -> &'static str {
        match self {
            Self::Request => "us/request",
            Self::Handshake => "us/handshake",
            Self::Gigabyte => "ms/GB",
        }
    }

    fn per_second(self) -> &'static str {
        match self {
            Self::Request => "requests/s",
            Self::Handshake => "handshakes/s",
            Self::Gigabyte => "GB/s",
        }
    }
}

pub(super) fn section(course: &Course, entrants: &[Entrant]) -> Section {
    let rows = entrants
        .iter()
        .filter(|entrant| !entrant.turns.is_empty())
        .map(|entrant| row(course, entrants, entrant));
    Section {
        title: course.title.to_owned(),
        text: course.text.clone(),
        rows: rows.collect(),
        columns: columns(course),
    }
}

fn columns(course: &Course) -> Vec<String> {
    let mut columns = vec![
        "proxy".to_owned(),
        format!("CPU {}", course.unit.of_cpu()),
        "lowest to highest".to_owned(),
        course.unit.per_second().to_owned(),
        "core busy".to_owned(),
    ];
    if course.unit != Unit::Request {
        columns.push(format!("{} per core", course.unit.per_second()));
    }
    columns.extend(["to HAProxy", "to Envoy"].map(str::to_owned));
    if course.variants.len() > 1 {
        columns.push(format!("to {}", course.variants[0].label));
    }
    columns.push("errors".to_owned());
    columns
}

fn row(course: &Course, entrants: &[Entrant], entrant: &Entrant) -> Vec<String> {
    let cpu_of = |proxy: Option<Proxy>, variant: usize| {
        let mut same = entrants
            .iter()
            .filter(|other| other.proxy() == proxy && other.variant == variant);
        same.next().and_then(Entrant::cpu)
    };
    let base = |proxy| {
        let proxy = entrant.proxy().map(|_| proxy);
        proxy.and_then(|proxy| cpu_of(Some(proxy), entrant.variant))
    };
    let cpu = entrant.cpu();
    let turns = || entrant.turns.iter();
    let (low, high) = range(turns().map(Turn::cpu)).unwrap_or_default();
    let per_second = median(turns().map(Turn::per_second)).unwrap_or_default();
    let busy = median(turns().map(Turn::busy_percent)).unwrap_or_default();
    let mut row = vec![
        entrant.label.clone(),
        number(cpu.unwrap_or_default()),
        format!("{} to {}", number(low), number(high)),
        rate(course.unit, per_second),
        format!("{busy:.0} %"),
    ];
    if course.unit != Unit::Request {
        row.push(rate(course.unit, 100.0 * per_second / busy));
    }
    row.push(ratio(cpu, base(Proxy::Haproxy)));
    row.push(ratio(cpu, base(Proxy::Envoy)));
    if course.variants.len() > 1 {
        let first = entrant.proxy().and_then(|proxy| cpu_of(Some(proxy), 0));
        row.push(ratio(cpu, first));
    }
    row.push(errors(&entrant.turns));
    row
}

fn rate(unit: Unit, per_second: f64) -> String {
    match unit {
        Unit::Request | Unit::Handshake => format!("{per_second:.0}"),
        Unit::Gigabyte => number(per_second),
    }
}

/// Formats the errors of all turns. Errors are in bold, since the other figures of such a run are worthless.
fn errors(turns: &[Turn]) -> String {
    let bad_statuses: u64 = turns.iter().map(|turn| turn.counts.bad_statuses).sum();
    let failures: u64 = turns.iter().map(|turn| turn.counts.failures).sum();
    let short = turns.iter().filter(|turn| turn.is_short()).count();
    if bad_statuses + failures == 0 && short == 0 {
        return "none".to_owned();
    }
    let mut text = format!("{bad_statuses} bad statuses, {failures} failures");
    if short > 0 {
        text.push_str(&format!(", bodies too short in {short} turns"));
    }
    let reason = turns.iter().find_map(|turn| turn.counts.reason.as_deref());
    if let Some(reason) = reason {
        text.push_str(&format!(": {reason}"));
    }
    format!("**{text}**")
}

#[cfg(test)]
pub(super) mod tests;
