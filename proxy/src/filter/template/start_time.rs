//! `%START_TIME(format)%`: the part of strftime that access logs use, in UTC.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_PER_DAY: u64 = 86_400;

/// A time format, read once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TimeFormat(Box<[Piece]>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Day,
    /// This many digits of the fraction of the second.
    Fraction(u32),
    Hour,
    Literal(Box<str>),
    Minute,
    Month,
    Second,
    UnixSeconds,
    Year,
}

/// Digits of a fraction that `%f` prints, and the most that `%Nf` may ask for.
const FRACTION_DIGITS_MAX: u32 = 9;

impl TimeFormat {
    /// Reads a format; empty means ISO 8601 with milliseconds. `None` for an unknown specifier.
    pub(super) fn parse(format: &str) -> Option<Self> {
        let format = if format.is_empty() {
            "%Y-%m-%dT%H:%M:%S.%3fZ"
        } else {
            format
        };
        let mut pieces = Vec::new();
        let mut rest = format;
        while let Some((before, after)) = rest.split_once('%') {
            if !before.is_empty() {
                pieces.push(Piece::Literal(before.into()));
            }
            let (specifier, after) = after.split_at_checked(1)?;
            rest = match Piece::parse(specifier) {
                Some(piece) => {
                    pieces.push(piece);
                    after
                }
                None => {
                    let digits = specifier
                        .parse()
                        .ok()
                        .filter(|n| (1..=FRACTION_DIGITS_MAX).contains(n))?;
                    pieces.push(Piece::Fraction(digits));
                    after.strip_prefix('f')?
                }
            };
        }
        if !rest.is_empty() {
            pieces.push(Piece::Literal(rest.into()));
        }
        Some(Self(pieces.into()))
    }

    /// Prints `time`; times before 1970, which only a broken clock gives, print as 1970.
    pub(super) fn print(&self, out: &mut Vec<u8>, time: SystemTime) {
        let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = since_epoch.as_secs();
        let (year, month, day) = date(seconds / SECONDS_PER_DAY);
        let of_day = seconds % SECONDS_PER_DAY;
        for piece in &self.0 {
            // Writing to memory does not fail.
            let _ = match piece {
                Piece::Day => write!(out, "{day:02}"),
                Piece::Fraction(digits) => {
                    let digits = *digits;
                    let value =
                        since_epoch.subsec_nanos() / 10_u32.pow(FRACTION_DIGITS_MAX - digits);
                    write!(out, "{value:0width$}", width = digits as usize)
                }
                Piece::Hour => write!(out, "{:02}", of_day / 3_600),
                Piece::Literal(text) => out.write_all(text.as_bytes()),
                Piece::Minute => write!(out, "{:02}", of_day / 60 % 60),
                Piece::Month => write!(out, "{month:02}"),
                Piece::Second => write!(out, "{:02}", of_day % 60),
                Piece::UnixSeconds => write!(out, "{seconds}"),
                Piece::Year => write!(out, "{year:04}"),
            };
        }
    }
}

impl Piece {
    fn parse(specifier: &str) -> Option<Self> {
        Some(match specifier {
            "Y" => Self::Year,
            "m" => Self::Month,
            "d" => Self::Day,
            "H" => Self::Hour,
            "M" => Self::Minute,
            "S" => Self::Second,
            "s" => Self::UnixSeconds,
            "f" => Self::Fraction(FRACTION_DIGITS_MAX),
            _ => return None,
        })
    }
}

/// Year, month and day of a day counted from 1970-01-01, by counting in eras of 400 years that begin in March.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day)
}
