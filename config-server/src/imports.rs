//! `strait control --imports-between`: ServiceImports of several clusters, derived from their ServiceExports.
//!
//! `between` starts the tasks. `follow` feeds the objects of every cluster to the loop in `run`, which stores them in
//! `cluster`. The pure function `plan` compares actual and desired imports (`config_loader::imports`, and `kept` for
//! clusters whose exports are unknown). `write` sends the difference, paced by `attempts`, and `findings` logs every
//! problem once.

mod attempts;
mod between;
mod cluster;
mod findings;
mod follow;
mod kept;
mod plan;
mod run;
mod settings;
mod write;

pub use between::ImportsBetween;
pub use settings::{ImportingCluster, MANAGER, OWNER_LABEL};
