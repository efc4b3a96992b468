//! Current time and RFC 3339 timestamps.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// Returns the current UTC time in RFC 3339, in whole seconds.
pub(crate) fn now() -> String {
    rfc3339(seconds_now())
}

/// Returns the current time in seconds since 1970.
pub(crate) fn seconds_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Formats seconds since 1970 as RFC 3339 in UTC. Times after the year 9999 are shown as its end.
pub(crate) fn rfc3339(seconds: u64) -> String {
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    let time = Timestamp::from_second(seconds.min(Timestamp::MAX.as_second()));
    time.unwrap_or(Timestamp::MAX).to_string()
}

/// Parses an RFC 3339 time into seconds since 1970; fractions are dropped.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let time: Timestamp = text.parse().ok()?;
    u64::try_from(time.as_second()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_leap_years_are_right() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00Z");
        assert_eq!(rfc3339(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(rfc3339(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(rfc3339(4_107_542_400), "2100-03-01T00:00:00Z");
        assert_eq!(parse("2100-03-01T00:00:00Z"), Some(4_107_542_400));
        assert_eq!(parse("soon"), None);
    }
}
