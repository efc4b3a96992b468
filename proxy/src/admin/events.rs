//! `/events`: what happened to the health of endpoints, oldest first.

use std::fmt::Write;

use http::StatusCode;

use super::AdminState;
use super::reply::{Query, Reply};

/// The page.
pub(super) fn show(state: &AdminState, query: Query<'_>) -> Reply {
    let events = (state.events)();
    if query.wants_json() {
        return Reply::json(&events);
    }
    let mut text = String::new();
    for event in &events {
        let endpoint = event.endpoint.as_deref().unwrap_or("-");
        // writing to a string cannot fail
        let _ = writeln!(
            text,
            "{:.1}s ago  {}  {endpoint}  {}: {}",
            event.seconds_ago, event.cluster, event.kind, event.message
        );
    }
    Reply::text(StatusCode::OK, text)
}
