//! `/stats/prometheus`.

use http::StatusCode;

use super::AdminState;
use super::reply::{Query, Reply};
use crate::telemetry::CONTENT_TYPE;

/// The page.
pub(super) fn show(state: &AdminState, _: Query<'_>) -> Reply {
    match state.stats.chunks() {
        Ok(chunks) => Reply::chunks(StatusCode::OK, CONTENT_TYPE, chunks),
        Err(error) => Reply::failed(&error),
    }
}
