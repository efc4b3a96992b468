//! The atomics of what threads share, replaced by loom's under `--cfg loom` so that models can explore every order.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicUsize, Ordering};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicUsize, Ordering};
