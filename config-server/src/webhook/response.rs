//! Responses to reviews.

use serde_json::{Value, json};

/// Maximum number of warnings of one answer, and of the characters of each, as kubectl shows them.
const WARNINGS_MAX: usize = 10;
const WARNING_CHARS_MAX: usize = 256;

/// Allows an object, with warnings that kubectl shows.
pub(super) fn allowed(warnings: &[String]) -> Value {
    let mut response = json!({"allowed": true});
    let short = |text: &String| text.chars().take(WARNING_CHARS_MAX).collect::<String>();
    if !warnings.is_empty() {
        response["warnings"] = warnings.iter().take(WARNINGS_MAX).map(short).collect();
    }
    response
}
