//! Problems, each logged when it begins and when it is over.

use std::cmp::Ordering;
use std::collections::BTreeSet;

/// A problem, and how to fix it. Details that vary make no other problem of it.
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
    /// What is wrong and where, and the fix.
    pub(super) fn new(problem: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding {
            problem: problem.into(),
            detail: String::new(),
            fix: fix.into(),
        }
    }

    /// With what the API server said.
    pub(super) fn with(mut self, detail: &str) -> Finding {
        detail.clone_into(&mut self.detail);
        self
    }
}

/// The problems that were logged.
#[derive(Debug, Default)]
pub(super) struct Findings {
    known: BTreeSet<Finding>,
}

impl Findings {
    /// Logs the new problems and the resolved ones; `found` are all problems of now.
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

    /// The new problems, and the resolved ones.
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
