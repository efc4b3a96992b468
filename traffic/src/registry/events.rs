//! Counts of events of a cluster, by kind. Events are rarer than requests: workers share one counter for each kind.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of kinds of events.
pub const EVENT_KINDS: usize = 32;

/// Counts of events by the number of their kind, allocated by the first one.
#[derive(Debug, Default)]
pub struct EventCounts(OnceLock<Box<[AtomicU64; EVENT_KINDS]>>);

impl EventCounts {
    /// Adds to the count of a kind.
    pub fn add(&self, kind: usize, count: u64) {
        let zeroes = || Box::new([const { AtomicU64::new(0) }; EVENT_KINDS]);
        if let Some(cell) = self.0.get_or_init(zeroes).get(kind) {
            cell.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Returns the count of a kind.
    pub fn get(&self, kind: usize) -> u64 {
        let cell = self.0.get().and_then(|cells| cells.get(kind));
        cell.map_or(0, |cell| cell.load(Ordering::Relaxed))
    }

    /// Whether any event was counted.
    pub fn is_used(&self) -> bool {
        self.0.get().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_counted_by_kind() {
        let counts = EventCounts::default();
        assert!(!counts.is_used());
        assert_eq!(counts.get(3), 0);
        counts.add(3, 2);
        counts.add(3, 1);
        counts.add(EVENT_KINDS, 1);
        assert_eq!(
            [counts.get(3), counts.get(0), counts.get(EVENT_KINDS)],
            [3, 0, 0]
        );
        assert!(counts.is_used());
    }
}
