//! Applied state of each configuration source, and the time from the receipt of its changes to the snapshot in effect.
//!
//! Uses a plain lock, since requests never access it. The sources are those of `--control` and the resource paths.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

/// Upper bounds of the buckets below `+Inf`, in seconds.
pub const BOUNDS: [f64; 15] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];

/// Applied state of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedSource {
    /// The source: `files`, or the URL of a server.
    pub source: Arc<str>,
    /// Newest revision of the server that is in effect; `None` if the source has no revisions.
    pub revision: Option<Arc<str>>,
    /// Time when the oldest change of the last update was received.
    pub received: SystemTime,
    /// Time when the last update took effect.
    pub applied: SystemTime,
    /// Time from receipt to effect, by the monotonic clock.
    pub took: Duration,
    /// Time when the saved state was written, if it is in effect because the server has not answered yet.
    pub restored: Option<SystemTime>,
}

/// Number of failures of a source for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorCount {
    /// The source.
    pub source: Arc<str>,
    /// The reason.
    pub reason: &'static str,
    /// Number of failures.
    pub count: u64,
}

/// Values that are read from their owner on demand.
pub struct Polled<T>(OnceLock<Box<dyn Fn() -> Vec<T> + Send + Sync>>);

/// Failures by source and reason.
pub type ErrorCounts = Polled<ErrorCount>;

/// Ages of the last messages of sources.
pub type MessageAges = Polled<(Arc<str>, Duration)>;

impl<T> Default for Polled<T> {
    fn default() -> Polled<T> {
        Polled(OnceLock::new())
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Polled<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.now()).finish()
    }
}

impl<T> Polled<T> {
    /// Sets the function that returns the values. Only the first call has an effect.
    pub fn read_from(&self, values: impl Fn() -> Vec<T> + Send + Sync + 'static) {
        self.0.get_or_init(|| Box::new(values));
    }

    /// The current values.
    pub fn now(&self) -> Vec<T> {
        self.0.get().map_or_else(Vec::new, |values| values())
    }
}

/// Applied state of all sources.
#[derive(Debug, Default)]
pub struct PropagationStats {
    /// Failures by source and reason.
    pub errors: ErrorCounts,
    /// Ages of the last messages of sources.
    pub ages: MessageAges,
    sources: Mutex<BTreeMap<Arc<str>, Tracked>>,
}

/// A source with its histogram.
#[derive(Clone, Debug)]
pub struct Tracked {
    /// State that was applied last.
    pub last: AppliedSource,
    /// Counts by bucket; the last bucket is `+Inf`.
    pub buckets: [u64; BOUNDS.len() + 1],
    /// Sum of the times.
    pub sum: Duration,
}

impl PropagationStats {
    /// Records that an update of a source took effect. Only updates with changed resources count in the histogram.
    pub fn applied(&self, applied: AppliedSource, is_change: bool) {
        let mut sources = self.lock();
        let tracked = sources
            .entry(Arc::clone(&applied.source))
            .or_insert_with(|| Tracked {
                last: applied.clone(),
                buckets: [0; BOUNDS.len() + 1],
                sum: Duration::ZERO,
            });
        if is_change {
            let seconds = applied.took.as_secs_f64();
            let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
            tracked.buckets[bucket] += 1;
            tracked.sum += applied.took;
        }
        tracked.last = applied;
    }

    /// All sources, by name.
    pub fn sources(&self) -> Vec<AppliedSource> {
        let sources = self.lock();
        sources.values().map(|one| one.last.clone()).collect()
    }

    /// Returns the sources with their histograms.
    pub fn tracked(&self) -> Vec<Tracked> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Tracked>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_count_in_the_bucket_of_their_time() {
        let stats = PropagationStats::default();
        let applied = |millis| AppliedSource {
            source: "files".into(),
            revision: None,
            received: SystemTime::UNIX_EPOCH,
            applied: SystemTime::UNIX_EPOCH,
            took: Duration::from_millis(millis),
            restored: None,
        };
        for (millis, is_change) in [(1, true), (7, true), (90_000, true), (7, false)] {
            stats.applied(applied(millis), is_change);
        }
        let tracked = &stats.tracked()[0];
        let filled: Vec<usize> = (0..=BOUNDS.len())
            .filter(|bucket| tracked.buckets[*bucket] > 0)
            .collect();
        assert_eq!(filled, [0, 3, BOUNDS.len()]);
        assert_eq!(tracked.sum, Duration::from_millis(90_008));
        assert_eq!(stats.sources(), [applied(7)]);
    }
}
