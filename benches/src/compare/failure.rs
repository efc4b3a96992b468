//! Errors that stop a measurement or the whole run.

use std::fmt;
use std::io::Write as _;
use std::process::ExitCode;

/// Error that stopped a step.
#[derive(Debug)]
pub enum Failure {
    /// Cancellation by the user who started the run.
    Cancelled,
    /// Any other error, described in a sentence.
    Other(String),
}

impl Failure {
    /// Creates a failure with this message.
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

/// Returns the exit code of a program; prints its failure.
pub fn exit_code(program: &str, result: Result<ExitCode, Failure>) -> ExitCode {
    result.unwrap_or_else(|failure| {
        // Nothing is left to tell when even standard error is gone.
        let _ = writeln!(std::io::stderr(), "{program}: {failure}");
        match failure {
            Failure::Cancelled => ExitCode::from(130),
            Failure::Other(_) => ExitCode::FAILURE,
        }
    })
}

/// Adds the failed operation to an error, for use with `map_err`.
pub(crate) fn context<E: fmt::Display>(doing: impl fmt::Display) -> impl FnOnce(E) -> Failure {
    move |error| Failure::Other(format!("{doing}: {error}"))
}
