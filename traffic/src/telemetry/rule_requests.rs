//! Requests of each rule, by status class.
//!
//! The rules that are used first have a series of their own, up to a limit. The others share one.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::cells::WorkerId;
use super::members::Tally;
use super::routes::{CLASSES, class};

/// Maximum number of rules with a series of their own.
pub const RULES_MAX: usize = 1000;

/// Requests by status class.
pub type ClassCounts = [u64; CLASSES.len()];

/// Requests of one rule.
#[derive(Debug)]
pub struct RuleStats {
    tally: Tally<Arc<str>, { CLASSES.len() }>,
    /// Whether the rule has a series of its own; empty until the first request.
    has_own: OnceLock<bool>,
    shared: Arc<SharedSeries>,
}

/// Series of the rules without one of their own.
#[derive(Debug, Default)]
pub struct SharedSeries {
    /// Number of rules with a series of their own.
    own: AtomicUsize,
    /// Requests of rules that are gone.
    gone: [AtomicU64; CLASSES.len()],
}

impl RuleStats {
    /// Creates counters at zero for this number of workers.
    pub fn new(rule: Arc<str>, workers: usize, shared: Arc<SharedSeries>) -> Self {
        Self {
            tally: Tally::new(rule, workers),
            has_own: OnceLock::new(),
            shared,
        }
    }

    /// Counts a finished request.
    pub fn record(&self, worker: WorkerId, code: u16) {
        self.has_own.get_or_init(|| {
            let before = self.shared.own.fetch_add(1, Ordering::Relaxed);
            if before >= RULES_MAX {
                self.shared.own.fetch_sub(1, Ordering::Relaxed);
            }
            before < RULES_MAX
        });
        self.tally.count(worker, class(code));
    }

    /// Name of the rule.
    pub fn rule(&self) -> &str {
        self.tally.labels()
    }

    /// Name of the rule, if it has a series of its own.
    pub fn own_series(&self) -> Option<&Arc<str>> {
        let has_own = self.has_own.get().copied();
        has_own.unwrap_or_default().then(|| self.tally.labels())
    }

    /// Requests so far.
    pub fn totals(&self) -> ClassCounts {
        self.tally.totals()
    }

    /// Whether any request was counted.
    pub fn is_used(&self) -> bool {
        self.tally.is_used()
    }
}

impl Drop for RuleStats {
    fn drop(&mut self) {
        match self.has_own.get() {
            None => {}
            Some(true) => drop(self.shared.own.fetch_sub(1, Ordering::Relaxed)),
            Some(false) => {
                for (gone, count) in self.shared.gone.iter().zip(self.tally.totals()) {
                    gone.fetch_add(count, Ordering::Relaxed);
                }
            }
        }
    }
}

impl SharedSeries {
    /// Requests of rules without a series of their own: of these rules, and of rules that are gone.
    pub fn totals(&self, rules: &[Arc<RuleStats>]) -> ClassCounts {
        let shared = rules.iter().filter(|rule| rule.own_series().is_none());
        let gone = self.gone.each_ref().map(|one| one.load(Ordering::Relaxed));
        shared.fold(gone, |mut sum, rule| {
            for (sum, count) in sum.iter_mut().zip(rule.totals()) {
                *sum += count;
            }
            sum
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORKER: WorkerId = WorkerId(0);

    #[test]
    fn rules_beyond_the_limit_share_a_series_that_never_decreases() {
        let shared = Arc::new(SharedSeries::default());
        let rule = |name: &str| Arc::new(RuleStats::new(name.into(), 1, Arc::clone(&shared)));
        let mut rules: Vec<_> = (0..RULES_MAX)
            .map(|number| rule(&number.to_string()))
            .collect();
        rules.push(rule("unused"));
        let used =
            |rules: &[Arc<RuleStats>]| rules.iter().for_each(|rule| rule.record(WORKER, 200));
        used(&rules[..RULES_MAX]);
        let late = [rule("late"), rule("later")];
        used(&late);
        used(&late[..1]);
        assert!(late.iter().all(|rule| rule.own_series().is_none()));
        rules.extend(late);
        assert_eq!(shared.totals(&rules)[2], 3);
        drop(rules.pop());
        assert_eq!(shared.totals(&rules)[2], 3, "of a rule that is gone");
        // a place is free again, for a rule that had no request yet
        drop(rules.remove(0));
        used(&rules[RULES_MAX - 1..]);
        assert_eq!(
            rules[RULES_MAX - 1].own_series().map(|name| &**name),
            Some("unused")
        );
        assert_eq!(shared.totals(&rules)[2], 4);
    }
}
