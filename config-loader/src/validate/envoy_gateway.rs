//! Validation of the gateway.envoyproxy.io kinds.

mod backend_traffic_policy;
mod limit_rule;

pub use backend_traffic_policy::backend_traffic_policy;

#[cfg(test)]
mod tests;
