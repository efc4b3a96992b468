//! Kinds of flomesh.io and multicluster.flomesh.io as written.

mod cluster;
mod global_traffic_policy;
mod service_export;
mod service_import;

pub use cluster::{Cluster, ClusterSpec};
pub use global_traffic_policy::{GlobalTrafficPolicy, GlobalTrafficPolicySpec, TrafficTarget};
pub use service_export::{
    PathRewrite, ServiceExport, ServiceExportRule, ServiceExportSpec, ServiceExportStatus,
};
pub use service_import::{
    ClusterStatus, Endpoint, ServiceImport, ServiceImportSpec, ServiceImportStatus, ServicePort,
    Target,
};
