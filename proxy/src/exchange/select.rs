//! Where a request goes: its route, its cluster, and one of the cluster's endpoints.

pub mod affinity;
mod federation;
pub mod find_route;
pub mod target;
