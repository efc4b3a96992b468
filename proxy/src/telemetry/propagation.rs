//! How far each source is in effect, and how long its changes took from their receipt to the snapshot in effect.
//!
//! Never touched by a request, hence a plain lock. A proxy has as many sources as `--control` and resource paths name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

/// Upper bounds of the buckets below `+Inf`, in seconds.
pub(super) const BOUNDS: [f64; 15] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];

/// How far a source is in effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedSource {
    /// The source: `files`, or the URL of a server.
    pub source: Arc<str>,
    /// The newest revision of the server that is in effect; none if the source has none.
    pub revision: Option<Arc<str>>,
    /// When the oldest change of the last update was received.
    pub received: SystemTime,
    /// When the last update took effect.
    pub applied: SystemTime,
    /// From one to the other, by the monotonic clock.
    pub took: Duration,
    /// When the state was saved that stands in for the server until it answers.
    pub restored: Option<SystemTime>,
}

/// How often a source failed for a reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorCount {
    /// The source.
    pub source: Arc<str>,
    /// The reason.
    pub reason: &'static str,
    /// How often.
    pub count: u64,
}

/// Values that are read where they are kept, when they are shown.
pub struct Polled<T>(OnceLock<Box<dyn Fn() -> Vec<T> + Send + Sync>>);

/// How often sources failed.
pub type ErrorCounts = Polled<ErrorCount>;

/// Ages of the last words of sources.
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
    /// Takes the values from `values` from now on. Only the first call counts.
    pub fn read_from(&self, values: impl Fn() -> Vec<T> + Send + Sync + 'static) {
        self.0.get_or_init(|| Box::new(values));
    }

    /// The values of now.
    pub fn now(&self) -> Vec<T> {
        self.0.get().map_or_else(Vec::new, |values| values())
    }
}

/// How far all sources are.
#[derive(Debug, Default)]
pub struct PropagationStats {
    /// How often sources failed.
    pub errors: ErrorCounts,
    /// When sources were heard last.
    pub ages: MessageAges,
    sources: Mutex<BTreeMap<Arc<str>, Tracked>>,
}

/// A source with its histogram.
#[derive(Clone, Debug)]
pub(super) struct Tracked {
    pub(super) last: AppliedSource,
    /// Counts by bucket, the last of which is `+Inf`.
    pub(super) buckets: [u64; BOUNDS.len() + 1],
    pub(super) sum: Duration,
}

impl PropagationStats {
    /// Notes that a source is in effect. Only an update with a change of resources counts in the histogram.
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

    pub(super) fn tracked(&self) -> Vec<Tracked> {
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
