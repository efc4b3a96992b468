//! `/certs`.

use serde_json::json;

use super::reply::{Query, Reply};
use super::state::AdminState;

/// Shows certificates in use and the errors of newer ones, in the format of Envoy's page.
pub(super) fn show(state: &AdminState, _: Query<'_>) -> Reply {
    Reply::json(&json!({ "certificates": (state.certificates)() }))
}
