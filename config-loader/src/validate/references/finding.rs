//! Diagnostics about lines of objects, and suggested fixes.

use crate::catalog::Services;
use crate::diagnostic::{Code, Diagnostic, Location, Severity, suggest};
use crate::resource::Object;
use crate::span::{Line, Span};

/// Largest number of unknown hosts for which a similar host is searched. It bounds the work when all hosts are unknown.
pub(super) const SUGGESTIONS_MAX: usize = 100;

/// Name as an object writes it: that of a host or of a cluster.
pub(super) struct WrittenName<'a> {
    pub(super) name: &'a str,
    pub(super) field: String,
    pub(super) line: Line,
}

/// Returns a warning about a line of an object whose text is no longer available.
pub(super) fn warning<T>(
    object: &Object<T>,
    code: Code,
    line: Line,
    field: String,
    message: String,
) -> Diagnostic {
    let mut found = Diagnostic::at(Severity::Warning, code, Span::NONE, message);
    found.object = Some(object.id.clone());
    found.location = location(object, line);
    found.field = field;
    found
}

/// Returns a note about a line of an object.
pub(super) fn note<T>(
    object: &Object<T>,
    code: Code,
    line: Line,
    field: &str,
    message: String,
) -> Diagnostic {
    let mut found = warning(object, code, line, field.to_owned(), message);
    found.severity = Severity::Note;
    found
}

/// Returns the location of a line of an object.
pub(super) fn location<T>(object: &Object<T>, line: Line) -> Location {
    let mut location = Location::whole_file(object.provenance.file.clone());
    location.line = object.line_of(line);
    location.column = 1;
    location.len = 1;
    location
}

/// Returns the most similar known host: the same host with a misspelled first label, or one with the same first label.
pub(super) fn nearest_host<'s>(services: &'s Services, host: &str) -> Option<&'s str> {
    let (first, rest) = host.split_once('.').unwrap_or((host, ""));
    let hosts = services.iter().map(|(host, _)| &**host);
    let alike = hosts.filter(|known| {
        known
            .strip_prefix(first)
            .is_some_and(|known| known.starts_with('.'))
            || known
                .strip_suffix(rest)
                .is_some_and(|known| known.ends_with('.'))
    });
    let mut alike: Vec<&str> = alike.collect();
    alike.sort_unstable();
    let labels = alike
        .iter()
        .filter_map(|known| Some((known.strip_suffix(rest)?.strip_suffix('.')?, *known)));
    let labels: Vec<(&str, &str)> = labels.collect();
    let label = suggest::nearest(first, labels.iter().map(|(label, _)| *label));
    let by_label = label
        .and_then(|near| labels.iter().find(|(label, _)| *label == near))
        .map(|(_, known)| *known);
    by_label.or_else(|| {
        alike
            .into_iter()
            .find(|known| known.split('.').next() == Some(first))
    })
}
