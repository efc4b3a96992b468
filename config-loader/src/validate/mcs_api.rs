//! Validation of the multicluster.x-k8s.io kinds (KEP-1645).

mod service_import;

pub use service_import::service_import;
