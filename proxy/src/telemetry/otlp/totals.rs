//! Counts of an exporter, for metrics and pages.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Result of a request to a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportResult {
    /// Accepted.
    Ok,
    /// Accepted in part.
    Partial,
    /// Failed, and will be repeated.
    Retried,
    /// Failed, and given up.
    Failed,
}

impl ExportResult {
    /// All results.
    pub const ALL: [Self; 4] = [Self::Ok, Self::Partial, Self::Retried, Self::Failed];

    /// Name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Partial => "partial",
            Self::Retried => "retried",
            Self::Failed => "failed",
        }
    }
}

/// Counts of an exporter.
#[derive(Debug, Default)]
pub struct OtlpTotals {
    results: [AtomicU64; ExportResult::ALL.len()],
    /// Number of log records that were dropped.
    dropped: AtomicU64,
    /// Milliseconds since the epoch; 0 before the first success.
    last_success: AtomicU64,
    /// Reason why the last request failed.
    problem: Mutex<Option<String>>,
}

impl OtlpTotals {
    pub(super) fn count(&self, result: ExportResult) {
        self.results[result as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts log records that are not sent.
    pub(in crate::telemetry) fn drop_records(&self, records: u64) {
        self.dropped.fetch_add(records, Ordering::Relaxed);
    }

    /// Number of log records that were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    pub(super) fn succeeded(&self) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let millis = since.map_or(0, |since| since.as_millis() as u64);
        self.last_success.store(millis, Ordering::Relaxed);
        *self.locked() = None;
    }

    pub(super) fn failed(&self, problem: String) {
        *self.locked() = Some(problem);
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.problem.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of requests with each result.
    pub fn results(&self) -> impl Iterator<Item = (ExportResult, u64)> + '_ {
        let counts = self
            .results
            .iter()
            .map(|count| count.load(Ordering::Relaxed));
        ExportResult::ALL.into_iter().zip(counts)
    }

    /// Time of the last success.
    pub fn last_success(&self) -> Option<SystemTime> {
        let millis = self.last_success.load(Ordering::Relaxed);
        (millis > 0).then(|| UNIX_EPOCH + Duration::from_millis(millis))
    }

    /// Reason why the last request failed; `None` after a success.
    pub fn problem(&self) -> Option<String> {
        self.locked().clone()
    }
}
