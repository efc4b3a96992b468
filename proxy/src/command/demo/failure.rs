//! Error that ends the demo.

/// Error that ends the demo.
pub(super) struct Failure {
    pub(super) text: String,
    /// Whether an argument is the cause.
    pub(super) is_usage: bool,
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        let is_usage = false;
        Self { text, is_usage }
    }
}
