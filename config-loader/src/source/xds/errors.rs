//! What is wrong with resources of a response, for the NACK.

use crate::xds::Rejected;

/// How many resources a message names.
pub(super) const NAMED_MAX: usize = 20;

/// The name of a resource without a name, in messages.
pub(super) const NAMELESS: &str = "a resource without a name";

/// What is wrong with resources of a response.
#[derive(Debug, Default)]
pub(super) struct Errors {
    /// For people; at most [`NAMED_MAX`].
    texts: Vec<String>,
    /// The same for the server, as far as resources have a name.
    pub(super) rejected: Vec<Rejected>,
}

impl Errors {
    /// Notes a resource that is rejected, and why.
    pub(super) fn add(&mut self, name: Option<&str>, reason: &str) {
        if self.texts.len() == NAMED_MAX {
            return;
        }
        self.texts
            .push(format!("{}: {reason}", name.unwrap_or(NAMELESS)));
        self.rejected.extend(name.map(|name| Rejected {
            name: name.to_owned(),
            reason: reason.to_owned(),
        }));
    }

    /// Whether nothing is wrong.
    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// All of it for people; none if nothing is wrong.
    pub(super) fn text(&self) -> Option<String> {
        (!self.texts.is_empty()).then(|| self.texts.join("; "))
    }
}
