//! How far the run has come.

use std::io::Write as _;

/// Tells how far the run has come, on standard error.
pub fn say(message: &str) {
    // The report is what counts; a closed terminal must not end the run.
    let _ = writeln!(std::io::stderr(), "{message}");
}
