//! Severity of a diagnostic.

use std::fmt;

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Error: the object is rejected.
    Error,
    /// Warning: the object is used, but probably does not do what its author intended.
    Warning,
    /// Note: worth knowing; nothing is wrong.
    Note,
}

impl Severity {
    /// Returns the word that the renderers print.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
