//! Errors of a server that does not respond.

use std::error::Error;
use std::fmt;

/// Error: the server did not respond in time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Late;

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it does not answer in time")
    }
}

impl Error for Late {}

/// Error: a watch was ended and starts again, because its server did not respond to another request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Silent;

impl fmt::Display for Silent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("its server does not answer, so that the watch is begun again")
    }
}

impl Error for Silent {}
