//! The networking.karmada.io kinds: raw to checked.

mod multi_cluster_service;

pub use multi_cluster_service::multi_cluster_service;
