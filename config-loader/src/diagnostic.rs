//! Diagnostics about configuration, and their renderers. Uses only `kind` and `span`.
//!
//! A diagnostic owns all text that its renderers print, so it outlives the document.

pub mod codes;
mod location;
pub mod render;
mod severity;
pub mod suggest;

use std::sync::Arc;

pub use codes::Code;
pub use location::{Location, Locator};
pub use severity::Severity;

use crate::kind::ObjectRef;
use crate::span::Span;

/// Maximum number of diagnostics that are kept for one resource. Bounds the memory that hostile input can use.
pub const FINDINGS_MAX: usize = 1_000;

/// One diagnostic: what is wrong, where, and how to fix it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Severity of the diagnostic.
    pub severity: Severity,
    /// Stable, documented code of the broken rule.
    pub code: Code,
    /// Object that the diagnostic is about, if it has a name.
    pub object: Option<ObjectRef>,
    /// Location in the file.
    pub location: Location,
    /// Path of the field, such as `spec.http[2].match[0].uri`; empty for the whole document.
    pub field: String,
    /// Description of the problem: lower case, no full stop.
    pub message: String,
    /// Suggested fix.
    pub help: Option<String>,
    /// Related locations, each with a description.
    pub related: Vec<(Location, String)>,
    /// Whether the diagnostic is about a text that cannot be read and may have a security policy: without it, requests
    /// that the policy denies would be forwarded.
    pub may_be_policy: bool,
    /// Span in the document, from which [`Diagnostic::location`] is computed later.
    pub(crate) span: Span,
}

impl Diagnostic {
    /// Creates a diagnostic at a span; its location is computed later.
    pub(crate) fn at(severity: Severity, code: Code, span: Span, message: String) -> Diagnostic {
        Diagnostic {
            severity,
            code,
            object: None,
            location: Location::default(),
            field: String::new(),
            message,
            help: None,
            related: Vec::new(),
            may_be_policy: false,
            span,
        }
    }

    /// Sets the suggested fix, if there is one.
    pub(crate) fn with_help(mut self, help: Option<String>) -> Diagnostic {
        self.help = help;
        self
    }

    /// Creates a diagnostic about a whole file or directory.
    pub fn about_file(
        severity: Severity,
        code: Code,
        file: Arc<str>,
        message: impl Into<String>,
    ) -> Diagnostic {
        let mut found = Diagnostic::at(severity, code, Span::NONE, message.into());
        found.location = Location::whole_file(file);
        found
    }

    /// Sets the suggested fix.
    pub fn help(&mut self, help: impl Into<String>) -> &mut Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Adds a related location with a description.
    pub fn related(&mut self, location: Location, what: impl Into<String>) -> &mut Diagnostic {
        self.related.push((location, what.into()));
        self
    }

    /// Returns the sort key: file, line, column, severity, code.
    fn sort_key(&self) -> (&str, u32, u32, Severity, Code) {
        (
            &self.location.file,
            self.location.line,
            self.location.column,
            self.severity,
            self.code,
        )
    }
}

/// Collection of diagnostics. Checks add all that they find, not only the first error.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Adds a diagnostic.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    /// Adds several diagnostics.
    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.list.extend(diagnostics);
    }

    /// Iterates over the diagnostics in the order in which they were added.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Whether any diagnostic is an error.
    pub fn has_errors(&self) -> bool {
        self.list
            .iter()
            .any(|found| found.severity == Severity::Error)
    }

    /// Number of diagnostics.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether the collection is empty.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the diagnostics sorted by file and position.
    pub fn into_sorted(self) -> Vec<Diagnostic> {
        let mut list = self.list;
        list.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
        list
    }
}
