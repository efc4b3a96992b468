//! Findings about whole objects.

use std::sync::Arc;

use config_loader::diagnostic::Code;
use config_loader::resource::{Line, Object};
use config_loader::{Diagnostic, Severity};

/// Returns a warning about an object as a whole.
pub(super) fn warning_about<T>(object: &Object<T>, code: Code, message: &str) -> Diagnostic {
    let file = Arc::clone(&object.provenance.file);
    let mut found = Diagnostic::about_file(Severity::Warning, code, file, message);
    found.object = Some(object.id.clone());
    (
        found.location.line,
        found.location.column,
        found.location.len,
    ) = (object.line_of(Line(0)), 1, 1);
    found
}
