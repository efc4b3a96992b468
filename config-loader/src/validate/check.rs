//! Context of a validator: metadata of the object, and the diagnostics found so far.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::annotations::Annotations;
use crate::ReadOptions;
use crate::diagnostic::{Code, Diagnostic, FINDINGS_MAX, Location, Locator, Severity};
use crate::kind::{Kind, ObjectRef};
use crate::re2::Budget;
use crate::span::{Line, Span};

/// Context of a validator: metadata of the checked object, and the diagnostics found so far.
#[derive(Debug)]
pub struct Check<'a> {
    object: &'a ObjectRef,
    locator: Locator<'a>,
    body: Span,
    name_span: Span,
    labels: Option<&'a BTreeMap<String, String>>,
    annotations: Option<&'a Annotations>,
    generation: Option<i64>,
    assigned_addresses: Option<Vec<IpAddr>>,
    found: Vec<Diagnostic>,
    /// Last diagnostic beyond the limit.
    dropped: Option<Diagnostic>,
    failed: bool,
    is_misread: bool,
    options: ReadOptions,
    regexes: Budget,
}

impl<'a> Check<'a> {
    /// Creates a check of `object`. `body` is the span of its `spec`, or of the document for kinds without one.
    pub fn new(object: &'a ObjectRef, locator: Locator<'a>, body: Span) -> Check<'a> {
        Check {
            object,
            locator,
            body,
            name_span: Span::NONE,
            labels: None,
            annotations: None,
            generation: None,
            assigned_addresses: None,
            found: Vec::new(),
            dropped: None,
            failed: false,
            is_misread: false,
            options: ReadOptions::default(),
            regexes: Budget::default(),
        }
    }

    /// Sets the strictness of the check.
    pub fn with_options(mut self, options: ReadOptions) -> Check<'a> {
        self.options = options;
        self
    }

    /// Returns the strictness of the check.
    pub fn options(&self) -> ReadOptions {
        self.options
    }

    /// Adds the span of the object's name, and its labels.
    pub fn with_metadata(
        mut self,
        name_span: Span,
        labels: &'a BTreeMap<String, String>,
    ) -> Check<'a> {
        self.name_span = name_span;
        self.labels = Some(labels);
        self
    }

    /// Adds the object's Strait annotations.
    pub fn with_annotations(mut self, annotations: &'a Annotations) -> Check<'a> {
        self.annotations = Some(annotations);
        self
    }

    /// Adds the object's `metadata.generation`.
    pub fn with_generation(mut self, generation: Option<i64>) -> Check<'a> {
        self.generation = generation;
        self
    }

    /// Adds the addresses in the status of a Gateway.
    pub fn with_assigned_addresses(mut self, addresses: Option<Vec<IpAddr>>) -> Check<'a> {
        self.assigned_addresses = addresses;
        self
    }

    /// Returns the addresses in the status of a Gateway; `None` if no controller has written it.
    pub fn assigned_addresses(&self) -> Option<&[IpAddr]> {
        self.assigned_addresses.as_deref()
    }

    /// Returns the object's `metadata.generation`, if present.
    pub fn generation(&self) -> Option<i64> {
        self.generation
    }

    /// Returns the object's Strait annotations.
    pub fn annotations(&self) -> &'a Annotations {
        self.annotations.unwrap_or(const { &Annotations::NONE })
    }

    /// Returns the budget of the object's regular expressions.
    pub fn regexes(&self) -> &Budget {
        &self.regexes
    }

    /// Marks the object as rejected because of an error in its text that was already reported. `is_misread` tells whether
    /// the error is outside of the object's rules.
    pub fn refuse(&mut self, is_misread: bool) {
        self.failed = true;
        self.is_misread = is_misread;
    }

    /// Whether the text outside of the object's rules has an error, so that a field without a value may be misspelled.
    pub fn is_misread(&self) -> bool {
        self.is_misread
    }

    /// Records an error. The object will be rejected.
    pub fn error(&mut self, code: Code, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.failed = true;
        self.record(Severity::Error, code, span, message.into())
    }

    /// Records a warning. The object will still be used.
    pub fn warning(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.record(Severity::Warning, code, span, message.into())
    }

    /// Records a note. The object will still be used.
    pub fn note(&mut self, code: Code, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.record(Severity::Note, code, span, message.into())
    }

    fn record(
        &mut self,
        severity: Severity,
        code: Code,
        span: Span,
        message: String,
    ) -> &mut Diagnostic {
        let span = if span.is_none() { self.body } else { span };
        let found = Diagnostic::at(severity, code, span, message);
        if self.found.len() >= FINDINGS_MAX {
            // That the object is refused is known by `failed`.
            return self.dropped.insert(found);
        }
        self.found.push(found);
        let last = self.found.len() - 1;
        &mut self.found[last]
    }

    /// Returns the object's namespace.
    pub fn namespace(&self) -> &str {
        &self.object.namespace
    }

    /// Returns the object's name.
    pub fn name(&self) -> &str {
        &self.object.name
    }

    /// Returns the span of the object's name.
    pub fn name_span(&self) -> Span {
        self.name_span
    }

    /// Returns the value of an object label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels?.get(key).map(String::as_str)
    }

    /// Returns the object's kind.
    pub fn kind(&self) -> Kind {
        self.object.kind
    }

    /// Returns the span of the object's `spec`: the location of diagnostics about missing fields.
    pub fn body(&self) -> Span {
        self.body
    }

    /// Returns the line on which a span starts.
    pub fn line(&self, span: Span) -> Line {
        self.locator.lines.line(span.start)
    }

    /// Returns the location of a span, for [`Diagnostic::related`].
    pub fn location(&self, span: Span) -> Location {
        self.locator.location(span)
    }

    /// Whether an error was recorded for this object.
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// Returns the diagnostics.
    pub fn into_found(self) -> Vec<Diagnostic> {
        let mut found = self.found;
        let known = found.iter().any(|found| found.severity == Severity::Error);
        if let Some(dropped) = self
            .dropped
            .filter(|dropped| dropped.severity == Severity::Error && !known)
        {
            found.push(dropped);
        }
        found
    }
}
