//! Progress output of a run, and the timeout of its steps.

use std::io::Write as _;
use std::time::Duration;

use crate::compare::failure::{Failure, context};

/// Maximum time to wait for any step.
pub(super) const PATIENCE: Duration = Duration::from_secs(180);

/// Prints a line.
pub(super) fn say(line: &str) -> Result<(), Failure> {
    writeln!(std::io::stdout(), "{line}").map_err(context("cannot print"))
}
