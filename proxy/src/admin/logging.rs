//! `/logging`: shows and changes the filter of the process log.

use http::StatusCode;

use super::reply::{Query, Reply};
use super::state::AdminState;

/// Shows the filter in effect.
pub(super) fn show(state: &AdminState, _: Query<'_>) -> Reply {
    Reply::text(
        StatusCode::OK,
        format!("level: {}\n", state.logging.filter()),
    )
}

/// Changes the filter.
pub(super) fn set(state: &AdminState, query: Query<'_>) -> Reply {
    let Some(level) = query.value("level") else {
        return Reply::text(
            StatusCode::BAD_REQUEST,
            "expected ?level=, as in ?level=debug\n",
        );
    };
    match state.logging.set_filter(&level) {
        Ok(()) => {
            tracing::info!(level, "log level changed");
            show(state, query)
        }
        Err(error) => Reply::text(StatusCode::BAD_REQUEST, format!("{error}\n")),
    }
}
