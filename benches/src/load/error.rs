//! Errors that prevent a run from starting.

use std::fmt;

/// Error message: the problem, its location, and the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// Invalid command line, or invalid content of a file that it names.
    Usage(String),
    /// Unreachable address, or an error of the operating system.
    Start(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(message) | Self::Start(message)) = self;
        f.write_str(message)
    }
}

impl std::error::Error for Error {}
