//! `/certs`.

use serde_json::json;

use super::AdminState;
use super::reply::{Query, Reply};

/// Certificates in use and what is wrong with newer ones, in the shape of Envoy's page.
pub(super) fn show(state: &AdminState, _: Query<'_>) -> Reply {
    Reply::json(&json!({ "certificates": (state.certificates)() }))
}
