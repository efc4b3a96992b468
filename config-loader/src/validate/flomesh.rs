//! Validation of the flomesh.io and multicluster.flomesh.io kinds.

mod cluster;
mod global_traffic_policy;
mod service_export;
mod service_import;

pub use cluster::cluster;
pub use global_traffic_policy::global_traffic_policy;
pub use service_export::service_export;
pub(in crate::validate) use service_import::import;
pub use service_import::service_import;
