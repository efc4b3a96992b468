//! What is printed during a run, and how long a step may take.

use std::io::Write as _;
use std::time::Duration;

use crate::compare::failure::{Failure, context};

/// How long anything may take that is waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(180);

/// Prints a line.
pub(super) fn say(line: &str) -> Result<(), Failure> {
    writeln!(std::io::stdout(), "{line}").map_err(context("cannot print"))
}
