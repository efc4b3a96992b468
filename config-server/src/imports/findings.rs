//! Log of problems: one line when a problem begins and one when it is resolved.

use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Problem with its fix. Problems that differ only in detail are equal.
#[derive(Clone, Debug)]
pub(super) struct Finding {
    problem: String,
    detail: String,
    fix: String,
}

impl PartialEq for Finding {
    fn eq(&self, other: &Finding) -> bool {
        self.problem == other.problem
    }
}

impl Eq for Finding {}

impl Ord for Finding {
    fn cmp(&self, other: &Finding) -> Ordering {
        self.problem.cmp(&other.problem)
    }
}

impl PartialOrd for Finding {
    fn partial_cmp(&self, other: &Finding) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Finding {
    /// Returns a finding: `problem` says what is wrong and where.
    pub(super) fn new(problem: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding {
            problem: problem.into(),
            detail: String::new(),
            fix: fix.into(),
        }
    }

    /// Adds the message of the API server.
    pub(super) fn with(mut self, detail: &str) -> Finding {
        detail.clone_into(&mut self.detail);
        self
    }
}

/// Problems that have been logged.
#[derive(Debug, Default)]
pub(super) struct Findings {
    known: BTreeSet<Finding>,
}

impl Findings {
    /// Logs new and resolved problems; `found` contains all current problems.
    pub(super) fn update(&mut self, found: BTreeSet<Finding>) {
        let (new, over) = self.differences(found);
        for found in new {
            let Finding {
                problem,
                detail,
                fix,
            } = found;
            let detail = Some(&*detail).filter(|detail| !detail.is_empty());
            tracing::warn!(detail, fix, "{problem}");
        }
        for Finding { problem, .. } in over {
            tracing::info!("resolved: {problem}");
        }
    }

    /// Returns the new problems and the resolved ones.
    fn differences(&mut self, found: BTreeSet<Finding>) -> (Vec<Finding>, Vec<Finding>) {
        let new = found.difference(&self.known).cloned().collect();
        let over = self.known.difference(&found).cloned().collect();
        self.known = found;
        (new, over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problem_is_logged_once_when_it_begins_and_once_when_it_is_over() {
        let mut findings = Findings::default();
        let problem = |text: &str| Finding::new(text, "fix");
        let mut step = |found: &[&str]| {
            let (new, over) = findings.differences(found.iter().copied().map(problem).collect());
            (new.len(), over.len())
        };
        assert_eq!(step(&["a"]), (1, 0));
        assert_eq!(step(&["a"]), (0, 0));
        assert_eq!(step(&["a", "b"]), (1, 0));
        assert_eq!(step(&[]), (0, 2));
        assert_eq!(step(&["a"]), (1, 0));
    }
}
