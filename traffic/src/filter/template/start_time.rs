//! `%START_TIME(format)%`: strftime as implemented by Envoy, in UTC and English.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::dates::{self, SECONDS_PER_DAY};

const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Number of letters that `%a` and `%b` print.
const ABBREVIATED: usize = 3;

/// A parsed time format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TimeFormat(Box<[Piece]>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// This many digits of the fractional second.
    Fraction(u32),
    Literal(Box<str>),
    /// A specifier of strftime.
    Part(char),
    UnixSeconds,
}

/// Specifiers for a single part of a time, and `%`.
const PARTS: &str = "aAbBCdeghGHIjklmMpStuUVwWyYzZ%";

/// Expands specifiers that represent several others.
fn written_out(specifier: char) -> Option<&'static str> {
    Some(match specifier {
        'c' => "%a %b %e %H:%M:%S %Y",
        'D' | 'x' => "%m/%d/%y",
        'F' => "%Y-%m-%d",
        'r' => "%I:%M:%S %p",
        'R' => "%H:%M",
        'T' | 'X' => "%H:%M:%S",
        _ => return None,
    })
}

/// Number of fraction digits that `%f` prints; maximum for `%Nf`.
const FRACTION_DIGITS_MAX: u32 = 9;

impl TimeFormat {
    /// Parses a format; empty means ISO 8601 with milliseconds. `None` for an unknown specifier.
    pub(super) fn parse(format: &str) -> Option<Self> {
        let format = if format.is_empty() {
            "%Y-%m-%dT%H:%M:%S.%3fZ"
        } else {
            format
        };
        let mut pieces = Vec::new();
        read(format, &mut pieces)?;
        Some(Self(pieces.into()))
    }

    /// Prints `time`; times before 1970, which only a wrong clock returns, print as 1970.
    pub(super) fn print(&self, out: &mut Vec<u8>, time: SystemTime) {
        let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = since_epoch.as_secs();
        let parts = Parts::of(seconds);
        for piece in &self.0 {
            // writing to memory does not fail
            let _ = match piece {
                Piece::Fraction(digits) => {
                    let digits = *digits;
                    let value =
                        since_epoch.subsec_nanos() / 10_u32.pow(FRACTION_DIGITS_MAX - digits);
                    write!(out, "{value:0width$}", width = digits as usize)
                }
                Piece::Literal(text) => out.write_all(text.as_bytes()),
                Piece::Part(specifier) => parts.print(out, *specifier),
                Piece::UnixSeconds => write!(out, "{seconds}"),
            };
        }
    }
}

/// Parses a format that is not empty.
fn read(format: &str, pieces: &mut Vec<Piece>) -> Option<()> {
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('%') {
        if !before.is_empty() {
            pieces.push(Piece::Literal(before.into()));
        }
        let specifier = after.chars().next()?;
        rest = &after[specifier.len_utf8()..];
        match specifier {
            'f' => pieces.push(Piece::Fraction(FRACTION_DIGITS_MAX)),
            's' => pieces.push(Piece::UnixSeconds),
            '1'..='9' => {
                pieces.push(Piece::Fraction(specifier.to_digit(10)?));
                rest = rest.strip_prefix('f')?;
            }
            _ if PARTS.contains(specifier) => pieces.push(Piece::Part(specifier)),
            _ => read(written_out(specifier)?, pieces)?,
        }
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest.into()));
    }
    Some(())
}

/// Calendar fields of a time.
struct Parts {
    year: u64,
    /// 1 to 12.
    month: u64,
    /// 1 to 31.
    day: u64,
    /// 0 to 6, from Sunday.
    weekday: u64,
    /// From 0.
    day_of_year: u64,
    hour: u64,
    minute: u64,
    second: u64,
}

impl Parts {
    fn of(seconds: u64) -> Self {
        let days = seconds / SECONDS_PER_DAY;
        let (year, month, day) = dates::year_month_day(days.cast_signed());
        let year = year.cast_unsigned();
        let (month, day) = (u64::from(month), u64::from(day));
        let of_day = seconds % SECONDS_PER_DAY;
        // 1970-01-01 was a Thursday.
        let weekday = (days + 4) % 7;
        let leap = u64::from(is_leap(year));
        let before = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
        let before: u64 = before[month as usize - 1];
        let day_of_year = before + day - 1 + if month > 2 { leap } else { 0 };
        Self {
            year,
            month,
            day,
            weekday,
            day_of_year,
            hour: of_day / 3_600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
        }
    }

    fn print(&self, out: &mut Vec<u8>, specifier: char) -> std::io::Result<()> {
        let hour_of_twelve = (self.hour + 11) % 12 + 1;
        let day = DAYS[self.weekday as usize];
        let month = MONTHS[self.month as usize - 1];
        match specifier {
            'a' => write!(out, "{}", &day[..ABBREVIATED]),
            'A' => write!(out, "{day}"),
            'b' | 'h' => write!(out, "{}", &month[..ABBREVIATED]),
            'B' => write!(out, "{month}"),
            'C' => write!(out, "{:02}", self.year / 100),
            'd' => write!(out, "{:02}", self.day),
            'e' => write!(out, "{:2}", self.day),
            'g' => write!(out, "{:02}", self.iso_week().0 % 100),
            'G' => write!(out, "{:04}", self.iso_week().0),
            'H' => write!(out, "{:02}", self.hour),
            'I' => write!(out, "{hour_of_twelve:02}"),
            'j' => write!(out, "{:03}", self.day_of_year + 1),
            'k' => write!(out, "{:2}", self.hour),
            'l' => write!(out, "{hour_of_twelve:2}"),
            'm' => write!(out, "{:02}", self.month),
            'M' => write!(out, "{:02}", self.minute),
            'p' => write!(out, "{}", if self.hour < 12 { "AM" } else { "PM" }),
            'S' => write!(out, "{:02}", self.second),
            't' => write!(out, "\t"),
            'u' => write!(out, "{}", (self.weekday + 6) % 7 + 1),
            'U' => write!(out, "{:02}", (self.day_of_year + 7 - self.weekday) / 7),
            'V' => write!(out, "{:02}", self.iso_week().1),
            'w' => write!(out, "{}", self.weekday),
            'W' => write!(
                out,
                "{:02}",
                (self.day_of_year + 7 - (self.weekday + 6) % 7) / 7
            ),
            'y' => write!(out, "{:02}", self.year % 100),
            'Y' => write!(out, "{:04}", self.year),
            'z' => write!(out, "+0000"),
            'Z' => write!(out, "UTC"),
            other => write!(out, "{other}"),
        }
    }

    /// ISO 8601 year and week: the first week of a year is the one with its first Thursday.
    fn iso_week(&self) -> (u64, u64) {
        let weekday = (self.weekday + 6) % 7;
        // the Thursday of this week, as a day of this year
        let thursday = (self.day_of_year + 3).checked_sub(weekday);
        let length = |year| 365 + u64::from(is_leap(year));
        match thursday {
            None => {
                let before = self.year - 1;
                let thursday = length(before) + self.day_of_year + 3 - weekday;
                (before, thursday / 7 + 1)
            }
            Some(thursday) if thursday >= length(self.year) => (self.year + 1, 1),
            Some(thursday) => (self.year, thursday / 7 + 1),
        }
    }
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn printed(format: &str, seconds: u64) -> Option<String> {
        let mut out = Vec::new();
        let time = UNIX_EPOCH + Duration::from_secs(seconds);
        TimeFormat::parse(format)?.print(&mut out, time);
        String::from_utf8(out).ok()
    }

    #[test]
    fn times_print_like_the_date_command() {
        let format = "%a %A %b %B %h|%C %d %e %j %m %y %Y|%g %G %V %U %W %u %w|%H %I %k %l %M %S %p|%c|%D %x %F|%r|%R %T %X|%z %Z %% %s";
        for (seconds, wanted) in [
            (
                0,
                "Thu Thursday Jan January Jan|19 01  1 001 01 70 1970|70 1970 01 00 00 4 4|00 12  0 12 00 00 AM|Thu Jan  1 00:00:00 1970|01/01/70 01/01/70 1970-01-01|12:00:00 AM|00:00 00:00:00 00:00:00|+0000 UTC % 0",
            ),
            (
                1_709_210_096,
                "Thu Thursday Feb February Feb|20 29 29 060 02 24 2024|24 2024 09 08 09 4 4|12 12 12 12 34 56 PM|Thu Feb 29 12:34:56 2024|02/29/24 02/29/24 2024-02-29|12:34:56 PM|12:34 12:34:56 12:34:56|+0000 UTC % 1709210096",
            ),
            (
                1_735_517_109,
                "Mon Monday Dec December Dec|20 30 30 365 12 24 2024|25 2025 01 52 53 1 1|00 12  0 12 05 09 AM|Mon Dec 30 00:05:09 2024|12/30/24 12/30/24 2024-12-30|12:05:09 AM|00:05 00:05:09 00:05:09|+0000 UTC % 1735517109",
            ),
            (
                1_609_718_399,
                "Sun Sunday Jan January Jan|20 03  3 003 01 21 2021|20 2020 53 01 00 7 0|23 11 23 11 59 59 PM|Sun Jan  3 23:59:59 2021|01/03/21 01/03/21 2021-01-03|11:59:59 PM|23:59 23:59:59 23:59:59|+0000 UTC % 1609718399",
            ),
            (
                1_798_804_800,
                "Fri Friday Jan January Jan|20 01  1 001 01 27 2027|26 2026 53 00 00 5 5|12 12 12 12 00 00 PM|Fri Jan  1 12:00:00 2027|01/01/27 01/01/27 2027-01-01|12:00:00 PM|12:00 12:00:00 12:00:00|+0000 UTC % 1798804800",
            ),
            (
                1_609_420_028,
                "Thu Thursday Dec December Dec|20 31 31 366 12 20 2020|20 2020 53 52 52 4 4|13 01 13  1 07 08 PM|Thu Dec 31 13:07:08 2020|12/31/20 12/31/20 2020-12-31|01:07:08 PM|13:07 13:07:08 13:07:08|+0000 UTC % 1609420028",
            ),
            (
                1_672_534_923,
                "Sun Sunday Jan January Jan|20 01  1 001 01 23 2023|22 2022 52 01 00 7 0|01 01  1  1 02 03 AM|Sun Jan  1 01:02:03 2023|01/01/23 01/01/23 2023-01-01|01:02:03 AM|01:02 01:02:03 01:02:03|+0000 UTC % 1672534923",
            ),
            (
                4_107_582_000,
                "Mon Monday Mar March Mar|21 01  1 060 03 00 2100|00 2100 09 09 09 1 1|11 11 11 11 00 00 AM|Mon Mar  1 11:00:00 2100|03/01/00 03/01/00 2100-03-01|11:00:00 AM|11:00 11:00:00 11:00:00|+0000 UTC % 4107582000",
            ),
        ] {
            let printed = printed(format, seconds);
            assert_eq!(printed.as_deref(), Some(wanted), "{seconds}");
        }
    }

    #[test]
    fn specifiers_follow_strftime() {
        let known = (' '..='~').filter(|specifier| printed(&format!("%{specifier}"), 0).is_some());
        let known: String = known.collect();
        assert_eq!(known, "%ABCDFGHIMRSTUVWXYZabcdefghjklmprstuwxyz");
        assert_eq!(printed("é%Té", 0).as_deref(), Some("é00:00:00é"));
        for unknown in ["%", "%é", "%0f", "%3", "%3g", "%E", "%n"] {
            assert_eq!(printed(unknown, 0), None, "{unknown}");
        }
    }
}
