//! Parts that all control streams share: the state of each server, and the path of its changes to the store.
//!
//! - a `mirror` per resource turns lists and events of a server into changes; a new list alone removes nothing;
//! - tasks send changes and diagnostics (`report`);
//! - `signs` records when a server was last heard; `stall` detects a server that stops in the middle of a message;
//!   `load` reads saved state;
//! - `progress` tracks which resources are missing (`waiting` names them), and the diagnostics of each server;
//! - `collect` merges the changes of all servers into updates; `saving` writes them to files (`--state`).

pub(super) mod causes;
pub(super) mod collect;
pub(super) mod load;
pub(super) mod mirror;
pub(super) mod pauses;
pub(super) mod progress;
pub(super) mod remote_services;
pub(super) mod report;
mod restored;
mod revisions;
pub(super) mod saving;
pub(super) mod signs;
pub(super) mod stall;
pub(super) mod text;
mod waiting;
