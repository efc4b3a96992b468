//! Why a measurement, or the whole run, could not go on.

use std::fmt;

/// What stopped a step.
#[derive(Debug)]
pub enum Failure {
    /// The person who started the run asked it to stop.
    Cancelled,
    /// Anything else, told in a sentence.
    Other(String),
}

impl Failure {
    /// A failure with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self::Other(message.into())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cancelled => f.write_str("stopped on request"),
            Self::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Failure {}

/// Says what was being done when an error came, for use with `map_err`.
pub fn context<E: fmt::Display>(doing: impl fmt::Display) -> impl FnOnce(E) -> Failure {
    move |error| Failure::Other(format!("{doing}: {error}"))
}
