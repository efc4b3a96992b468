//! `/findings`.

use std::fmt::Write;

use http::StatusCode;

use super::reply::{Query, Reply};
use super::state::AdminState;

/// Shows the findings, as text or JSON.
pub(super) fn show(state: &AdminState, query: Query<'_>) -> Reply {
    let findings = (state.findings)();
    if query.wants_json() {
        return Reply::json(&findings);
    }
    let mut text = String::new();
    for found in &findings {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "{}[{}] {}",
            found.severity, found.code, found.location
        );
        if !found.field.is_empty() {
            let _ = write!(text, " {}", found.field);
        }
        let _ = write!(text, ": {}", found.message);
        if let Some(help) = &found.help {
            let _ = write!(text, "; {help}");
        }
        text.push('\n');
    }
    if findings.is_empty() {
        text.push_str("no findings\n");
    }
    Reply::text(StatusCode::OK, text)
}
