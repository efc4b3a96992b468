//! Durations in explanations.

use std::time::Duration;

/// Renders a duration in the syntax of resources: `1.5s`, `250ms`.
pub fn duration(duration: Duration) -> String {
    format!("{duration:?}")
}
