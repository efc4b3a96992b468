//! What a validator knows of its object, and where its findings go.

use std::collections::BTreeMap;

use super::annotations::Annotations;
use crate::ReadOptions;
use crate::diagnostic::{Code, Diagnostic, FINDINGS_MAX, Location, Locator, Severity};
use crate::kind::{Kind, ObjectRef};
use crate::re2::Budget;
use crate::span::{Line, Span};

/// What a validator knows of the object that it checks, and where its findings go.
#[derive(Debug)]
pub struct Check<'a> {
    object: &'a ObjectRef,
    locator: Locator<'a>,
    body: Span,
    name_span: Span,
    labels: Option<&'a BTreeMap<String, String>>,
    annotations: Option<&'a Annotations>,
    generation: Option<i64>,
    found: Vec<Diagnostic>,
    /// The last finding past the limit.
    dropped: Option<Diagnostic>,
    failed: bool,
    options: ReadOptions,
    regexes: Budget,
}

impl<'a> Check<'a> {
    /// A check of `object`, whose `spec` (or, for kinds without one, whose document) stands at `body`.
    pub fn new(object: &'a ObjectRef, locator: Locator<'a>, body: Span) -> Check<'a> {
        Check {
            object,
            locator,
            body,
            name_span: Span::NONE,
            labels: None,
            annotations: None,
            generation: None,
            found: Vec::new(),
            dropped: None,
            failed: false,
            options: ReadOptions::default(),
            regexes: Budget::default(),
        }
    }

    /// The check, as strict as `options` say.
    pub fn with_options(mut self, options: ReadOptions) -> Check<'a> {
        self.options = options;
        self
    }

    /// How strict the check is.
    pub fn options(&self) -> ReadOptions {
        self.options
    }

    /// The check, knowing where the object's name stands and which labels it has.
    pub fn with_metadata(
        mut self,
        name_span: Span,
        labels: &'a BTreeMap<String, String>,
    ) -> Check<'a> {
        self.name_span = name_span;
        self.labels = Some(labels);
        self
    }

    /// The check, knowing those of the object's annotations that are ours.
    pub fn with_annotations(mut self, annotations: &'a Annotations) -> Check<'a> {
        self.annotations = Some(annotations);
        self
    }

    /// The check, knowing the object's `metadata.generation`.
    pub fn with_generation(mut self, generation: Option<i64>) -> Check<'a> {
        self.generation = generation;
        self
    }

    /// The object's `metadata.generation`, if it is written.
    pub fn generation(&self) -> Option<i64> {
        self.generation
    }

    /// Those of the object's annotations that are ours.
    pub fn annotations(&self) -> &'a Annotations {
        self.annotations.unwrap_or(const { &Annotations::NONE })
    }

    /// The regular expressions of the object.
    pub fn regexes(&self) -> &Budget {
        &self.regexes
    }

    /// Records that the object is refused already because of its text.
    pub fn refuse(&mut self) {
        self.failed = true;
    }

    /// Records an error: the object will be refused.
    pub fn error(&mut self, code: Code, span: Span, message: impl Into<String>) -> &mut Diagnostic {
        self.failed = true;
        self.record(Severity::Error, code, span, message.into())
    }

    /// Records a warning: the object will be used.
    pub fn warning(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
    ) -> &mut Diagnostic {
        self.record(Severity::Warning, code, span, message.into())
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

    /// The object's namespace.
    pub fn namespace(&self) -> &str {
        &self.object.namespace
    }

    /// The object's name.
    pub fn name(&self) -> &str {
        &self.object.name
    }

    /// Where the object's name stands.
    pub fn name_span(&self) -> Span {
        self.name_span
    }

    /// The object's label of that key.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels?.get(key).map(String::as_str)
    }

    /// The object's kind.
    pub fn kind(&self) -> Kind {
        self.object.kind
    }

    /// Where the object's `spec` stands: the place of findings about what is missing altogether.
    pub fn body(&self) -> Span {
        self.body
    }

    /// The line on which a span starts.
    pub fn line(&self, span: Span) -> Line {
        self.locator.lines.line(span.start)
    }

    /// The place of a span, to be named in [`Diagnostic::related`].
    pub fn location(&self, span: Span) -> Location {
        self.locator.location(span)
    }

    /// Whether an error was recorded for this object.
    pub fn failed(&self) -> bool {
        self.failed
    }

    /// The findings.
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
