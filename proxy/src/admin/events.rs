//! `/events`: health events of endpoints, oldest first.

use std::fmt::Write;

use http::StatusCode;

use super::reply::{Query, Reply};
use super::state::AdminState;
use super::view::EventView;
use crate::runtime::clock;
use traffic::registry::Journal;

/// Renders the page.
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

/// Makes the views of a journal, oldest event first.
pub fn views(journal: &Journal) -> Vec<EventView> {
    let now = journal.at(clock::now());
    let events = journal.since(0).into_iter();
    events
        .map(|event| EventView {
            number: event.number,
            seconds_ago: now.since(event.at).as_secs_f64(),
            cluster: event.cluster.to_string(),
            endpoint: event.endpoint.map(String::from),
            kind: event.what.name().to_owned(),
            message: event.what.to_string(),
        })
        .collect()
}
