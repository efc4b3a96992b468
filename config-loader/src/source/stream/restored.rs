//! Diagnostic about a saved state in effect.

use std::time::SystemTime;

use super::report::Origin;
use crate::diagnostic::codes::common::SRC007;
use crate::diagnostic::{Diagnostic, Severity};

/// Returns a diagnostic: a saved state is in effect.
pub(super) fn finding(server: &Origin, at: SystemTime) -> Diagnostic {
    let age = SystemTime::now().duration_since(at).unwrap_or_default();
    let message = format!(
        "started from what the {} said {} before, as saved in the directory of --state",
        server.title,
        in_words(age.as_secs())
    );
    let mut found = Diagnostic::about_file(
        Severity::Warning,
        SRC007,
        server.name.as_str().into(),
        message,
    );
    found.help("it stays in effect until the server answers; changes since then are missing");
    found
}

/// Formats a duration in its largest unit.
fn in_words(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}
