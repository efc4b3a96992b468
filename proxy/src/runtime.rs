//! Runtime support: threads, supervised tasks, a coarse clock, values that are replaced, admission, drain, readiness, and sockets of
//! intercepted connections.
//!
//! Independent of requests and configuration; used by every row above.

pub mod admission;
pub mod clock;

pub mod drain;
pub mod duration;
pub mod gather;
pub mod interception;
pub mod latest;
pub mod open_files;
pub mod ready;
pub mod task;
pub mod threads;

pub use traffic::{dates, sync};
