//! `/certs`.

use serde_json::json;

use super::reply::{Query, Reply};
use super::state::AdminState;

/// Certificates in use and what is wrong with newer ones, in the shape of Envoy's page.
pub(super) fn show(state: &AdminState, _: Query<'_>) -> Reply {
    Reply::json(&json!({ "certificates": (state.certificates)() }))
}
