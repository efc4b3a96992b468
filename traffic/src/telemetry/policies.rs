//! Counters of authorization: matches of policies, and decisions.

use std::sync::Arc;
use std::time::Duration;

use super::cells::WorkerId;
use super::members::Tally;

/// Labels of the matches of one policy.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PolicyLabels {
    /// Namespace of the policy.
    pub namespace: Arc<str>,
    /// Name of the policy.
    pub name: Arc<str>,
    /// Action of the policy, in upper case.
    pub action: &'static str,
    /// Whether the policy is in dry run.
    pub is_dry_run: bool,
}

/// Matches of one policy, with one counter.
pub type PolicyTally = Tally<PolicyLabels, 1>;

/// Step of authorization that decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// ALLOW policies, also if there are none.
    Allow,
    /// DENY policies.
    Deny,
    /// External authorization.
    Custom,
    /// Tokens.
    Jwt,
    /// DENY policies in dry run.
    DryRunDeny,
    /// ALLOW policies in dry run.
    DryRunAllow,
}

impl Stage {
    /// All steps.
    pub const ALL: [Self; 6] = [
        Self::Allow,
        Self::Deny,
        Self::Custom,
        Self::Jwt,
        Self::DryRunDeny,
        Self::DryRunAllow,
    ];

    /// Name of the step in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Custom => "custom",
            Self::Jwt => "jwt",
            Self::DryRunDeny => "dry_run_deny",
            Self::DryRunAllow => "dry_run_allow",
        }
    }
}

/// Decisions by step, result and transport.
pub type DecisionTally = Tally<(), { Stage::ALL.len() * 4 }>;

/// Upper bounds of the buckets of an [`EvaluationTally`] below `+Inf`, in nanoseconds.
pub const EVALUATION_BOUNDS: [u64; 11] = [
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 1_000_000, 10_000_000,
];

/// Times of sampled decisions: a counter per bucket, then the sum in nanoseconds.
pub type EvaluationTally = Tally<(), { EVALUATION_BOUNDS.len() + 2 }>;

impl EvaluationTally {
    /// Counts a decision that took this time.
    pub fn observe(&self, worker: WorkerId, took: Duration) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = EVALUATION_BOUNDS.partition_point(|bound| *bound < nanos);
        self.count(worker, bucket);
        self.add(worker, EVALUATION_BOUNDS.len() + 1, nanos);
    }
}

/// Decision of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// Step that decided.
    pub stage: Stage,
    /// Whether the request or connection was denied.
    pub is_denied: bool,
    /// Whether it was a connection of another protocol than HTTP.
    pub is_tcp: bool,
}

impl Decided {
    /// Number of the counter in a [`DecisionTally`].
    pub fn index(self) -> usize {
        self.stage as usize * 4 + usize::from(self.is_denied) * 2 + usize::from(self.is_tcp)
    }

    /// All decisions, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        let results = [(false, false), (false, true), (true, false), (true, true)];
        Stage::ALL.into_iter().flat_map(move |stage| {
            results.into_iter().map(move |(is_denied, is_tcp)| Self {
                stage,
                is_denied,
                is_tcp,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_decisions_are_in_their_order() {
        let numbers: Vec<usize> = Decided::all().map(Decided::index).collect();
        assert!(numbers.iter().copied().eq(0..Stage::ALL.len() * 4));
    }
}
