//! Time from the receipt of a change to the snapshot in effect.
//!
//! Several updates may arrive before the control task reads the newest: the time is measured from the oldest change
//! that is not in effect.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use config_loader::{Received, SourceRevision};

use crate::telemetry::{AppliedSource, PropagationStats};

/// Newest update of each source, and whether it is in effect.
#[derive(Clone, Debug, Default)]
pub struct Propagation {
    /// Number of the last update.
    serial: u64,
    /// Number of the last update in effect.
    applied: Arc<AtomicU64>,
    sources: BTreeMap<Arc<str>, Arrived>,
}

/// Newest update of one source.
#[derive(Clone, Debug)]
struct Arrived {
    revision: SourceRevision,
    /// Receipt of the oldest change that is not in effect.
    since: Received,
    /// Whether resources changed, and not only the revision.
    is_change: bool,
    /// Number of the update with this revision.
    serial: u64,
}

impl Propagation {
    /// Records the revisions of an update.
    pub fn arrived(&mut self, revisions: Vec<SourceRevision>, is_change: bool) {
        self.serial += 1;
        let in_effect = self.applied.load(Ordering::Acquire);
        for revision in revisions {
            let before = self.sources.get(&revision.source);
            if before.is_some_and(|before| before.revision == revision) {
                continue;
            }
            let waiting = before.filter(|before| before.serial > in_effect);
            let arrived = Arrived {
                since: waiting.map_or(revision.received, |waiting| waiting.since),
                is_change: is_change || waiting.is_some_and(|waiting| waiting.is_change),
                serial: self.serial,
                revision,
            };
            let name = Arc::clone(&arrived.revision.source);
            self.sources.insert(name, arrived);
        }
    }

    /// Records that every update so far is in effect. Returns whether any of them is new.
    pub fn in_effect(&self, stats: &PropagationStats, now: Received) -> bool {
        let before = self.applied.swap(self.serial, Ordering::AcqRel);
        let fresh = self.sources.values().filter(|one| one.serial > before);
        let mut is_any = false;
        for arrived in fresh {
            is_any = true;
            let applied = arrived.applied(now);
            tracing::debug!(
                source = &*applied.source,
                revision = applied.revision.as_deref().unwrap_or("none"),
                took_ms = applied.took.as_secs_f64() * 1e3,
                "source in effect"
            );
            stats.applied(applied, arrived.is_change);
        }
        is_any
    }
}

impl Arrived {
    fn applied(&self, now: Received) -> AppliedSource {
        AppliedSource {
            source: Arc::clone(&self.revision.source),
            revision: self.revision.revision.clone(),
            received: self.since.time,
            applied: SystemTime::max(now.time, self.since.time),
            took: now.instant.saturating_duration_since(self.since.instant),
            restored: self.revision.restored,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn received(start: Instant, millis: u64) -> Received {
        let after = Duration::from_millis(millis);
        Received {
            instant: start + after,
            time: SystemTime::UNIX_EPOCH + after,
        }
    }

    fn revision(source: &str, number: &str, received: Received) -> SourceRevision {
        SourceRevision {
            source: source.into(),
            revision: Some(number.into()),
            received,
            restored: None,
        }
    }

    #[test]
    fn oldest_change_that_is_not_in_effect_counts() {
        let (start, stats) = (Instant::now(), PropagationStats::default());
        let at = |millis| received(start, millis);
        let mut found = Propagation::default();
        found.arrived(vec![revision("a", "1", at(0))], true);
        let looked_at = found.clone();
        found.arrived(
            vec![revision("a", "2", at(20)), revision("b", "9", at(25))],
            true,
        );
        assert!(looked_at.in_effect(&stats, at(10)));
        let took = |source: &str| {
            let sources = stats.sources();
            let found = sources.iter().find(|one| &*one.source == source);
            found.map(|one| (one.revision.clone().unwrap(), one.took.as_millis()))
        };
        assert_eq!(took("a"), Some(("1".into(), 10)));
        assert_eq!(took("b"), None);
        // The second change arrives before the first is in effect.
        assert!(found.in_effect(&stats, at(30)));
        assert_eq!(took("a"), Some(("2".into(), 30)));
        assert_eq!(took("b"), Some(("9".into(), 5)));
        assert!(!found.in_effect(&stats, at(40)));
        // A source without a new update is not measured again.
        found.arrived(
            vec![revision("a", "3", at(50)), revision("b", "9", at(25))],
            true,
        );
        assert!(found.in_effect(&stats, at(57)));
        assert_eq!(took("a"), Some(("3".into(), 7)));
        assert_eq!(took("b"), Some(("9".into(), 5)));
    }
}
