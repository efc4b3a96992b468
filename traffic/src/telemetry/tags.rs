//! Labels of metrics with values of requests: which there are, and one combination of their values.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::labels::UNKNOWN;

/// Expressions whose values are labels.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct TagNames {
    id: u64,
    names: Box<[Arc<str>]>,
}

impl TagNames {
    /// Creates the names of these expressions.
    pub fn new(names: Vec<Arc<str>>) -> Self {
        let mut hasher = DefaultHasher::new();
        names.hash(&mut hasher);
        Self {
            id: hasher.finish(),
            names: names.into(),
        }
    }

    /// Number that other names have not, as far as a hash tells.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Number of expressions.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

/// Combination of values of requests.
#[derive(Debug)]
pub struct TagValues {
    names: Arc<TagNames>,
    values: Box<[Box<str>]>,
    /// Second of the last use, to the minute; [`LET_GO`] once another combination has its place.
    used: AtomicU64,
}

/// State of a combination that is no longer counted.
const LET_GO: u64 = u64::MAX;

/// Accuracy of the time of the last use, in seconds: a worker writes it no more often.
const ACCURACY: u64 = 60;

impl TagValues {
    pub(super) fn new(names: Arc<TagNames>, values: Box<[Box<str>]>, second: u64) -> Self {
        Self {
            names,
            values,
            used: AtomicU64::new(second),
        }
    }

    /// The names of the values.
    pub fn names(&self) -> &Arc<TagNames> {
        &self.names
    }

    /// Value of an expression, `unknown` if the combination has none.
    pub fn value(&self, name: &str) -> &str {
        let known = self.names.names.iter().position(|known| &**known == name);
        known.map_or(UNKNOWN, |index| &self.values[index])
    }

    /// Records a use. Returns false if the combination was let go.
    pub(super) fn touch(&self, second: u64) -> bool {
        let mut used = self.used.load(Ordering::Relaxed);
        while used != LET_GO && second.saturating_sub(used) >= ACCURACY {
            let changed =
                self.used
                    .compare_exchange(used, second, Ordering::Relaxed, Ordering::Relaxed);
            match changed {
                Ok(_) => return true,
                Err(newer) => used = newer,
            }
        }
        used != LET_GO
    }

    /// Lets the combination go if it was not used for this number of seconds. Returns whether it is gone.
    pub(super) fn let_go(&self, second: u64, unused: u64) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        let is_unused = used != LET_GO && second.saturating_sub(used) >= unused;
        let go = || {
            self.used
                .compare_exchange(used, LET_GO, Ordering::Relaxed, Ordering::Relaxed)
        };
        used == LET_GO || is_unused && go().is_ok()
    }

    /// Whether the combination was let go.
    pub fn is_gone(&self) -> bool {
        self.used.load(Ordering::Relaxed) == LET_GO
    }
}
