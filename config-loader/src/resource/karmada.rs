//! Kinds of networking.karmada.io, checked.

mod multi_cluster_service;

pub use multi_cluster_service::{Exposure, ExposurePort, MultiClusterService, NamedCluster};
