//! Why a run could not begin.

use std::fmt;

/// What is wrong, where, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The command line, or a file that it names.
    Usage(String),
    /// The address that is measured, or the system.
    Start(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Usage(message) | Self::Start(message)) = self;
        f.write_str(message)
    }
}

impl std::error::Error for Error {}
