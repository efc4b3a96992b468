//! `/healthz/ready` and `/healthz/live`: what probes ask.

use http::StatusCode;

use super::reply::{Query, Reply};
use super::state::AdminState;
use super::view::Readiness;

/// 503 until everything is in place, and again while draining, so that load balancers move on.
pub(super) fn ready(state: &AdminState, _: Query<'_>) -> Reply {
    let readiness = (state.readiness)();
    let status = match readiness {
        Readiness::Ready => StatusCode::OK,
        Readiness::Starting { .. } | Readiness::Draining => StatusCode::SERVICE_UNAVAILABLE,
    };
    Reply::text(status, format!("{}\n", describe(&readiness)))
}

/// Always 200: a process that drains must not be killed for it.
pub(super) fn live(_: &AdminState, _: Query<'_>) -> Reply {
    Reply::text(StatusCode::OK, "live\n")
}

/// One line for people.
pub(super) fn describe(readiness: &Readiness) -> String {
    match readiness {
        Readiness::Ready => "ready".to_owned(),
        Readiness::Starting { waiting_for } => format!("not ready: waiting for {waiting_for}"),
        Readiness::Draining => "not ready: draining".to_owned(),
    }
}
