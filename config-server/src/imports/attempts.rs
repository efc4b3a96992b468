//! Backoff of repeated writes to an object.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::{Duration, Instant};

use super::findings::Finding;
use super::plan::Target;

/// Minimum and maximum delay between writes to one object. After the first write, its result arrives as a change
/// within the minimum.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Recent writes to objects that still need one.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    made: HashMap<Target, Made>,
}

#[derive(Debug)]
struct Made {
    count: u32,
    until: Instant,
    failure: Option<Finding>,
}

impl Attempts {
    /// Drops the state of all objects except `wanted`, which still need a write.
    pub(super) fn retain<'a>(&mut self, wanted: impl Iterator<Item = &'a Target>) {
        let wanted: HashSet<&Target> = wanted.collect();
        self.made.retain(|target, _| wanted.contains(target));
    }

    /// Whether the delay of an object is over.
    pub(super) fn is_due(&self, target: &Target, now: Instant) -> bool {
        self.made.get(target).is_none_or(|made| made.until <= now)
    }

    /// Records a write. The delay doubles with each further write, whether the previous one failed or was overwritten
    /// by another client. `jitter` (0 to 1) spreads retries.
    pub(super) fn record(
        &mut self,
        target: Target,
        failure: Option<Finding>,
        now: Instant,
        jitter: f64,
    ) {
        let made = self.made.entry(target).or_insert(Made {
            count: 0,
            until: now,
            failure: None,
        });
        let pause = PAUSE_MIN * 2_u32.saturating_pow(made.count.min(10));
        made.count += 1;
        made.until = now + pause.min(PAUSE_MAX).mul_f64(1.0 + jitter / 2.0);
        made.failure = failure;
    }

    /// Returns the end of the earliest delay; `None` if no object waits.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.made.values().map(|made| made.until).min()
    }

    /// Returns the findings of failed writes.
    pub(super) fn failures(&self) -> BTreeSet<Finding> {
        let made = self.made.values();
        made.filter_map(|made| made.failure.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> Target {
        Target {
            cluster: 0,
            path: path.to_owned(),
        }
    }

    #[test]
    fn pauses_grow_until_the_object_is_as_it_should_be() {
        let mut attempts = Attempts::default();
        let (one, start) = (target("/one"), Instant::now());
        let mut now = start;
        let mut pauses = Vec::new();
        for _ in 0..8 {
            assert!(attempts.is_due(&one, now));
            let failure = Some(Finding::new("refused", "grant"));
            attempts.record(one.clone(), failure, now, 0.0);
            assert!(!attempts.is_due(&one, now));
            let until = attempts.deadline().unwrap();
            pauses.push((until - now).as_secs());
            now = until;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!(attempts.failures().len(), 1);
        attempts.retain(std::iter::empty());
        assert_eq!((attempts.deadline(), attempts.failures().len()), (None, 0));
        attempts.record(one.clone(), None, now, 1.0);
        assert_eq!(attempts.deadline(), Some(now + Duration::from_millis(1500)));
        assert!(attempts.is_due(&target("/other"), now));
    }
}
