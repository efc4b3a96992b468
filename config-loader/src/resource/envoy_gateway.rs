//! Kinds of gateway.envoyproxy.io, checked.

pub mod backend_traffic_policy;

pub use backend_traffic_policy::BackendTrafficPolicy;
