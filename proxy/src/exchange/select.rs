//! Selection of a request's route, cluster and endpoint.

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
