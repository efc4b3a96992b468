//! Edits of request and response headers.

use std::sync::Arc;

use crate::span::Line;

/// Header edits of a rule or destination (`headers`).
#[derive(Clone, Debug, Default)]
pub struct Headers {
    /// Edits of the request headers.
    pub request: HeaderOperations,
    /// Edits of the response headers.
    pub response: HeaderOperations,
    /// Source line within the document.
    pub line: Line,
}

/// Edits of the headers of one message. Names are in lower case. Values may contain `%OPERATOR%`s.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeaderOperations {
    /// New authority of the request, from a `set` or `add` of `Host` or `:authority`. `None` for responses.
    pub authority: Option<Arc<str>>,
    /// Headers to set, replacing those of the same name, in the order of execution.
    pub set: Vec<(Arc<str>, Arc<str>)>,
    /// Headers to append, in the order of execution.
    pub add: Vec<(Arc<str>, Arc<str>)>,
    /// Headers to remove, before any are set.
    pub remove: Vec<Arc<str>>,
}

impl HeaderOperations {
    /// Whether there are no edits.
    pub fn is_empty(&self) -> bool {
        self.authority.is_none()
            && self.set.is_empty()
            && self.add.is_empty()
            && self.remove.is_empty()
    }
}
