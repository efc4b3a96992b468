//! Share of requests with a line. Failures always have one.

use super::entry::Entry;

/// Digits of a request id that are drawn from.
const DIGITS: usize = 8;

/// Share of requests with a line, in steps of 0.01 percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSample(u16);

impl Default for LogSample {
    fn default() -> Self {
        Self::ALL
    }
}

impl LogSample {
    /// All requests.
    pub const ALL: Self = Self(10_000);

    /// Returns the nearest share of a percentage from 0 to 100.
    pub fn of(percent: f64) -> Option<Self> {
        let is_share = (0.0..=100.0).contains(&percent);
        // a float to an integer saturates
        is_share.then_some(Self((percent * 100.0).round() as u16))
    }

    /// The percentage; `None` for all requests.
    pub fn percent(self) -> Option<f64> {
        (self != Self::ALL).then(|| f64::from(self.0) / 100.0)
    }

    /// Whether a request has a line: by the same draw from its id as for traces of the same percentage, and always if it
    /// failed. A request without a UUID has one.
    pub(super) fn takes(self, entry: &Entry<'_>) -> bool {
        if self == Self::ALL || !entry.flags.is_empty() {
            return true;
        }
        if entry.response_code == 0 || entry.response_code >= 500 {
            return true;
        }
        let digits = entry.request_id.and_then(|id| id.get(..DIGITS));
        let text = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        let draw = text.and_then(|text| u32::from_str_radix(text, 16).ok());
        draw.is_none_or(|draw| draw % 10_000 < u32::from(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use traffic::telemetry::ResponseFlags;

    #[test]
    fn failures_have_lines_and_others_by_their_request_id() {
        let entry = |id: &'static str, code: u16| Entry {
            request_id: Some(id.as_bytes()),
            response_code: code,
            ..Entry::default()
        };
        // 0x2710 is 10000
        for (id, code, percent, expected) in [
            ("00002710-0000-4000-8000-000000000000", 200, 0.01, true),
            ("00002711-0000-4000-8000-000000000000", 200, 0.01, false),
            ("00002711-0000-4000-8000-000000000000", 200, 0.02, true),
            ("00002711-0000-4000-8000-000000000000", 404, 0.0, false),
            ("00002711-0000-4000-8000-000000000000", 503, 0.0, true),
            ("00002711-0000-4000-8000-000000000000", 0, 0.0, true),
            ("no-id", 200, 0.0, true),
            ("ffffffff-0000-4000-8000-000000000000", 200, 100.0, true),
        ] {
            let sample = LogSample::of(percent).expect("a share");
            assert_eq!(
                sample.takes(&entry(id, code)),
                expected,
                "{id} {code} {percent}"
            );
        }
        let flagged = Entry {
            flags: ResponseFlags::UF,
            ..entry("00002711", 200)
        };
        assert!(LogSample::of(0.0).expect("a share").takes(&flagged));
        assert_eq!(LogSample::of(100.5), None);
    }
}
