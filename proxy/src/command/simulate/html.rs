//! Report of a simulation as one HTML page: charts as inline SVG, without scripts, in light and dark.

use std::fmt::Write;

use super::text::{clock, line};
use crate::simulate::{Report, Row};

const STYLE: &str = include_str!("page.css");

/// Size of a chart, and of the room beside it for its axes.
const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 180.0;
const LEFT: f64 = 56.0;
const BOTTOM: f64 = 22.0;

/// Curve of a chart: its name, and its value in each row.
type Curve<'a> = (&'a str, Box<dyn Fn(&Row) -> f64 + 'a>);

/// Renders the page.
pub(super) fn page(report: &Report) -> String {
    let mut out = String::new();
    let url = escaped(&report.url);
    _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Simulation of {url}</title>\n\
         <style>{STYLE}</style></head><body><main>\n<h1>Simulation of {url}</h1>\n\
         <p>{}/s, proxies: {}, workers of each: {}, seed {}. {} requests, {} failed.</p>\n",
        report.rate,
        report.proxies,
        report.workers,
        report.seed,
        report.total.requests,
        report.total.failed
    );
    for note in &report.notes {
        _ = writeln!(out, "<p class=\"note\">{}</p>", escaped(note));
    }
    expectations(report, &mut out);
    charts(report, &mut out);
    events(report, &mut out);
    table(report, &mut out);
    out.push_str("</main></body></html>\n");
    out
}

fn expectations(report: &Report, out: &mut String) {
    if report.expectations.is_empty() {
        return;
    }
    out.push_str("<h2>Expectations</h2>\n<ul>\n");
    for one in &report.expectations {
        let (class, word) = match one.passed {
            true => ("ok", "holds"),
            false => ("bad", "does not hold"),
        };
        let (expected, got) = (escaped(&one.expected), escaped(&one.got));
        _ = writeln!(
            out,
            "<li><b class=\"{class}\">{word}</b> {expected}: {got} <small>line {}</small></li>",
            one.line
        );
    }
    out.push_str("</ul>\n");
}

fn charts(report: &Report, out: &mut String) {
    let second = report.interval;
    chart(
        report,
        "Requests per second",
        &[
            (
                "requests",
                Box::new(move |row| row.requests as f64 / second),
            ),
            ("failed", Box::new(move |row| row.failed as f64 / second)),
        ],
        out,
    );
    chart(
        report,
        "Latency in milliseconds",
        &[
            ("p50", Box::new(|row| row.p50_ms)),
            ("p99", Box::new(|row| row.p99_ms)),
        ],
        out,
    );
    chart(
        report,
        "Attempts per request",
        &[("attempts", Box::new(|row| row.attempts_per_request))],
        out,
    );
    let shares = report.clusters.iter().enumerate();
    let shares: Vec<Curve<'_>> = shares
        .map(|(at, name)| -> Curve<'_> {
            let share = move |row: &Row| row.shares.get(at).copied().unwrap_or_default();
            (name, Box::new(share))
        })
        .collect();
    chart(report, "Share of clusters in percent", &shares, out);
    chart(
        report,
        "Ejected endpoints, and requests refused by limits per second",
        &[
            ("ejected", Box::new(|row| row.ejected as f64)),
            (
                "overflow",
                Box::new(move |row| row.overflow as f64 / second),
            ),
        ],
        out,
    );
}

/// Draws curves over time, with the events of the scenario as lines.
fn chart(report: &Report, title: &str, curves: &[Curve<'_>], out: &mut String) {
    let values = report
        .rows
        .iter()
        .flat_map(|row| curves.iter().map(|(_, value)| value(row)));
    let top = nice(values.fold(0.0, f64::max));
    let end = report.total.to.max(f64::MIN_POSITIVE);
    let x = |seconds: f64| LEFT + seconds / end * (WIDTH - LEFT);
    let y = |value: f64| HEIGHT * (1.0 - value / top) + 8.0;
    let (width, height) = (WIDTH + 8.0, HEIGHT + BOTTOM + 8.0);
    _ = writeln!(
        out,
        "<figure><figcaption>{title}</figcaption><svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{title}\">"
    );
    for part in [0.0, 0.5, 1.0] {
        let (value, at) = (top * part, y(top * part));
        _ = writeln!(
            out,
            "<line class=\"grid\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"side\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            LEFT - 6.0,
            at + 4.0,
            rounded(value)
        );
        let seconds = end * part;
        _ = writeln!(
            out,
            "<text class=\"time\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            x(seconds),
            HEIGHT + BOTTOM,
            clock(seconds.round())
        );
    }
    for event in report
        .events
        .iter()
        .filter(|event| event.kind == "scenario")
    {
        let (at, foot) = (x(event.at), HEIGHT + 8.0);
        let words = escaped(&line(event));
        _ = writeln!(
            out,
            "<line class=\"event\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"8\" y2=\"{foot}\"><title>{} {words}</title></line>",
            clock(event.at)
        );
    }
    for (number, (_, value)) in curves.iter().enumerate() {
        let mut points = String::new();
        for row in &report.rows {
            let at = y(value(row));
            _ = write!(
                points,
                "{:.1},{at:.1} {:.1},{at:.1} ",
                x(row.from),
                x(row.to)
            );
        }
        let points = points.trim_end();
        _ = writeln!(
            out,
            "<polyline class=\"c{}\" points=\"{points}\"/>",
            number % 8
        );
    }
    out.push_str("</svg>");
    key(curves, out);
    out.push_str("</figure>\n");
}

/// Lists the names of curves with their colors.
fn key(curves: &[Curve<'_>], out: &mut String) {
    out.push_str("<p class=\"key\">");
    for (number, (name, _)) in curves.iter().enumerate() {
        _ = write!(
            out,
            "<span class=\"k{}\">{}</span> ",
            number % 8,
            escaped(name)
        );
    }
    out.push_str("</p>");
}

fn events(report: &Report, out: &mut String) {
    out.push_str("<h2>What happened</h2>\n<table><thead><tr><th>Time</th><th>Kind</th><th>Event</th></tr></thead><tbody>\n");
    for event in &report.events {
        _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td class=\"words\">{}</td></tr>",
            clock(event.at),
            event.kind,
            escaped(&line(event))
        );
    }
    out.push_str("</tbody></table>\n");
}

fn table(report: &Report, out: &mut String) {
    out.push_str("<h2>Intervals</h2>\n<table><thead><tr>");
    let before = [
        "From", "Requests", "Failed", "Failed %", "p50 ms", "p99 ms", "Attempts",
    ];
    let shares = report
        .clusters
        .iter()
        .map(|name| format!("{} %", escaped(name)));
    let head = before.into_iter().map(str::to_owned).chain(shares);
    for name in head.chain(["Ejected", "Panic", "Overflow"].map(str::to_owned)) {
        _ = write!(out, "<th>{name}</th>");
    }
    out.push_str("</tr></thead><tbody>\n");
    for row in &report.rows {
        _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.2}</td><td>{:.1}</td><td>{:.1}</td><td>{:.3}</td>",
            clock(row.from),
            row.requests,
            row.failed,
            row.failed_percent,
            row.p50_ms,
            row.p99_ms,
            row.attempts_per_request
        );
        for share in &row.shares {
            _ = write!(out, "<td>{share:.1}</td>");
        }
        let panic = if row.panic { "yes" } else { "-" };
        _ = writeln!(
            out,
            "<td>{}</td><td>{panic}</td><td>{}</td></tr>",
            row.ejected, row.overflow
        );
    }
    out.push_str("</tbody></table>\n");
}

/// Rounds the end of an axis up: to 1, 2 or 5 times a power of ten.
fn nice(value: f64) -> f64 {
    if value <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    let mut fitting = steps.into_iter().filter(|step| *step >= value * 0.999_999);
    fitting.next().unwrap_or(value)
}

fn rounded(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
