//! The conditions by which controllers report on objects.

use std::sync::Arc;

/// What a controller found out about an object.
#[derive(Clone, Debug)]
pub struct Condition {
    /// What it is about, such as `Valid`.
    pub condition_type: Arc<str>,
    /// Whether that holds.
    pub status: ConditionStatus,
    /// Why, in one word.
    pub reason: Arc<str>,
    /// Why, in a sentence; may be empty.
    pub message: Arc<str>,
    /// When it last changed, as it was written (RFC 3339).
    pub last_transition_time: Arc<str>,
    /// The `metadata.generation` that it is about, when that was written.
    pub observed_generation: Option<i64>,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionStatus {
    /// It doesn't.
    False,
    /// It does.
    True,
    /// Not known.
    Unknown,
}
