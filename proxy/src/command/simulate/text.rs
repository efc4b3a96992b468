//! Report of a simulation for a person: a table by interval, what happened, and the expectations.

use std::fmt::Write;

use crate::command::counted;
use crate::simulate::{Happening, Report, Row};

/// Largest number of events that are listed.
const EVENTS_MAX: usize = 200;

/// Renders the report.
pub(super) fn render(report: &Report) -> String {
    let mut out = String::new();
    let workers = counted(report.workers.into(), "worker");
    let (proxies, workers) = match report.proxies {
        1 => ("1 proxy".to_owned(), workers),
        many => (format!("{many} proxies"), format!("{workers} each")),
    };
    _ = writeln!(
        out,
        "{}: {}/s, {} with {}, seed {}\n",
        report.url, report.rate, proxies, workers, report.seed
    );
    for note in &report.notes {
        _ = writeln!(out, "note: {note}\n");
    }
    table(report, &mut out);
    if !report.events.is_empty() {
        out.push('\n');
    }
    for event in report.events.iter().take(EVENTS_MAX) {
        _ = writeln!(out, "{:>9}  {}", clock(event.at), line(event));
    }
    if let Some(more) = report
        .events
        .len()
        .checked_sub(EVENTS_MAX)
        .filter(|more| *more > 0)
    {
        _ = writeln!(out, "{:>9}  and {more} more; -o json has all", "");
    }
    if !report.expectations.is_empty() {
        out.push('\n');
    }
    for one in &report.expectations {
        let word = if one.passed { "ok  " } else { "FAIL" };
        _ = writeln!(out, "{word}  {}: {}", one.expected, one.got);
        if !one.passed {
            _ = writeln!(out, "      {}:{}", one.file, one.line);
        }
    }
    out
}

fn table(report: &Report, out: &mut String) {
    let mut head = [
        "from", "requests", "failed", "failed %", "p50 ms", "p99 ms", "attempts",
    ]
    .map(str::to_owned)
    .to_vec();
    head.extend(report.clusters.iter().map(|name| format!("{name} %")));
    head.extend(["ejected", "panic", "overflow"].map(str::to_owned));
    let mut lines = vec![head];
    lines.extend(report.rows.iter().map(|row| cells(clock(row.from), row)));
    lines.push(cells("total".to_owned(), &report.total));
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..lines[0].len())
        .map(|at| width(at).unwrap_or(0))
        .collect();
    for line in &lines {
        for (cell, width) in line.iter().zip(&widths) {
            _ = write!(out, "{cell:>width$}  ");
        }
        let trimmed = out.trim_end_matches(' ').len();
        out.truncate(trimmed);
        out.push('\n');
    }
}

fn cells(name: String, row: &Row) -> Vec<String> {
    let mut cells = vec![
        name,
        row.requests.to_string(),
        row.failed.to_string(),
        format!("{:.2}", row.failed_percent),
        format!("{:.1}", row.p50_ms),
        format!("{:.1}", row.p99_ms),
        format!("{:.3}", row.attempts_per_request),
    ];
    cells.extend(row.shares.iter().map(|share| format!("{share:.1}")));
    cells.push(row.ejected.to_string());
    cells.push(if row.panic { "yes" } else { "-" }.to_owned());
    cells.push(row.overflow.to_string());
    cells
}

/// Describes an event in one line.
pub(super) fn line(event: &Happening) -> String {
    let mut line = String::new();
    let endpoint = event.endpoint.as_deref();
    match (&*event.cluster, endpoint) {
        ("", Some(target)) => _ = write!(line, "[{}] {target}: ", event.kind),
        ("", None) => _ = write!(line, "[{}] ", event.kind),
        (cluster, None) => _ = write!(line, "{cluster}: "),
        (cluster, Some(endpoint)) => _ = write!(line, "{endpoint} of {cluster}: "),
    }
    line.push_str(&event.text);
    if event.proxies > 1 {
        _ = write!(line, " (at {} proxies)", event.proxies);
    }
    line
}

/// Renders a time since the start: `1:02.500`.
pub(super) fn clock(seconds: f64) -> String {
    let millis = (seconds * 1_000.0).round() as u64;
    let (minutes, rest) = (millis / 60_000, millis % 60_000);
    match rest % 1_000 {
        0 => format!("{minutes}:{:02}", rest / 1_000),
        part => format!("{minutes}:{:02}.{part:03}", rest / 1_000),
    }
}
