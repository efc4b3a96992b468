//! `/healthz/ready` and `/healthz/live`, for probes.

use http::StatusCode;

use super::reply::{Query, Reply};
use super::state::AdminState;
use super::view::Readiness;

/// Responds with 503 until the proxy is ready, and again during a drain, so that load balancers stop sending.
pub(super) fn ready(state: &AdminState, _: Query<'_>) -> Reply {
    let readiness = (state.readiness)();
    let status = match readiness {
        Readiness::Ready => StatusCode::OK,
        Readiness::Starting { .. } | Readiness::Draining => StatusCode::SERVICE_UNAVAILABLE,
    };
    Reply::text(status, format!("{}\n", describe(&readiness)))
}

/// Always responds with 200: a draining process must not be killed.
pub(super) fn live(_: &AdminState, _: Query<'_>) -> Reply {
    Reply::text(StatusCode::OK, "live\n")
}

/// Describes the readiness in one line.
pub(super) fn describe(readiness: &Readiness) -> String {
    match readiness {
        Readiness::Ready => "ready".to_owned(),
        Readiness::Starting { waiting_for } => format!("not ready: waiting for {waiting_for}"),
        Readiness::Draining => "not ready: draining".to_owned(),
    }
}
