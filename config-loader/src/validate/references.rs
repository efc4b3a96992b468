//! Checks that need the whole set.

use crate::diagnostic::Diagnostic;
use crate::resource::ResourceSet;

/// What does not fit together.
pub fn check(_set: &ResourceSet) -> Vec<Diagnostic> {
    Vec::new()
}
