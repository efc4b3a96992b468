//! Values of expressions.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::super::start_time::TimeFormat;
use super::super::write::print;

/// Error of an evaluation: an absent attribute, or a value of a wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoValue;

/// Value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Null,
    Bool(bool),
    Double(f64),
    /// Nanoseconds.
    Duration(i64),
    Int(i64),
    /// Text, which need not be UTF-8.
    Text(Cow<'a, [u8]>),
    Time(SystemTime),
    Uint(u64),
}

impl<'a> Value<'a> {
    pub(super) fn text(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text.as_bytes()))
    }

    pub(super) fn duration(duration: Duration) -> Self {
        Self::Duration(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }

    pub(super) fn int(value: impl TryInto<i64>) -> Self {
        Self::Int(value.try_into().unwrap_or(i64::MAX))
    }

    /// Whether two values are equal. Numbers are compared by value; other values of different types are not equal.
    pub(super) fn is_equal(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            _ => self.compare(other) == Some(Ordering::Equal),
        }
    }

    /// Order of two values; `None` if they have none.
    pub(super) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Duration(a), Self::Duration(b)) => Some(a.cmp(b)),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            (Self::Time(a), Self::Time(b)) => Some(a.cmp(b)),
            _ => match (self.whole(), other.whole()) {
                (Some(a), Some(b)) => Some(a.cmp(&b)),
                _ => self.number()?.partial_cmp(&other.number()?),
            },
        }
    }

    /// Value of an integer.
    fn whole(&self) -> Option<i128> {
        match self {
            Self::Int(value) => Some(i128::from(*value)),
            Self::Uint(value) => Some(i128::from(*value)),
            _ => None,
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "a double has 53 bits")]
    fn number(&self) -> Option<f64> {
        match self {
            Self::Double(value) => Some(*value),
            _ => self.whole().map(|value| value as f64),
        }
    }

    /// Appends the value as text, as CEL's `string` prints it. Returns false for a value without a text.
    pub(super) fn print(&self, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Null => return false,
            Self::Bool(value) => print(out, value),
            Self::Double(value) => print(out, value),
            Self::Duration(nanos) => print_seconds(out, *nanos),
            Self::Int(value) => print(out, value),
            Self::Text(text) => out.extend_from_slice(text),
            Self::Time(time) => match TimeFormat::parse("") {
                Some(format) => format.print(out, *time),
                None => return false,
            },
            Self::Uint(value) => print(out, value),
        }
        true
    }

    /// Value as the argument of a conversion to an integer.
    pub(super) fn seconds(time: SystemTime) -> i64 {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    }
}

/// Appends seconds with their fraction, as in `1.5s`.
fn print_seconds(out: &mut Vec<u8>, nanos: i64) {
    const NANOS: u64 = 1_000_000_000;
    if nanos < 0 {
        out.push(b'-');
    }
    let nanos = nanos.unsigned_abs();
    print(out, nanos / NANOS);
    if !nanos.is_multiple_of(NANOS) {
        let fraction = format!(".{:09}", nanos % NANOS);
        out.extend_from_slice(fraction.trim_end_matches('0').as_bytes());
    }
    out.push(b's');
}
