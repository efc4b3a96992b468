//! Health check results of one endpoint.

use std::fmt;

use super::Moment;

/// Health of an endpoint after a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Whether the endpoint counts as healthy.
    pub healthy: bool,
    /// Whether the last check passed.
    pub passed: bool,
    /// Number of consecutive checks with the same result.
    pub in_a_row: u32,
    /// Result of the last check in words: a status, or an error.
    pub said: Box<str>,
    /// Time of the last check.
    pub at: Moment,
}

/// Result of one health check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    /// Whether the check passed.
    pub passed: bool,
    /// A status or an error in words.
    pub said: Box<str>,
}

/// Number of consecutive results that change the health of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Thresholds {
    /// Passed checks until an unhealthy endpoint is healthy.
    pub healthy: u32,
    /// Failed checks until a healthy endpoint is unhealthy.
    pub unhealthy: u32,
}

impl Checked {
    /// The health after one more check. The first check decides alone; later changes need as many results as the
    /// thresholds say.
    pub fn after(
        before: Option<&Self>,
        result: CheckResult,
        thresholds: Thresholds,
        at: Moment,
    ) -> Self {
        let CheckResult { passed, said } = result;
        let alike = before.filter(|before| before.passed == passed);
        let in_a_row = alike.map_or(1, |before| before.in_a_row.saturating_add(1));
        let healthy = match before {
            None => passed,
            Some(before) if before.healthy => passed || in_a_row < thresholds.unhealthy,
            Some(_) => passed && in_a_row >= thresholds.healthy,
        };
        Self {
            healthy,
            passed,
            in_a_row,
            said,
            at,
        }
    }
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.passed { "passed" } else { "failed" };
        write!(f, "{word} {} in a row, last: {}", self.in_a_row, self.said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THRESHOLDS: Thresholds = Thresholds {
        healthy: 2,
        unhealthy: 3,
    };

    /// The health of an endpoint after each check, where `+` is a passed check.
    fn play(checks: &str) -> String {
        let mut standing: Option<Checked> = None;
        let mut healthy = String::new();
        for check in checks.chars() {
            let result = CheckResult {
                passed: check == '+',
                said: "said".into(),
            };
            let next = Checked::after(standing.as_ref(), result, THRESHOLDS, Moment(1));
            healthy.push(if next.healthy { 'H' } else { 'U' });
            standing = Some(next);
        }
        healthy
    }

    #[test]
    fn first_check_decides_and_thresholds_after_it() {
        assert_eq!(play("+--+---+-++-"), "HHHHHHUUUUHH");
        assert_eq!(play("-+-++"), "UUUUH");
    }

    #[test]
    fn status_has_the_consecutive_count_and_the_last_result() {
        let fail = || CheckResult {
            passed: false,
            said: "503".into(),
        };
        let one = Checked::after(None, fail(), THRESHOLDS, Moment(1));
        let two = Checked::after(Some(&one), fail(), THRESHOLDS, Moment(2));
        assert_eq!(two.to_string(), "failed 2 in a row, last: 503");
        assert_eq!(two.at, Moment(2));
    }
}
