//! Progress lines of a run.

use std::io::{IsTerminal as _, Write as _, stderr};
use std::time::Duration;

use hdrhistogram::Histogram;

use super::outcome::Sample;
use super::percentiles::millis;
use super::record::{has_latency, histogram};

/// Counts of the requests that ended since the last line.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Number of completed requests, including failed ones.
    pub requests: u64,
    /// Number of failed requests.
    pub failed: u64,
    /// Latency of the requests, in us.
    pub latency: Histogram<u64>,
}

impl Default for Interval {
    fn default() -> Self {
        Self {
            requests: 0,
            failed: 0,
            latency: histogram(),
        }
    }
}

impl Interval {
    /// Counts a request.
    pub fn add(&mut self, sample: &Sample) {
        self.requests += 1;
        self.failed += u64::from(sample.fault.is_some());
        if has_latency(sample) {
            let micros = u64::try_from(sample.latency.as_micros()).unwrap_or(u64::MAX);
            self.latency.saturating_record(micros);
        }
    }

    /// Adds the counts of another thread.
    pub fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.failed += other.failed;
        self.latency
            .add(&other.latency)
            .expect("all histograms have the same bounds");
    }

    /// Resets all counts.
    pub fn clear(&mut self) {
        (self.requests, self.failed) = (0, 0);
        self.latency.reset();
    }

    /// Formats the line of this interval, which has this length and ended at `at` after the start of the run.
    pub fn line(&self, at: Duration, length: Duration, took: Duration) -> String {
        let rate = self.requests as f64 / took.as_secs_f64().max(1e-3);
        let quantile = |quantile| millis(self.latency.value_at_quantile(quantile));
        format!(
            "{:>4.0} s of {:.0} s: {rate:.0} requests/s, {} failed, p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms",
            at.as_secs_f64(),
            length.as_secs_f64(),
            self.failed,
            quantile(0.5),
            quantile(0.99),
            millis(self.latency.max()),
        )
    }
}

/// Display of progress lines on standard error; on a terminal each line replaces the previous one.
#[derive(Debug)]
pub struct Display {
    quiet: bool,
    overwrites: bool,
}

impl Display {
    /// Creates a display; a quiet one shows nothing.
    pub fn new(quiet: bool) -> Self {
        Self {
            quiet,
            overwrites: stderr().is_terminal(),
        }
    }

    /// Shows a line.
    pub fn show(&self, line: &str) {
        if self.quiet {
            return;
        }
        // A closed terminal must not end the run.
        let _ = if self.overwrites {
            write!(stderr(), "\r\x1b[K{line}")
        } else {
            writeln!(stderr(), "{line}")
        };
    }

    /// Ends the last line on a terminal, so that it stays visible.
    pub fn end(&self) {
        if !self.quiet && self.overwrites {
            let _ = writeln!(stderr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::outcome::FailureClass;
    use crate::load::record::tests::{answered, failed};

    #[test]
    fn line_says_what_came_in() {
        let mut interval = Interval::default();
        let mut other = Interval::default();
        (0..998).for_each(|_| interval.add(&answered(100, "a")));
        other.add(&answered(5_000, "a"));
        other.add(&failed(1, FailureClass::Connect, "refused"));
        interval.merge(&other);
        let seconds = Duration::from_secs;
        assert_eq!(
            interval.line(seconds(3), seconds(30), Duration::from_millis(500)),
            "   3 s of 30 s: 2000 requests/s, 1 failed, p50 0.10 ms, p99 0.10 ms, max 5.00 ms"
        );
        interval.clear();
        assert!(
            interval
                .line(seconds(4), seconds(30), seconds(1))
                .contains(" 0 requests/s")
        );
    }
}
