//! Error of parsing an expression.

use std::borrow::Cow;
use std::fmt;

/// Error of parsing an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// Byte of the text.
    pub at: usize,
    /// Reason.
    pub reason: Cow<'static, str>,
}

impl ExpressionError {
    pub(super) fn new(at: usize, reason: impl Into<Cow<'static, str>>) -> Self {
        Self {
            at,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at character {}: {}", self.at + 1, self.reason)
    }
}

impl std::error::Error for ExpressionError {}
