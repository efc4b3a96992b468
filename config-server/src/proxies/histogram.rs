//! Histogram of the propagation time of writes to proxies.

use std::fmt::Write;
use std::time::Duration;

/// Upper bounds of the buckets below `+Inf`, in seconds.
const BOUNDS: [f64; 14] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];

/// Histogram of durations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    buckets: [u64; BOUNDS.len() + 1],
    sum: Duration,
}

impl Histogram {
    /// Adds a duration.
    pub fn observe(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        self.buckets[bucket] += 1;
        self.sum += took;
    }

    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Appends the samples of a metric of that name.
    pub fn append_to(&self, text: &mut String, name: &str) {
        let mut count = 0;
        let bounds = BOUNDS.iter().map(ToString::to_string);
        let bounds = bounds.chain(["+Inf".to_owned()]);
        for (bound, counted) in bounds.zip(self.buckets) {
            count += counted;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name}_bucket{{le=\"{bound}\"}} {count}");
        }
        let _ = writeln!(text, "{name}_sum {}", self.sum.as_secs_f64());
        let _ = writeln!(text, "{name}_count {count}");
    }
}
