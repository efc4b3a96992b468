//! `strait control --imports-between`: the ServiceImports of several clusters, from what they export to each other.
//!
//! `between` starts it all. `follow` feeds the objects of every cluster to the loop in `run`, which keeps them in `cluster`. `plan`, a pure function,
//! compares what clusters have with what they should have (`config_loader::imports`, and `kept` for clusters whose exports
//! are not known). `write` makes the difference, at the pace that `attempts` sets, and `findings` logs every problem once.

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
