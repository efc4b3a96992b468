//! GitHub renderer: workflow commands that become annotations of a pull request.

use std::fmt::Write as _;

use crate::diagnostic::{Diagnostic, Severity};

/// Renders diagnostics as workflow commands, one line each.
pub fn github(found: &[Diagnostic]) -> String {
    let mut out = String::new();
    for diagnostic in found {
        let command = match diagnostic.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "notice",
        };
        let location = &diagnostic.location;
        // Writing to a String cannot fail.
        let _ = write!(out, "::{command} file={}", property(&location.file));
        if location.line > 0 {
            let end = location.column + location.len.saturating_sub(1);
            let _ = write!(
                out,
                ",line={},col={},endColumn={end}",
                location.line, location.column
            );
        }
        let _ = writeln!(
            out,
            ",title={}::{}",
            property(diagnostic.code.0),
            data(&message(diagnostic))
        );
    }
    out
}

fn message(diagnostic: &Diagnostic) -> String {
    let mut message = String::new();
    if !diagnostic.field.is_empty() {
        message.push_str(&diagnostic.field);
        message.push_str(": ");
    }
    message.push_str(&diagnostic.message);
    if let Some(help) = &diagnostic.help {
        message.push_str("\nhelp: ");
        message.push_str(help);
    }
    message
}

/// Escapes the text of a workflow command.
pub fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Escapes a property of a workflow command.
pub fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
