//! Conditions, by which controllers report the state of objects.

use std::sync::Arc;

/// State that a controller reports for an object.
#[derive(Clone, Debug)]
pub struct Condition {
    /// Type of the condition, such as `Valid`.
    pub condition_type: Arc<str>,
    /// Status: true, false or unknown.
    pub status: ConditionStatus,
    /// Reason in one word.
    pub reason: Arc<str>,
    /// Explanation for humans; may be empty.
    pub message: Arc<str>,
    /// Time of the last change, as written (RFC 3339).
    pub last_transition_time: Arc<str>,
    /// `metadata.generation` of the object that the controller evaluated, if set.
    pub observed_generation: Option<i64>,
}

/// Status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// `False`
    False,
    /// `True`
    True,
    /// `Unknown`
    Unknown,
}
