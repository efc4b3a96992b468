//! Durations, enums and regular expressions.

use std::sync::Arc;
use std::time::Duration;

use regex::bytes::Regex;

use crate::diagnostic::Code;
use crate::diagnostic::codes::common::{CM001, CM002, CM003, CM017};
use crate::diagnostic::suggest;
use crate::raw::Field;
use crate::re2::Extent;
use crate::validate::Check;

/// Largest length of a regular expression, in bytes.
pub const REGEX_BYTES_MAX: usize = 1024;

/// Returns a duration of at least 1 ms, in whole milliseconds.
pub fn duration(field: &Field<String>, check: &mut Check<'_>) -> Option<Duration> {
    checked_duration(field, false, check)
}

/// Returns a duration as [`duration`] does, and also accepts `0s`.
pub fn duration_or_zero(field: &Field<String>, check: &mut Check<'_>) -> Option<Duration> {
    checked_duration(field, true, check)
}

fn checked_duration(field: &Field<String>, zero: bool, check: &mut Check<'_>) -> Option<Duration> {
    let text = field.get()?;
    let nanos = match parse_duration(text) {
        Ok(nanos) => nanos,
        Err(problem) => {
            let found = check.error(CM003, field.span(), format!("`{text}` is not a duration"));
            match problem {
                DurationProblem::NoUnit => {
                    found.help(format!("add a unit: write for example `{text}s`"))
                }
                DurationProblem::Syntax => found.help("write for example `1.5s` or `200ms`"),
                DurationProblem::TooLong => found.help("the longest is about 292 years"),
            };
            return None;
        }
    };
    if zero && nanos == 0 {
        return Some(Duration::ZERO);
    }
    if nanos < 1_000_000 {
        check
            .error(
                CM001,
                field.span(),
                format!("duration `{text}` is shorter than 1ms"),
            )
            .help("write `1ms` or more, or remove the field for its default");
        return None;
    }
    if nanos % 1_000_000 != 0 {
        check
            .error(
                CM002,
                field.span(),
                format!("duration `{text}` is finer than a millisecond"),
            )
            .help(format!("write `{}ms`", (nanos / 1_000_000) + 1));
        return None;
    }
    u64::try_from(nanos / 1_000_000)
        .ok()
        .map(Duration::from_millis)
}

/// Reason for which a text is not a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DurationProblem {
    /// The text is a number without a unit.
    NoUnit,
    /// The text does not have the form of a duration.
    Syntax,
    /// The duration in nanoseconds exceeds 64 bits.
    TooLong,
}

/// Parses a duration in Go's format, such as `-1h15m30.918s`, in nanoseconds.
///
/// # Errors
/// If the text is not a duration.
pub fn parse_duration(text: &str) -> Result<i64, DurationProblem> {
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(DurationProblem::Syntax);
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (nanos, after) = duration_part(rest)?;
        total += nanos;
        rest = after;
        if total > i128::from(i64::MAX) {
            return Err(DurationProblem::TooLong);
        }
    }
    let nanos = i64::try_from(total).map_err(|_| DurationProblem::TooLong)?;
    Ok(if negative { -nanos } else { nanos })
}

/// Parses one number with its unit. Returns it in nanoseconds, with the rest of the text.
fn duration_part(text: &str) -> Result<(i128, &str), DurationProblem> {
    let is_number = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let (number, after) = text.split_at(text.bytes().take_while(is_number).count());
    let (unit, after) = after.split_at(after.bytes().take_while(|byte| !is_number(byte)).count());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() == 0 || fraction.contains('.') {
        return Err(DurationProblem::Syntax);
    }
    let unit_nanos: i128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "" => return Err(DurationProblem::NoUnit),
        _ => return Err(DurationProblem::Syntax),
    };
    if whole.len() > 19 {
        return Err(DurationProblem::TooLong);
    }
    // Digits past the eighteenth are worth less than a nanosecond, whatever the unit.
    let digits = &fraction[..fraction.len().min(18)];
    let scale = (0..digits.len()).fold(1, |scale: i128, _| scale * 10);
    Ok((
        to_number(whole) * unit_nanos + to_number(digits) * unit_nanos / scale,
        after,
    ))
}

fn to_number(digits: &str) -> i128 {
    digits
        .bytes()
        .fold(0, |value, digit| value * 10 + i128::from(digit - b'0'))
}

/// Returns the enum value with the name in a field. `names` has every accepted name.
pub fn enum_of<T: Copy>(
    field: &Field<String>,
    names: &[(&str, T)],
    check: &mut Check<'_>,
) -> Option<T> {
    let text = field.get()?;
    if let Some((_, value)) = names.iter().find(|(name, _)| name == text) {
        return Some(*value);
    }
    let known: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
    let found = check.error(
        CM017,
        field.span(),
        format!("`{text}` is not one of {}", known.join(", ")),
    );
    if let Some(name) = suggest::nearest(text, known.iter().copied()) {
        found.help(format!("did you mean `{name}`?"));
    } else {
        found.help("write one of these names");
    }
    None
}

/// Returns a text that satisfies `holds`. Otherwise it reports that "`...` is not WHAT".
pub fn text_that<'f>(
    field: &'f Field<String>,
    holds: fn(&str) -> bool,
    what: &str,
    code: Code,
    check: &mut Check<'_>,
) -> Option<&'f str> {
    let text = field.get()?;
    if holds(text) {
        return Some(text);
    }
    check.error(code, field.span(), format!("`{text}` is not {what}"));
    None
}

/// Diagnostic codes for the regular expression of a field.
#[derive(Clone, Copy, Debug)]
pub struct RegexCodes {
    /// Code for an empty expression.
    pub empty: Code,
    /// Code for an expression longer than [`REGEX_BYTES_MAX`].
    pub long: Code,
    /// Code for an expression that is not in RE2 syntax.
    pub syntax: Code,
}

/// Compiles a regular expression in RE2 syntax that must match the `extent` of a value, which need not be UTF-8.
pub fn regex(
    field: &Field<String>,
    extent: Extent,
    codes: RegexCodes,
    check: &mut Check<'_>,
) -> Option<Arc<Regex>> {
    let text = field.get()?;
    if text.is_empty() {
        check
            .error(codes.empty, field.span(), "empty regex")
            .help("to match any text, write `.*`");
        return None;
    }
    if text.len() > REGEX_BYTES_MAX {
        check
            .error(
                codes.long,
                field.span(),
                format!("regex is longer than {REGEX_BYTES_MAX} bytes"),
            )
            .help("split it into several match blocks, which are alternatives");
        return None;
    }
    if check.regexes().is_spent() {
        // said at the first one that is too much
        return None;
    }
    let problem = match check.regexes().compile(text, extent) {
        Ok(regex) => return Some(regex),
        Err(problem) => problem,
    };
    let is_spent = check.regexes().is_spent();
    let found = check.error(
        codes.syntax,
        field.span(),
        format!("regex `{text}` is invalid: {problem}"),
    );
    if text.starts_with('*') {
        found.help("to match any text, write `.*`");
    } else if problem.starts_with("look-around") {
        found.help(
            "RE2 has no look-around; withoutHeaders or an earlier rule can often say the same",
        );
    } else if is_spent {
        found.help("repeat less in the expressions, or split the object into several");
    } else if problem.ends_with("MiB") {
        found.help("repeat less, or match a shorter part");
    } else {
        found.help("the syntax is that of RE2, as in Envoy");
    }
    None
}
