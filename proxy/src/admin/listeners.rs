//! `/listeners`.

use std::fmt::Write;

use http::StatusCode;

use super::reply::{Query, Reply};
use super::state::AdminState;
use super::view::ListenerView;

/// Shows the listeners, as text or JSON.
pub(super) fn show(state: &AdminState, query: Query<'_>) -> Reply {
    let listeners = (state.listeners)();
    if query.wants_json() {
        return Reply::json(&listeners);
    }
    let mut text = String::new();
    for listener in &listeners {
        describe(&mut text, listener);
    }
    Reply::text(StatusCode::OK, text)
}

/// Writes `name::address` first, as Envoy does, then one fact per line.
fn describe(text: &mut String, listener: &ListenerView) {
    let ListenerView {
        name,
        address,
        protocol,
        state,
        error,
        ..
    } = listener;
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{name}::{address}");
    let _ = writeln!(text, "{name}::state::{}", state.as_str());
    if let Some(error) = error {
        let _ = writeln!(text, "{name}::error::{error}");
    }
    let _ = writeln!(text, "{name}::protocol::{protocol}");
    let _ = writeln!(text, "{name}::cx_active::{}", listener.cx_active);
    for host in &listener.hosts {
        let _ = writeln!(text, "{name}::host::{host}");
    }
    for source in &listener.sources {
        let _ = writeln!(text, "{name}::source::{source}");
    }
    if let Some(tls) = &listener.mutual_tls {
        let source = tls.source.as_deref().unwrap_or("default of the mesh");
        let _ = writeln!(text, "{name}::mutual_tls::{}", tls.mode);
        let _ = writeln!(text, "{name}::mutual_tls_source::{source}");
        let _ = writeln!(
            text,
            "{name}::mutual_tls_certificate::{}",
            tls.has_certificate
        );
    }
}
