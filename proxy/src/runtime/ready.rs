//! Readiness: ready when the last guard has been dropped. There is no flag to clear.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Conditions that start-up still waits for.
#[derive(Clone, Debug, Default)]
pub struct Readiness {
    waiting: Arc<Mutex<BTreeSet<&'static str>>>,
}

/// Guard of one condition: the process is not ready before it is dropped.
#[derive(Debug)]
pub struct Waiting {
    what: &'static str,
    readiness: Readiness,
}

impl Readiness {
    /// Adds a condition until the returned guard is dropped. `what` names it on the admin page; a condition that is
    /// already held counts once.
    pub fn wait_for(&self, what: &'static str) -> Waiting {
        self.lock().insert(what);
        Waiting {
            what,
            readiness: self.clone(),
        }
    }

    /// Returns whether every guard has been dropped.
    pub fn is_ready(&self) -> bool {
        self.lock().is_empty()
    }

    /// Returns the remaining conditions, in alphabetical order.
    pub fn waiting(&self) -> Vec<&'static str> {
        self.lock().iter().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<&'static str>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.readiness.lock().remove(self.what);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_when_last_guard_drops() {
        let readiness = Readiness::default();
        let first = readiness.wait_for("snapshot");
        let second = readiness.wait_for("listeners");
        assert_eq!(readiness.waiting(), ["listeners", "snapshot"]);
        drop(first);
        assert!(!readiness.is_ready());
        drop(second);
        assert!(readiness.is_ready());
    }
}
