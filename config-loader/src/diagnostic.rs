//! Findings about configuration, and their renderers. Uses only `kind` and `span`.
//!
//! A diagnostic is data: it holds all that its renderers print, so it outlives the text that it is about.

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

/// How many findings are kept about one resource: hostile input must not fill the memory with them.
pub const FINDINGS_MAX: usize = 1_000;

/// One finding: what is wrong, where, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The stable, documented name of the rule that was broken.
    pub code: Code,
    /// The object that it is about, when one could be named.
    pub object: Option<ObjectRef>,
    /// Where it is.
    pub location: Location,
    /// The path of the field, such as `spec.http[2].match[0].uri`; empty when it is about the whole document.
    pub field: String,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// Other places that matter, each with what it is.
    pub related: Vec<(Location, String)>,
    /// The place in its document, until [`Diagnostic::location`] is worked out from it.
    pub(crate) span: Span,
}

impl Diagnostic {
    /// A finding at a place of its document that is worked out later.
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
            span,
        }
    }

    /// The finding with help, if there is any.
    pub(crate) fn with_help(mut self, help: Option<String>) -> Diagnostic {
        self.help = help;
        self
    }

    /// A finding about a whole file or directory.
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

    /// Says what to write instead.
    pub fn help(&mut self, help: impl Into<String>) -> &mut Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Points at another place that matters.
    pub fn related(&mut self, location: Location, what: impl Into<String>) -> &mut Diagnostic {
        self.related.push((location, what.into()));
        self
    }

    /// The key by which findings are sorted: as they stand in the files.
    fn order(&self) -> (&str, u32, u32, Severity, Code) {
        (
            &self.location.file,
            self.location.line,
            self.location.column,
            self.severity,
            self.code,
        )
    }
}

/// Collects findings. Nothing stops at the first.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Adds a finding.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    /// Adds many findings.
    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.list.extend(diagnostics);
    }

    /// The findings, in the order in which they were made.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Whether any finding is an error.
    pub fn has_errors(&self) -> bool {
        self.list
            .iter()
            .any(|found| found.severity == Severity::Error)
    }

    /// How many findings there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The findings as they stand in the files.
    pub fn into_sorted(self) -> Vec<Diagnostic> {
        let mut list = self.list;
        list.sort_by(|a, b| a.order().cmp(&b.order()));
        list
    }
}
