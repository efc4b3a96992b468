//! Condition of an object. Uses nothing.

/// Condition of an object, of one of its listeners, or of a parent of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Type.
    pub name: &'static str,
    /// Status: `True`, `False`, or `Unknown` for `None`.
    pub holds: Option<bool>,
    /// Reason, in CamelCase.
    pub reason: &'static str,
    /// Message for people; empty where the reason says it all.
    pub message: String,
    /// Whether a change of the message alone does not cause a write.
    pub keeps_message: bool,
}

impl Condition {
    /// Creates a condition.
    pub fn new(name: &'static str, holds: bool, reason: &'static str) -> Self {
        Self {
            name,
            holds: Some(holds),
            reason,
            message: String::new(),
            keeps_message: false,
        }
    }

    /// Whether the status is `True`.
    pub fn is_true(&self) -> bool {
        self.holds == Some(true)
    }

    /// Adds a message.
    #[must_use]
    pub fn because(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }
}
