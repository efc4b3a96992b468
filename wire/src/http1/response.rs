//! Responses: those of endpoints from bytes, with the heads of the requests that ask for them, and those to clients to
//! bytes.

use std::fmt;

pub mod decoder;
pub mod encoder;
pub mod head;
mod limits;

pub use limits::{RESPONSE_HEAD_BYTES_MAX, RESPONSE_HEADERS_MAX};

/// Reason that a response is malformed, too long or ambiguously framed.
#[derive(Debug)]
pub struct Malformed(pub Box<dyn std::error::Error + Send + Sync>);

impl Malformed {
    #[cold]
    fn new(reason: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(reason.into())
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed response")
    }
}

impl std::error::Error for Malformed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.0)
    }
}
