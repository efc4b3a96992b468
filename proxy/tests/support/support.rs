//! Builders for tests: the downstream half with a closure that answers, the whole proxy as a process, scripted origins,
//! and clients.

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
#[path = "frames.rs"]
pub mod frames;
#[path = "mesh.rs"]
pub mod mesh;
#[path = "origin.rs"]
pub mod origin;
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

/// How long a test waits for something that must happen.
pub const DEADLINE: Duration = Duration::from_secs(60);

/// How often a condition without a notification is checked.
const LOOK: Duration = Duration::from_millis(2);

/// Waits until `condition` holds.
///
/// # Panics
///
/// When it does not within [`DEADLINE`].
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "timed out waiting: {what}");
        std::thread::park_timeout(LOOK);
    }
}

/// Waits until `condition` holds, letting the test's own tasks run meanwhile.
///
/// # Panics
///
/// When it does not within [`DEADLINE`].
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
