//! Kinds of flomesh.io and multicluster.flomesh.io, checked.

mod cluster;
mod cluster_key;
mod global_traffic_policy;
mod service_export;
mod service_import;

pub use cluster::Cluster;
pub use cluster_key::ClusterKey;
pub use global_traffic_policy::{ClusterBalancing, GlobalTrafficPolicy, TrafficTarget};
pub use service_export::{Algorithm, ExportRule, PathRewrite, PathType, ServiceExport};
pub use service_import::{
    ImportEndpoint, ImportPort, ImportTarget, ImportType, ServiceAccount, ServiceImport,
    SourceStatus,
};
