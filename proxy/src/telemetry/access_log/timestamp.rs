//! ISO 8601 timestamps with milliseconds, in UTC; date and time are formatted only once per second.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::runtime::dates;

/// The last second that was formatted.
#[derive(Clone, Debug)]
pub(super) struct Timestamp {
    second: u64,
    /// `YYYY-MM-DDTHH:MM:SS` of that second.
    text: [u8; 19],
}

impl Default for Timestamp {
    fn default() -> Self {
        Self {
            second: 0,
            text: *b"1970-01-01T00:00:00",
        }
    }
}

impl Timestamp {
    /// Appends `2024-01-01T00:00:00.000Z`. Times before 1970, which only a wrong clock returns, print as 1970; years
    /// beyond 9999 print their last four digits.
    pub(super) fn append_to(&mut self, out: &mut Vec<u8>, time: SystemTime) {
        let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        if since_epoch.as_secs() != self.second {
            self.second = since_epoch.as_secs();
            self.text = dates::date_and_time(self.second.cast_signed());
        }
        let millis = u64::from(since_epoch.subsec_millis());
        out.extend_from_slice(&self.text);
        out.extend_from_slice(&[
            b'.',
            digit(millis / 100),
            digit(millis / 10),
            digit(millis),
            b'Z',
        ]);
    }
}

fn digit(value: u64) -> u8 {
    b'0' + (value % 10) as u8
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn printed(timestamp: &mut Timestamp, millis: u64) -> String {
        let mut out = Vec::new();
        timestamp.append_to(&mut out, UNIX_EPOCH + Duration::from_millis(millis));
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn known_times_print_as_their_dates() {
        let mut timestamp = Timestamp::default();
        // From `date -u -d @N --iso-8601=seconds`.
        for (second, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (951_868_800, "2000-03-01T00:00:00.000Z"),
            (1_704_067_200, "2024-01-01T00:00:00.000Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799, "9999-12-31T23:59:59.000Z"),
        ] {
            assert_eq!(printed(&mut timestamp, second * 1_000), text);
        }
    }

    #[test]
    fn milliseconds_change_within_a_cached_second() {
        let mut timestamp = Timestamp::default();
        assert_eq!(
            printed(&mut timestamp, 1_704_067_200_007),
            "2024-01-01T00:00:00.007Z"
        );
        assert_eq!(
            printed(&mut timestamp, 1_704_067_200_999),
            "2024-01-01T00:00:00.999Z"
        );
        assert_eq!(
            printed(&mut timestamp, 1_704_067_201_000),
            "2024-01-01T00:00:01.000Z"
        );
        assert_eq!(
            printed(&mut timestamp, 1_704_067_200_010),
            "2024-01-01T00:00:00.010Z"
        );
    }

    #[test]
    fn a_clock_before_1970_prints_1970() {
        let mut out = Vec::new();
        Timestamp::default().append_to(&mut out, UNIX_EPOCH - Duration::from_secs(5));
        assert_eq!(out, b"1970-01-01T00:00:00.000Z");
    }
}
