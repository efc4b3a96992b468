//! What all control streams share: the state of each server, and the way of its changes to the store.
//!
//! - a `mirror` per resource turns what a server says into changes, so that a new list removes nothing by itself;
//! - tasks report changes and problems (`report`);
//! - `signs` knows when a server was heard last; `stall` notices a server that stops in the middle of a message; `load` reads what was saved of one;
//! - `progress` knows what is still missing (`waiting` names it), and what is wrong;
//! - `collect` gathers the changes of all servers and hands them on as one; `saving` writes them to files (`--state`).

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
