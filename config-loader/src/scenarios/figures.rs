//! Expectations of a scenario: figures, comparisons, and the time that they are about.

use std::time::Duration;

use super::checked::{Comparison, ExpectedFigure, Figure, Operator};
use super::raw;
use crate::diagnostic::codes::common::{CM019, SIM001, SIM002};
use crate::raw::{Field, IntOrString, Map};
use crate::span::Span;
use crate::validate::scalar::{at_most_one, duration_or_zero, parse_duration};
use crate::validate::{Check, api};

/// Form of a number in a comparison.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Number,
    Percent,
    Time,
}

impl Form {
    fn example(self) -> &'static str {
        match self {
            Form::Number => "\"<1.2\"",
            Form::Percent => "\"<0.1%\"",
            Form::Time => "\"<250ms\"",
        }
    }
}

/// Adds the expectations of one entry of `expect`, which share their time.
pub(super) fn expected(
    raw: &raw::Expect,
    at: Span,
    whole: Duration,
    found: &mut Vec<ExpectedFigure>,
    check: &mut Check<'_>,
) {
    let spans = [("from", raw.from.span()), ("after", raw.after.span())];
    if !at_most_one(&spans, CM019, check) {
        return;
    }
    let begin = if raw.after.span().is_none() {
        ("from", &raw.from)
    } else {
        ("after", &raw.after)
    };
    let mut written = |name: &str, field: &Field<String>| match field.span().is_none() {
        true => None,
        false => time(field, name, at, whole, check),
    };
    let from = written(begin.0, begin.1).unwrap_or_default();
    let to = written("to", &raw.to);
    let within = duration_or_zero(&raw.within, check);
    if to.is_some_and(|to| to <= from) {
        let found = check.error(SIM001, raw.to.span(), "ends before it begins");
        found.help("write a later `to`");
    }
    let before = found.len();
    for (figure, comparison) in figures(raw, check) {
        found.push(ExpectedFigure {
            figure,
            comparison,
            from,
            to,
            within,
            location: check.location(at),
        });
    }
    if found.len() == before && !check.failed() {
        let found = check.error(SIM001, at, "expects nothing");
        found.help(
            "write one of `failed`, `share`, `attempts-per-request`, `p50`, `p99`, `overflow` and `ejected`",
        );
    }
}

fn figures(raw: &raw::Expect, check: &mut Check<'_>) -> Vec<(Figure, Comparison)> {
    let mut all = Vec::new();
    let mut add = |figure, field: &Field<IntOrString>, form| {
        let text = field.get()?;
        let comparison = comparison(&text_of(text), form, field.span(), check)?;
        all.push((figure, comparison));
        Some(())
    };
    add(Figure::Failed, &raw.failed, Form::Percent);
    add(
        Figure::AttemptsPerRequest,
        &raw.attempts_per_request,
        Form::Number,
    );
    add(Figure::Overflow, &raw.overflow, Form::Number);
    add(Figure::Ejected, &raw.ejected, Form::Number);
    add(Figure::P50, &raw.p50.map(|text| as_text(text)), Form::Time);
    add(Figure::P99, &raw.p99.map(|text| as_text(text)), Form::Time);
    for (cluster, _, share) in raw.share.get().into_iter().flat_map(Map::iter) {
        add(Figure::Share(cluster.into()), share, Form::Percent);
    }
    all
}

fn as_text(text: &str) -> IntOrString {
    IntOrString::String(text.to_owned())
}

fn text_of(value: &IntOrString) -> String {
    match value {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(text) => text.clone(),
    }
}

fn comparison(text: &str, form: Form, at: Span, check: &mut Check<'_>) -> Option<Comparison> {
    let operators = [
        ("<=", Operator::AtMost),
        (">=", Operator::AtLeast),
        ("<", Operator::Less),
        (">", Operator::More),
        ("", Operator::About),
    ];
    let mut found = operators.into_iter().filter_map(|(sign, operator)| {
        let rest = text.trim().strip_prefix(sign)?;
        Some((operator, number(rest.trim(), form)?))
    });
    let Some((operator, value)) = found.next() else {
        let error = check.error(SIM002, at, format!("{text:?} is no comparison"));
        error.help(format!("write one such as {}", form.example()));
        return None;
    };
    Some(Comparison { operator, value })
}

fn number(text: &str, form: Form) -> Option<f64> {
    let number = match form {
        Form::Number => text.parse().ok(),
        Form::Percent => text.strip_suffix('%').unwrap_or(text).trim().parse().ok(),
        Form::Time => parse_duration(text).ok().map(|nanos| nanos as f64 / 1e6),
    };
    number.filter(|number: &f64| number.is_finite() && *number >= 0.0)
}

/// Returns a share, 0 to 1, from a percentage.
pub(super) fn percent(value: &IntOrString, at: Span, check: &mut Check<'_>) -> Option<f64> {
    let text = text_of(value);
    let share = number(&text, Form::Percent).filter(|share| *share <= 100.0);
    if share.is_none() {
        let found = check.error(SIM002, at, format!("{text:?} is no percentage"));
        found.help("write one from 0% to 100%");
    }
    share.map(|share| share / 100.0)
}

/// Returns a time within a scenario of this length.
pub(super) fn time(
    field: &Field<String>,
    name: &str,
    at: Span,
    whole: Duration,
    check: &mut Check<'_>,
) -> Option<Duration> {
    if field.span().is_none() {
        api::required(at, name, "", SIM001, check);
        return None;
    }
    let time = duration_or_zero(field, check)?;
    if time > whole {
        let message = format!("`{name}` is after the end of the load, {whole:?}");
        let found = check.error(SIM001, field.span(), message);
        found.help("write an earlier time, or a longer `load.for`");
        return None;
    }
    Some(time)
}
