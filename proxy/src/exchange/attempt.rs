//! Sending a request upstream: one attempt, its timeouts, the retries, and the replay in the next tier of clusters.

pub mod deadline;
mod failover;
pub mod policy;
pub mod retries;
pub mod send;
