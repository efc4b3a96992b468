//! Edits of request and response headers.

use std::sync::Arc;

use crate::span::Line;

/// `headers` of a rule or of a destination.
#[derive(Clone, Debug, Default)]
pub struct Headers {
    /// Edits of the request.
    pub request: HeaderOperations,
    /// Edits of the response.
    pub response: HeaderOperations,
    /// Where it was written.
    pub line: Line,
}

/// Edits of the headers of one message. Names are in lower case; values are texts that may hold `%OPERATOR%`s.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderOperations {
    /// The new authority of the request: a `set` or `add` of `Host` or `:authority`. None for responses.
    pub authority: Option<Arc<str>>,
    /// Headers to put in place of those of that name, in the order in which that happens.
    pub set: Vec<(Arc<str>, Arc<str>)>,
    /// Header lines to append, in the order in which that happens.
    pub add: Vec<(Arc<str>, Arc<str>)>,
    /// Headers to take away, before anything is set.
    pub remove: Vec<Arc<str>>,
}

impl HeaderOperations {
    /// Whether nothing is edited.
    pub fn is_empty(&self) -> bool {
        self.authority.is_none()
            && self.set.is_empty()
            && self.add.is_empty()
            && self.remove.is_empty()
    }
}
