//! Errors of the resources in a response, for the NACK.

use crate::xds::Rejected;

/// Largest number of resources that an error message names.
pub(super) const NAMED_MAX: usize = 20;

/// Placeholder in messages for the name of a resource without a name.
pub(super) const NAMELESS: &str = "a resource without a name";

/// Errors of the resources in a response.
#[derive(Debug, Default)]
pub(super) struct Errors {
    /// Messages for people; at most [`NAMED_MAX`].
    texts: Vec<String>,
    /// Rejected resources for the server, if they have a name.
    pub(super) rejected: Vec<Rejected>,
}

impl Errors {
    /// Adds a rejected resource with its reason.
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

    /// Whether there are no errors.
    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Returns all messages as one text; `None` without errors.
    pub(super) fn text(&self) -> Option<String> {
        (!self.texts.is_empty()).then(|| self.texts.join("; "))
    }
}
