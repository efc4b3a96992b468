//! Functions of expressions.

use std::borrow::Cow;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::value::{NoValue, Value};
use crate::dates::{SECONDS_PER_DAY, year_month_day};

/// Function with values as arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Contains,
    Double,
    Duration,
    EndsWith,
    Int,
    LowerAscii,
    Size,
    StartsWith,
    String,
    Timestamp,
    Uint,
    UpperAscii,
}

/// Functions by name, with the number of their arguments. Those of texts are called as methods.
const FUNCTIONS: [(&str, Function, usize); 12] = [
    ("contains", Function::Contains, 2),
    ("double", Function::Double, 1),
    ("duration", Function::Duration, 1),
    ("endsWith", Function::EndsWith, 2),
    ("int", Function::Int, 1),
    ("lowerAscii", Function::LowerAscii, 1),
    ("size", Function::Size, 1),
    ("startsWith", Function::StartsWith, 2),
    ("string", Function::String, 1),
    ("timestamp", Function::Timestamp, 1),
    ("uint", Function::Uint, 1),
    ("upperAscii", Function::UpperAscii, 1),
];

impl Function {
    /// Returns a function by name, and the number of its arguments, with the text of a method as the first.
    pub(super) fn find(name: &str, is_method: bool) -> Option<(Self, usize)> {
        let found = FUNCTIONS.iter().find(|(known, ..)| *known == name);
        let (_, function, count) = found.copied()?;
        let fits = match function {
            Self::Size => true,
            Self::Contains
            | Self::EndsWith
            | Self::LowerAscii
            | Self::StartsWith
            | Self::UpperAscii => is_method,
            _ => !is_method,
        };
        fits.then_some((function, count))
    }

    /// Whether different arguments have different results.
    pub(super) fn keeps_values(self) -> bool {
        matches!(self, Self::LowerAscii | Self::String | Self::UpperAscii)
    }

    /// Whether Envoy lacks it in filters.
    pub(super) fn is_of_texts(self) -> bool {
        matches!(self, Self::LowerAscii | Self::String | Self::UpperAscii)
    }
}

/// Value of a call.
pub(super) fn call<'a>(
    function: Function,
    first: Value<'a>,
    second: Option<Value<'a>>,
) -> Result<Value<'a>, NoValue> {
    let result = match (function, first, second) {
        (Function::Contains, Value::Text(text), Some(Value::Text(part))) => {
            Some(Value::Bool(memchr::memmem::find(&text, &part).is_some()))
        }
        (Function::EndsWith, Value::Text(text), Some(Value::Text(part))) => {
            Some(Value::Bool(text.ends_with(&part)))
        }
        (Function::StartsWith, Value::Text(text), Some(Value::Text(part))) => {
            Some(Value::Bool(text.starts_with(&part)))
        }
        (Function::LowerAscii, Value::Text(text), None) => {
            Some(Value::Text(text.to_ascii_lowercase().into()))
        }
        (Function::UpperAscii, Value::Text(text), None) => {
            Some(Value::Text(text.to_ascii_uppercase().into()))
        }
        (Function::Size, Value::Text(text), None) => Some(Value::int(characters(&text))),
        (Function::String, value, None) => string(value),
        (Function::Int, value, None) => int(&value),
        (Function::Uint, value, None) => uint(&value),
        (Function::Double, value, None) => double(&value),
        (Function::Duration, Value::Text(text), None) => duration(utf8(&text)?),
        (Function::Duration, value @ Value::Duration(_), None) => Some(value),
        (Function::Timestamp, Value::Text(text), None) => timestamp(utf8(&text)?),
        (Function::Timestamp, value @ Value::Time(_), None) => Some(value),
        _ => None,
    };
    result.ok_or(NoValue)
}

/// Part of a text between separators.
pub(super) fn split<'a>(
    text: &Value<'_>,
    separator: &Value<'_>,
    number: usize,
) -> Result<Value<'a>, NoValue> {
    let (Value::Text(text), Value::Text(separator)) = (text, separator) else {
        return Err(NoValue);
    };
    let (text, separator) = (utf8(text)?, utf8(separator)?);
    let part = match separator.is_empty() {
        true => text.chars().nth(number).map(String::from),
        false => text.split(separator).nth(number).map(str::to_owned),
    };
    let part = part.ok_or(NoValue)?;
    Ok(Value::Text(part.into_bytes().into()))
}

fn utf8(text: &[u8]) -> Result<&str, NoValue> {
    std::str::from_utf8(text).map_err(|_| NoValue)
}

/// Number of characters; each byte that is not UTF-8 counts as one.
fn characters(text: &[u8]) -> usize {
    let chunks = text.utf8_chunks();
    chunks
        .map(|chunk| chunk.valid().chars().count() + chunk.invalid().len())
        .sum()
}

fn string(value: Value<'_>) -> Option<Value<'_>> {
    match value {
        Value::Text(text) => Some(Value::Text(text)),
        value => {
            let mut out = Vec::new();
            value
                .print(&mut out)
                .then_some(Value::Text(Cow::Owned(out)))
        }
    }
}

fn int<'a>(value: &Value<'_>) -> Option<Value<'a>> {
    let number = match value {
        Value::Int(number) => Some(*number),
        Value::Uint(number) => i64::try_from(*number).ok(),
        Value::Double(number) => whole(*number),
        Value::Text(text) => utf8(text).ok()?.parse().ok(),
        Value::Time(time) => Some(Value::seconds(*time)),
        _ => None,
    };
    number.map(Value::Int)
}

fn uint<'a>(value: &Value<'_>) -> Option<Value<'a>> {
    let number = match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::Uint(number) => Some(*number),
        Value::Double(number) => whole(*number).and_then(|number| u64::try_from(number).ok()),
        Value::Text(text) => utf8(text).ok()?.parse().ok(),
        _ => None,
    };
    number.map(Value::Uint)
}

/// Whole part of a number within 64 bits.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the range is checked before"
)]
fn whole(number: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_807.0;
    (number > -LIMIT && number < LIMIT).then_some(number as i64)
}

#[expect(clippy::cast_precision_loss, reason = "a double has 53 bits")]
fn double<'a>(value: &Value<'_>) -> Option<Value<'a>> {
    let number = match value {
        Value::Double(number) => Some(*number),
        Value::Int(number) => Some(*number as f64),
        Value::Uint(number) => Some(*number as f64),
        Value::Text(text) => utf8(text).ok()?.parse().ok(),
        _ => None,
    };
    number.map(Value::Double)
}

/// A text such as `1h2m3.5s`.
fn duration<'a>(text: &str) -> Option<Value<'a>> {
    const UNITS: [(&str, f64); 7] = [
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("m", 6e10),
        ("h", 3.6e12),
    ];
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(Value::Duration(0));
    }
    let (mut nanos, mut is_any) = (0.0, false);
    while !rest.is_empty() {
        let digits = rest.find(|one: char| !one.is_ascii_digit() && one != '.')?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|one: char| one.is_ascii_digit() || one == '.');
        let (unit, after) = after.split_at(letters.unwrap_or(after.len()));
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        nanos += number.parse::<f64>().ok()? * factor;
        (rest, is_any) = (after, true);
    }
    let nanos = whole((sign * nanos).round())?;
    is_any.then_some(Value::Duration(nanos))
}

/// A time such as `2026-01-02T03:04:05Z`.
fn timestamp<'a>(text: &str) -> Option<Value<'a>> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u32>().ok();
    let is_shaped = text.is_ascii()
        && [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')]
            .into_iter()
            .all(|(at, sign)| text.as_bytes().get(at) == Some(&sign));
    if !is_shaped {
        return None;
    }
    let date = [number(0, 4)?, number(5, 7)?, number(8, 10)?];
    let [hour, minute, second] = [number(11, 13)?, number(14, 16)?, number(17, 19)?];
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let rest = text.get(19..)?;
    let (fraction, zone) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.find(|one: char| !one.is_ascii_digit())?),
        None => ("", rest),
    };
    let nanos = match fraction {
        "" => 0,
        _ => format!("{fraction:0<9}").get(..9)?.parse().ok()?,
    };
    let of_day = u64::from(hour * 3_600 + minute * 60 + second);
    let utc = (days(date)? * SECONDS_PER_DAY + of_day).checked_add_signed(-offset(zone)?)?;
    Some(Value::Time(UNIX_EPOCH + Duration::new(utc, nanos)))
}

/// Days from 1970 to a date.
fn days(date: [u32; 3]) -> Option<u64> {
    let year = u64::from(date[0]);
    // at most one more than those of the years before
    let first = year.checked_sub(1970)? * 365;
    let candidates = first..first + year;
    let [year, month, day] = date;
    let wanted = (
        i64::from(year),
        u8::try_from(month).ok()?,
        u8::try_from(day).ok()?,
    );
    let position = |day: u64| year_month_day(day.cast_signed());
    let (mut low, mut high) = (candidates.start, candidates.end);
    while low < high {
        let middle = u64::midpoint(low, high);
        match position(middle) < wanted {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    (position(low) == wanted).then_some(low)
}

/// Seconds of a time zone, `Z` or `+HH:MM`.
fn offset(zone: &str) -> Option<i64> {
    let sign = match zone.get(..1)? {
        "Z" => return (zone.len() == 1).then_some(0),
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    Some(sign * (hours * 3_600 + minutes * 60))
}

/// A time, moved by nanoseconds.
pub(super) fn moved(time: SystemTime, nanos: i64) -> Option<SystemTime> {
    let by = Duration::from_nanos(nanos.unsigned_abs());
    match nanos < 0 {
        true => time.checked_sub(by),
        false => time.checked_add(by),
    }
}

/// Nanoseconds from `b` to `a`.
pub(super) fn between(a: SystemTime, b: SystemTime) -> Option<i64> {
    let nanos = |time: Duration| i64::try_from(time.as_nanos()).ok();
    match a.duration_since(b) {
        Ok(after) => nanos(after),
        Err(before) => nanos(before.duration()).map(|nanos| -nanos),
    }
}
