//! Why the demo cannot go on.

/// Why the demo cannot go on.
pub(super) struct Failure {
    pub(super) text: String,
    /// Whether an argument is the reason.
    pub(super) is_usage: bool,
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        let is_usage = false;
        Self { text, is_usage }
    }
}
