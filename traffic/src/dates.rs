//! Calendar: converts seconds since 1970 to dates in UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds of a day.
pub const SECONDS_PER_DAY: u64 = 86_400;

/// Last second of the year 9999: later ones have no HTTP date.
const HTTP_SECONDS_MAX: u64 = 253_402_300_799;

/// Returns year, month and day of a day counted from 1970-01-01. It counts in eras of 400 years that begin in March, so
/// that leap days are at their ends.
pub fn year_month_day(days: i64) -> (i64, u8, u8) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month as u8, day as u8)
}

/// Formats a second as `YYYY-MM-DDTHH:MM:SS`. Years beyond 9999 keep their last four digits; years before 0 are not
/// supported.
pub fn date_and_time(second: i64) -> [u8; 19] {
    let per_day = SECONDS_PER_DAY as i64;
    let (year, month, day) = year_month_day(second.div_euclid(per_day));
    let of_day = second.rem_euclid(per_day);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    let mut text = *b"0000-00-00T00:00:00";
    let (month, day) = (i64::from(month), i64::from(day));
    let pairs = [year / 100, year, month, day, hour, minute, second];
    for (at, pair) in [0, 2, 5, 8, 11, 14, 17].into_iter().zip(pairs) {
        text[at] = digit(pair / 10);
        text[at + 1] = digit(pair);
    }
    text
}

/// Formats a time as in RFC 3339, in UTC and with milliseconds. Times before 1970 are shown as 1970.
pub fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let text = date_and_time(since.as_secs().cast_signed());
    let text = String::from_utf8_lossy(&text);
    format!("{text}.{:03}Z", since.subsec_millis())
}

/// Formats a second as an IMF-fixdate (RFC 9110, section 5.6.7).
pub fn http_date(second: u64) -> String {
    let since = Duration::from_secs(second.min(HTTP_SECONDS_MAX));
    httpdate::fmt_http_date(UNIX_EPOCH + since)
}

fn digit(value: i64) -> u8 {
    b'0' + value.rem_euclid(10) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_equal_known_values() {
        // From `date -u -d @N --iso-8601=seconds`.
        for (second, text) in [
            (-2_208_988_801, "1899-12-31T23:59:59"),
            (-1, "1969-12-31T23:59:59"),
            (0, "1970-01-01T00:00:00"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (951_868_800, "2000-03-01T00:00:00"),
            (1_735_689_599, "2024-12-31T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"),
            (253_402_300_799, "9999-12-31T23:59:59"),
        ] {
            assert_eq!(date_and_time(second), *text.as_bytes(), "{text}");
        }
    }

    #[test]
    fn http_dates_equal_known_values() {
        for (seconds, expected) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (951_868_800, "Wed, 01 Mar 2000 00:00:00 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (1_798_761_599, "Thu, 31 Dec 2026 23:59:59 GMT"),
            (1_798_761_600, "Fri, 01 Jan 2027 00:00:00 GMT"),
            (u64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            assert_eq!(http_date(seconds), expected, "{seconds}");
        }
    }
}
