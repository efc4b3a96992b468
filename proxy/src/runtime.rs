//! What everything runs on: threads, supervised tasks, a coarse clock, admission, drain, readiness, and sockets of
//! intercepted connections.
//!
//! Knows nothing of requests or configuration; used by every row above.

pub mod admission;
pub mod clock;
pub mod dates;

pub mod drain;
pub mod gather;
pub mod interception;
pub mod open_files;
pub mod ready;
pub mod sync;
pub mod task;
pub mod threads;
