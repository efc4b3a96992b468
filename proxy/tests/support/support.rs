//! Test builders: the downstream half of the proxy with a closure, the whole proxy as a process, scripted origins, and
//! clients.

#![allow(
    dead_code,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "shared by test modules, each of which uses a part"
)]

#[path = "api_server.rs"]
pub mod api_server;
#[path = "client.rs"]
pub mod client;
#[path = "dns.rs"]
pub mod dns;
#[path = "downstream.rs"]
pub mod downstream;
#[path = "envoy.rs"]
pub mod envoy;
#[path = "frames.rs"]
pub mod frames;
#[path = "mesh.rs"]
pub mod mesh;
#[path = "origin.rs"]
pub mod origin;
#[path = "otlp.rs"]
pub mod otlp;
#[path = "pki.rs"]
pub mod pki;
#[path = "proxy.rs"]
pub mod proxy;
#[path = "raw.rs"]
pub mod raw;
#[path = "script.rs"]
pub mod script;
#[path = "table.rs"]
pub mod table;
#[path = "tls.rs"]
pub mod tls;
#[path = "tls_origin.rs"]
pub mod tls_origin;

use std::time::{Duration, Instant};

/// Maximum time that a test waits for a condition.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// Interval between checks of a condition.
const LOOK: Duration = Duration::from_millis(2);

/// Waits until `condition` holds.
///
/// # Panics
///
/// When the condition does not hold within [`DEADLINE`].
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "timed out waiting: {what}");
        std::thread::park_timeout(LOOK);
    }
}

/// Waits until `condition` holds, while the test's own tasks run.
///
/// # Panics
///
/// When the condition does not hold within [`DEADLINE`].
pub async fn until(what: &str, mut condition: impl AsyncFnMut() -> bool) {
    let mut looks = tokio::time::interval(LOOK);
    let waiting = async {
        while !condition().await {
            looks.tick().await;
        }
    };
    let waited = tokio::time::timeout(DEADLINE, waiting).await;
    assert!(waited.is_ok(), "timed out waiting: {what}");
}
