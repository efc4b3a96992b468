//! Where a request goes: its route, its cluster, and one of the cluster's endpoints.

pub mod affinity;
pub mod context;
pub mod dialed;
mod federation;
pub mod find_route;
pub mod pending;
pub mod pick;
pub mod proxied;
pub mod target;
pub mod watch;
