//! Recent changes of the table of proxies, for watches.

use std::collections::{BTreeSet, VecDeque};

use crate::clock;

/// Maximum number of recorded changes. A watch that is further behind gets 410.
const CHANGES_MAX: usize = 10_000;

/// Multiplier of the start time, in seconds since 1970, which gives the first revision. Revisions increase across
/// restarts as long as there are fewer changes per second than this.
const PER_SECOND: u64 = 1_000_000;

/// Namespace and name of a proxy.
pub(super) type Key = (String, String);

/// Recent changes; each increases the revision of the table by one.
#[derive(Debug)]
pub(super) struct Changes {
    /// Revision of the last dropped change.
    floor: u64,
    kept: VecDeque<Key>,
}

impl Default for Changes {
    fn default() -> Changes {
        Changes {
            // Revisions of an earlier process are lower.
            floor: clock::seconds_now() * PER_SECOND,
            kept: VecDeque::new(),
        }
    }
}

impl Changes {
    /// Records that a proxy was added, changed or removed.
    pub(super) fn push(&mut self, key: Key) {
        if self.kept.len() >= CHANGES_MAX {
            self.kept.pop_front();
            self.floor += 1;
        }
        self.kept.push_back(key);
    }

    /// Returns the current revision.
    pub(super) fn revision(&self) -> u64 {
        self.floor + self.kept.len() as u64
    }

    /// Returns the proxies that changed after a revision; `None` if the revision has expired.
    pub(super) fn after(&self, revision: u64) -> Option<BTreeSet<Key>> {
        let known = usize::try_from(revision.checked_sub(self.floor)?).ok()?;
        (known <= self.kept.len()).then(|| self.kept.range(known..).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_known_as_long_as_they_are_remembered() {
        let mut changes = Changes::default();
        let key = |name: &str| ("edge".to_owned(), name.to_owned());
        let start = changes.revision();
        for name in ["a", "b", "a"] {
            changes.push(key(name));
        }
        let all = changes.after(start).unwrap();
        assert_eq!(all, BTreeSet::from([key("a"), key("b")]));
        assert_eq!(
            changes.after(start + 2).unwrap(),
            BTreeSet::from([key("a")])
        );
        assert_eq!(changes.after(start + 3), Some(BTreeSet::new()));
        assert_eq!(changes.after(start + 4), None, "of another server");
        assert_eq!(changes.after(start - 1), None);
        for _ in 0..CHANGES_MAX {
            changes.push(key("c"));
        }
        assert_eq!(changes.after(start + 2), None, "it is forgotten");
        assert!(changes.after(start + 3).is_some());
    }
}
