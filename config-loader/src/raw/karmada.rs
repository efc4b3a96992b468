//! Kinds of networking.karmada.io as written.

mod multi_cluster_service;

pub use multi_cluster_service::{
    ClusterSelector, ExposurePort, ExposureRange, MultiClusterService, MultiClusterServiceSpec,
    ServiceStatus,
};
