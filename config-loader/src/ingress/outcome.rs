//! Outcomes: what becomes of an annotation or a field.

use std::sync::Arc;

use crate::diagnostic::codes::ingress::{IG040, IG041, IG042, IG043};
use crate::diagnostic::{Code, Diagnostic, Location, Severity};
use crate::resource::Object;
use crate::span::{Line, Span};

/// Effect of an annotation or a field of an Ingress.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Annotation, or path of the field.
    pub field: String,
    /// Value as written.
    pub value: Arc<str>,
    /// Source line within the document.
    pub line: Line,
    /// Verdict.
    pub verdict: Verdict,
}

/// Verdict about an annotation or a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It becomes this.
    Becomes(String),
    /// It restricts or redirects requests and is not followed, for this reason: paths of the Ingress answer 500.
    Closed(String),
    /// It has no effect, for this reason.
    Dropped(String),
    /// Its value cannot be used, for this reason.
    Invalid(String),
    /// It is kept, with this remark.
    Remark(Code, String),
    /// It is not known; a similar annotation is.
    Unknown(Option<&'static str>),
}

/// Returns that paths answer 500, for this reason.
pub(super) fn closed(why: &str) -> Option<Verdict> {
    Some(Verdict::Closed(why.to_owned()))
}

/// Returns that an annotation has no effect, for this reason.
pub(super) fn dropped(why: &str) -> Option<Verdict> {
    Some(Verdict::Dropped(why.to_owned()))
}

/// Returns that a value cannot be used, for this reason.
pub(super) fn invalid(why: &str) -> Option<Verdict> {
    Some(Verdict::Invalid(why.to_owned()))
}

/// Returns that an annotation asks for nothing.
pub(super) fn nothing() -> Option<Verdict> {
    Some(Verdict::Becomes("nothing".to_owned()))
}

impl Verdict {
    /// Word for the report.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Becomes(_) => "becomes",
            Verdict::Closed(_) => "answers 500",
            Verdict::Dropped(_) | Verdict::Invalid(_) | Verdict::Unknown(_) => "dropped",
            Verdict::Remark(..) => "kept",
        }
    }

    /// Text for the report.
    pub fn text(&self) -> String {
        match self {
            Verdict::Becomes(text)
            | Verdict::Closed(text)
            | Verdict::Dropped(text)
            | Verdict::Invalid(text)
            | Verdict::Remark(_, text) => text.clone(),
            Verdict::Unknown(Some(near)) => format!("not known; did you mean `{near}`?"),
            Verdict::Unknown(None) => "not known".to_owned(),
        }
    }

    /// Whether something that the Ingress asks for is missing.
    pub fn is_loss(&self) -> bool {
        !matches!(self, Verdict::Becomes(_) | Verdict::Remark(..))
    }
}

impl Outcome {
    /// Returns the finding about the outcome, if there is one.
    pub(super) fn finding<T>(&self, object: &Object<T>) -> Option<Diagnostic> {
        let key = &self.field;
        let (severity, code, message, help) = match &self.verdict {
            Verdict::Becomes(_) => return None,
            Verdict::Closed(why) => (
                Severity::Warning,
                IG041,
                format!(
                    "`{key}` is not followed ({why}): paths of this Ingress get a response with status 500"
                ),
                Some("remove the annotation, if requests may be served without it".to_owned()),
            ),
            Verdict::Dropped(why) => (
                Severity::Warning,
                IG042,
                format!("`{key}` has no effect: {why}"),
                None,
            ),
            Verdict::Invalid(why) => (
                Severity::Warning,
                IG043,
                format!("`{}` is not a value of `{key}`", self.value),
                Some(why.clone()),
            ),
            Verdict::Remark(code, text) => (Severity::Note, *code, text.clone(), None),
            Verdict::Unknown(near) => (
                Severity::Warning,
                IG040,
                format!("`{key}` is not an annotation of ingress-nginx"),
                near.map(|near| format!("did you mean `{near}`?")),
            ),
        };
        let mut found = finding(object, code, severity, self.line, message);
        found.field = match key.contains('/') {
            true => format!("metadata.annotations[{key}]"),
            false => key.clone(),
        };
        Some(found.with_help(help))
    }
}

/// Returns a finding about a line of an object.
pub(super) fn finding<T>(
    object: &Object<T>,
    code: Code,
    severity: Severity,
    line: Line,
    message: String,
) -> Diagnostic {
    let mut found = Diagnostic::at(severity, code, Span::NONE, message);
    found.object = Some(object.id.clone());
    found.location = location(object, line);
    found
}

/// Returns the location of a line of an object.
pub(super) fn location<T>(object: &Object<T>, line: Line) -> Location {
    let mut location = Location::whole_file(Arc::clone(&object.provenance.file));
    location.line = object.line_of(line);
    location.column = 1;
    location.len = 1;
    location
}
