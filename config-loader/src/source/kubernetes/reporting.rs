//! Reports of the configuration in effect, to a config server.

use std::time::Duration;

use kube::Client;
use serde_json::Value;

use crate::proxy_state::ProxyState;
use crate::source::stream::causes::with_causes;
use crate::source::stream::report::States;

/// Interval between reports without a change, which tell the server that the proxy is alive.
const HEARTBEAT: Duration = Duration::from_secs(20);

/// Shortest time between two reports.
const PAUSE: Duration = Duration::from_millis(100);

/// Longest time until the server responds to a report.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Sends reports to one server until the proxy's state stops changing or this future is dropped.
pub(super) async fn report(client: Client, server: String, mut states: States) {
    let mut has_failed = false;
    loop {
        let state = states.borrow_and_update().clone();
        if let Some(request) = state.and_then(|state| request(&state, &server)) {
            match send(&client, request).await {
                Ok(()) => has_failed = false,
                Err(problem) if has_failed => {
                    tracing::debug!(server, problem, "report not taken");
                }
                Err(problem) => {
                    has_failed = true;
                    tracing::warn!(
                        server,
                        problem,
                        "the config server does not take the report of this proxy; retried every 20 s"
                    );
                }
            }
        }
        tokio::time::sleep(PAUSE).await;
        tokio::select! {
            changed = states.changed() => {
                if changed.is_err() {
                    return;
                }
            }
            () = tokio::time::sleep(HEARTBEAT) => {}
        }
    }
}

fn request(state: &ProxyState, server: &str) -> Option<http::Request<Vec<u8>>> {
    let report = state.report_for(server)?;
    http::Request::put(state.report_path())
        .header("content-type", "application/json")
        .body(report.to_string().into_bytes())
        .ok()
}

async fn send(client: &Client, request: http::Request<Vec<u8>>) -> Result<(), String> {
    match tokio::time::timeout(ANSWER_MAX, client.request::<Value>(request)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(with_causes(&error)),
        Err(_) => Err("it does not answer in time".to_owned()),
    }
}
