//! Durations in explanations.

use std::time::Duration;

/// A duration as resources write it: `1.5s`, `250ms`.
pub(super) fn duration(duration: Duration) -> String {
    format!("{duration:?}")
}
