//! `strait top --once`: the rates of one interval as text.

use std::fmt::Write;

use crate::admin::activity::rates::{Column, Rates, View, sort};

/// The line that sums up a rates.
pub(super) fn heading(admin: &str, rates: &Rates) -> String {
    let failed = (rates.rate > 0.0).then(|| rates.failed / rates.rate * 100.0);
    let mut text = format!(
        "{admin}  {}  generation {}  {} req/s  {} failed  {} active",
        rates.version,
        rates.generation,
        count(rates.rate),
        percent(failed),
        rates.active
    );
    if !rates.rejected.is_empty() {
        // writing to a string cannot fail
        let _ = write!(text, "  {} rejected", rates.rejected.len());
    }
    text
}

/// Renders the tables of an interval, or one of them, and the changes.
pub(super) fn render(admin: &str, rates: &Rates, only: Option<View>, column: Column) -> String {
    let mut text = heading(admin, rates) + "\n";
    let views = View::ALL.into_iter();
    for view in views.filter(|view| only.is_none_or(|only| only == *view)) {
        let mut rows: Vec<_> = rates.rows(view).iter().collect();
        sort(&mut rows, column, false);
        let width = rows.iter().map(|row| row.name.chars().count()).max();
        let width = width.unwrap_or(0).max(view.title().len());
        let title = view.title();
        let _ = writeln!(
            text,
            "\n{title:width$}  {:>9}  {:>7}  {:>9}  {:>9}  {:>6}",
            "req/s", "failed", "p50", "p99", "active"
        );
        for row in rows {
            let active = row
                .active
                .map_or("-".to_owned(), |active| active.to_string());
            let _ = write!(
                text,
                "{:width$}  {:>9}  {:>7}  {:>9}  {:>9}  {active:>6}",
                row.name,
                count(row.rate),
                percent(row.failed_percent()),
                milliseconds(row.p50_ms),
                milliseconds(row.p99_ms)
            );
            let about = match &row.unavailable {
                Some(reason) => format!("{}: {reason}", row.about),
                None => row.about.clone(),
            };
            let _ = writeln!(text, "  {about}");
        }
    }
    for change in &rates.changes {
        let _ = writeln!(text, "\n{change}");
    }
    let lines = text.lines().map(str::trim_end);
    lines.map(|line| format!("{line}\n")).collect()
}

/// Renders a rate.
pub(super) fn count(rate: f64) -> String {
    match rate {
        0.0 => "0".to_owned(),
        ..100.0 => format!("{rate:.1}"),
        _ => format!("{rate:.0}"),
    }
}

/// Renders a share.
pub(super) fn percent(share: Option<f64>) -> String {
    match share {
        None => "-".to_owned(),
        Some(0.0) => "0%".to_owned(),
        Some(share) => format!("{share:.1}%"),
    }
}

/// Renders a duration.
pub(super) fn milliseconds(time: Option<f64>) -> String {
    match time {
        None => "-".to_owned(),
        Some(time @ ..10.0) => format!("{time:.1}ms"),
        Some(time @ 10.0..10_000.0) => format!("{time:.0}ms"),
        Some(time) => format!("{:.1}s", time / 1000.0),
    }
}
