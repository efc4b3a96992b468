//! The `date` of a response that has none (RFC 9110, section 6.6.1).

use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderValue;

/// The present time as a header value, written once a second.
#[derive(Debug, Default)]
pub(in crate::codec) struct Dates(RefCell<Option<(u64, HeaderValue)>>);

impl Dates {
    /// The value for this moment.
    pub(in crate::codec) fn now(&self) -> HeaderValue {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let seconds = since.map_or(0, |since| since.as_secs());
        let mut last = self.0.borrow_mut();
        match &*last {
            Some((second, value)) if *second == seconds => value.clone(),
            _ => {
                let value = date(seconds);
                *last = Some((seconds, value.clone()));
                value
            }
        }
    }
}

/// Seconds since 1970 as an IMF-fixdate (RFC 9110, section 5.6.7).
fn date(seconds: u64) -> HeaderValue {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb",
    ];
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    // years of four centuries begin in March, so that leap days are at their ends
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let year = year_of_era + era * 400 + u64::from(month >= 10);
    let text = format!(
        "{}, {day:02} {} {year:04} {:02}:{:02}:{:02} GMT",
        DAYS[(days % 7) as usize],
        MONTHS[month as usize],
        time / 3600,
        time / 60 % 60,
        time % 60
    );
    HeaderValue::try_from(text).expect("visible ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_equal_known_values() {
        for (seconds, expected) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_399, "Mon, 28 Feb 2000 23:59:59 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (951_868_800, "Wed, 01 Mar 2000 00:00:00 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (1_798_761_599, "Thu, 31 Dec 2026 23:59:59 GMT"),
            (1_798_761_600, "Fri, 01 Jan 2027 00:00:00 GMT"),
        ] {
            assert_eq!(date(seconds), expected, "{seconds}");
        }
        assert_eq!(Dates::default().now().len(), 29);
    }
}
