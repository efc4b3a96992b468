//! Builders for tests: the downstream half with a closure that answers, and raw clients.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "shared by test modules, each of which uses a part"
)]

#[path = "downstream.rs"]
pub mod downstream;
#[path = "frames.rs"]
pub mod frames;
#[path = "raw.rs"]
pub mod raw;

use std::time::{Duration, Instant};

/// How long a test waits for something that must happen.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// Waits until `condition` holds.
///
/// # Panics
///
/// When it does not within [`DEADLINE`].
#[track_caller]
pub fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "waited in vain: {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}
