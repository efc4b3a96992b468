//! Validation of Kubernetes core kinds.

mod config_map;
mod endpoint_slice;
mod pod;
mod secret;
mod service;

pub use config_map::config_map;
pub use endpoint_slice::endpoint_slice;
pub use pod::{namespace, node, pod};
pub use secret::secret;
pub use service::service;
pub(in crate::validate) use service::{DISTRIBUTIONS, TRAFFIC_POLICIES};
