//! Progress messages of the run.

use std::io::Write as _;

/// Prints a progress message on standard error.
pub fn say(message: &str) {
    // The report is what counts; a closed terminal must not end the run.
    let _ = writeln!(std::io::stderr(), "{message}");
}
