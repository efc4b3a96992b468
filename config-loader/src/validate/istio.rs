//! Validation of the networking.istio.io, security.istio.io and telemetry.istio.io kinds.
//!
//! There is one file per kind, and one function per block. An error in a block is reported at its location, with the
//! code of the rule. A rule about two blocks is in the file of the block that contains both.

mod authorities;
mod authorization_policy;
mod connection_settings;
mod destination_rule;
mod expression;
mod gateway;
mod log_format;
mod mesh_config;
mod peer_authentication;
mod proxy_config;
mod proxy_settings;
mod request_authentication;
mod security_policies;
mod service_entry;
mod shared;
mod sidecar;
mod telemetry;
mod virtual_service;
mod without_effect;
mod workload_entry;

pub use authorization_policy::authorization_policy;
pub(in crate::validate) use authorization_policy::policy_values;
pub use destination_rule::destination_rule;
pub use gateway::gateway;
pub use log_format::parse_log_format;
pub use mesh_config::{mesh_config, mesh_networks, without_effect};
pub use peer_authentication::peer_authentication;
pub use proxy_config::proxy_config;
pub use proxy_settings::proxy_settings;
pub use request_authentication::request_authentication;
pub use service_entry::service_entry;
pub use sidecar::sidecar;
pub use telemetry::telemetry;
pub use virtual_service::virtual_service;
pub(crate) use virtual_service::{Earlier, Hidden, all_reached};
pub use workload_entry::workload_entry;

use super::Check;

#[cfg(test)]
mod acceptance;
#[cfg(test)]
mod testing;
