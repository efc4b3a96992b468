//! Validation of the networking.karmada.io kinds.

mod multi_cluster_service;

pub use multi_cluster_service::multi_cluster_service;
