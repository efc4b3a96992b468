//! `/drain` and `/quitquitquit`.

use http::StatusCode;

use super::reply::{Query, Reply};
use super::state::AdminState;

/// Stops taking connections; the process stays.
pub(super) fn drain(state: &AdminState, _: Query<'_>) -> Reply {
    (state.drain)();
    Reply::text(StatusCode::OK, "draining\n")
}

/// Ends the process as SIGTERM does: after the drain.
pub(super) fn quit(state: &AdminState, _: Query<'_>) -> Reply {
    (state.quit)();
    Reply::text(StatusCode::OK, "draining, then exiting\n")
}
