//! Durations and limits in the format of flags.

use std::fmt;
use std::time::Duration;

/// Parses `500us`, `10ms`, `1.5s`, `2m`, `1h`: one number, one unit.
///
/// # Errors
/// When the text is anything else.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration; write for example 30s, 500ms or 2m");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let value: f64 = digits.parse().map_err(|_| wrong())?;
    let unit = match &text[digits.len()..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    Duration::try_from_secs_f64(value * unit).map_err(|_| wrong())
}

/// Maximum number of failed requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FailureLimit {
    /// Absolute number.
    Count(u64),
    /// Fraction of all requests that were due, from 0 to 1.
    Share(f64),
}

impl FailureLimit {
    /// Parses `10` or `0.1%`.
    ///
    /// # Errors
    /// When the text is neither a whole number nor a percentage from 0 to 100.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no limit of failures; write a number such as 10, or a share such as 0.1%"
            )
        };
        let Some(percent) = text.strip_suffix('%') else {
            return text.parse().map(Self::Count).map_err(|_| wrong());
        };
        let percent: f64 = percent.parse().map_err(|_| wrong())?;
        if (0.0..=100.0).contains(&percent) {
            Ok(Self::Share(percent / 100.0))
        } else {
            Err(wrong())
        }
    }

    /// Whether this number of failed requests is within the limit.
    pub fn allows(self, failed: u64, requests: u64) -> bool {
        match self {
            Self::Count(limit) => failed <= limit,
            Self::Share(share) => failed as f64 <= share * requests as f64,
        }
    }
}

impl fmt::Display for FailureLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Share(share) => write!(f, "{}%", share * 100.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_is_one_number_with_a_unit() {
        let cases = [
            ("250us", Duration::from_micros(250)),
            ("5ms", Duration::from_millis(5)),
            ("1.5s", Duration::from_millis(1500)),
            ("2m", Duration::from_secs(120)),
            ("1h", Duration::from_secs(3600)),
        ];
        for (text, wanted) in cases {
            assert_eq!(duration(text), Ok(wanted), "{text}");
        }
        for text in ["", "5", "s", "-1s", "5 ms", "1m30s", "infs", "1d"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn failures_are_limited_by_number_or_by_share() {
        let count = FailureLimit::parse("2").unwrap();
        assert!(count.allows(2, 10) && !count.allows(3, 1_000_000));
        let share = FailureLimit::parse("0.1%").unwrap();
        assert!(share.allows(1, 1_000) && !share.allows(2, 1_000));
        assert!(FailureLimit::parse("0%").unwrap().allows(0, 0));
        for text in ["", "-1", "1.5", "101%", "x%", "NaN%"] {
            assert!(FailureLimit::parse(text).is_err(), "{text}");
        }
        assert_eq!(share.to_string(), "0.1%");
    }
}
