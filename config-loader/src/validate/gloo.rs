//! Validation of the discovery.mesh.gloo.solo.io kinds.

mod access_policy;
mod destination;
mod external_service;
mod kube_service;
mod status;
mod traffic_policy;
mod values;

pub use destination::destination;
