//! `/stats/prometheus`.

use http::StatusCode;

use super::AdminState;
use super::reply::{Query, Reply};
use crate::telemetry::CONTENT_TYPE;

/// The page.
pub(super) fn show(state: &AdminState, _: Query<'_>) -> Reply {
    match state.stats.text() {
        Ok(text) => Reply::new(StatusCode::OK, CONTENT_TYPE, text),
        Err(error) => Reply::failed(&error),
    }
}
