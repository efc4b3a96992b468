//! Expectations of a scenario, compared with the figures.

use config_loader::{ExpectedFigure, Figure, Operator, Scenario};
use serde::Serialize;

use super::figures::{Cell, Figures, seconds};
use super::world::is_cluster;

/// Longest time for which a figure must hold by itself, beside the rest of the time.
const HOLDS_MAX: u64 = 1_000_000_000;

/// Expectation with what was found.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// Whether it holds.
    pub passed: bool,
    /// The expectation in words.
    pub expected: String,
    /// The figure that was found, in words.
    pub got: String,
    /// File of the scenario.
    pub file: String,
    /// Line in it.
    pub line: u32,
}

/// Compares all expectations of a scenario.
pub(super) fn check(scenario: &Scenario, figures: &Figures) -> Vec<Checked> {
    let whole = scenario.load.duration.as_nanos() as u64;
    let one = |expected: &ExpectedFigure| {
        let from = expected.from.as_nanos() as u64;
        let to = expected.to.map(|to| to.as_nanos() as u64);
        let next = || {
            let later = scenario
                .events
                .iter()
                .map(|event| event.at.as_nanos() as u64);
            later.filter(|at| *at > from).min()
        };
        let (passed, got, to) = match expected.within {
            None => {
                let to = to.unwrap_or(whole);
                let value = value(&expected.figure, &figures.sum(from, to), &figures.clusters);
                (holds(expected, value), shown(&expected.figure, value), to)
            }
            Some(within) => {
                let to = to.or_else(next).unwrap_or(whole);
                let (passed, got) =
                    settled(expected, (from, to), within.as_nanos() as u64, figures);
                (passed, got, to)
            }
        };
        Checked {
            passed,
            expected: words(expected, from, to),
            got,
            file: expected.location.file.to_string(),
            line: expected.location.line,
        }
    };
    scenario.expected.iter().map(one).collect()
}

/// Finds the time after which a figure holds for the rest.
fn settled(
    expected: &ExpectedFigure,
    (from, to): (u64, u64),
    within: u64,
    figures: &Figures,
) -> (bool, String) {
    let value = |from, to| value(&expected.figure, &figures.sum(from, to), &figures.clusters);
    let holds_for = within.min(HOLDS_MAX).max(figures.width);
    let starts = (from..to).step_by(figures.width as usize);
    let mut settled = starts.filter(|start| {
        holds(expected, value(*start, (start + holds_for).min(to)))
            && holds(expected, value(*start, to))
    });
    match settled.next() {
        Some(start) => {
            let rest = shown(&expected.figure, value(start, to));
            (
                start - from <= within,
                format!("{rest} after {:.1}s", seconds(start - from)),
            )
        }
        None => {
            let late = (from + within).min(to);
            (
                false,
                format!(
                    "{}, and never for the rest",
                    shown(&expected.figure, value(late, to))
                ),
            )
        }
    }
}

fn holds(expected: &ExpectedFigure, value: f64) -> bool {
    let is_percent = matches!(expected.figure, Figure::Failed | Figure::Share(_));
    expected.comparison.holds(value, is_percent)
}

fn value(figure: &Figure, cell: &Cell, clusters: &[String]) -> f64 {
    match figure {
        Figure::Failed => cell.failed_percent(),
        Figure::Share(name) => {
            let own = clusters
                .iter()
                .position(|one| is_cluster(name, one) || is_cluster(one, name));
            own.map_or(0.0, |own| cell.share_percent(own))
        }
        Figure::AttemptsPerRequest => cell.attempts_per_request(),
        Figure::P50 => cell.latency.quantile(0.5),
        Figure::P99 => cell.latency.quantile(0.99),
        Figure::Overflow => cell.refused.iter().sum::<u64>() as f64,
        Figure::Ejected => cell.ejected as f64,
    }
}

fn shown(figure: &Figure, value: f64) -> String {
    match figure {
        Figure::Failed | Figure::Share(_) => format!("{value:.2}%"),
        Figure::AttemptsPerRequest => format!("{value:.3}"),
        Figure::P50 | Figure::P99 => format!("{value:.1}ms"),
        Figure::Overflow | Figure::Ejected => format!("{value:.0}"),
    }
}

fn words(expected: &ExpectedFigure, from: u64, to: u64) -> String {
    let name = match &expected.figure {
        Figure::Failed => "failed".to_owned(),
        Figure::Share(cluster) => format!("share of {cluster}"),
        Figure::AttemptsPerRequest => "attempts per request".to_owned(),
        Figure::P50 => "p50".to_owned(),
        Figure::P99 => "p99".to_owned(),
        Figure::Overflow => "overflow".to_owned(),
        Figure::Ejected => "ejected".to_owned(),
    };
    let sign = match expected.comparison.operator {
        Operator::About => "about ",
        Operator::AtLeast => ">= ",
        Operator::AtMost => "<= ",
        Operator::Less => "< ",
        Operator::More => "> ",
    };
    let unit = match expected.figure {
        Figure::Failed | Figure::Share(_) => "%",
        Figure::P50 | Figure::P99 => "ms",
        _ => "",
    };
    let time = match expected.within {
        None => format!("from {:.1}s to {:.1}s", seconds(from), seconds(to)),
        Some(within) => format!(
            "within {:.1}s after {:.1}s, until {:.1}s",
            within.as_secs_f64(),
            seconds(from),
            seconds(to)
        ),
    };
    format!("{name} {sign}{}{unit} {time}", expected.comparison.value)
}
