//! The errors of a server that says nothing.

use std::error::Error;
use std::fmt;

/// A server does not answer in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Late;

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it does not answer in time")
    }
}

impl Error for Late {}

/// A watch is begun again because its server did not answer another request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silent;

impl fmt::Display for Silent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("its server does not answer, so that the watch is begun again")
    }
}

impl Error for Silent {}
