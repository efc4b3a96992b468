//! Atomics and locks that threads share. The feature `models` replaces them by loom's, so that models can explore every
//! order: `cargo test --workspace --lib --features proxy/models models::`.

#[cfg(feature = "models")]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(feature = "models")]
pub use loom::sync::{Mutex, MutexGuard};
#[cfg(not(feature = "models"))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
#[cfg(not(feature = "models"))]
pub use std::sync::{Mutex, MutexGuard};
