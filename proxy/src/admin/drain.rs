//! `/drain` and `/quitquitquit`.

use http::StatusCode;

use super::reply::{Query, Reply};
use super::state::AdminState;

/// Starts the drain, or with `?announce` only notifies clients; the process keeps running.
pub(super) fn drain(state: &AdminState, query: Query<'_>) -> Reply {
    if query.value("announce").is_some() {
        (state.announce)();
        return Reply::text(StatusCode::OK, "clients are told to go elsewhere\n");
    }
    (state.drain)();
    Reply::text(StatusCode::OK, "draining\n")
}

/// Ends the process as SIGTERM does, after the drain.
pub(super) fn quit(state: &AdminState, _: Query<'_>) -> Reply {
    (state.quit)();
    Reply::text(StatusCode::OK, "draining, then exiting\n")
}
