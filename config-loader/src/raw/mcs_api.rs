//! Kinds of multicluster.x-k8s.io (KEP-1645) as written.

mod service_import;

pub use service_import::{
    ClusterStatus, ServiceImport, ServiceImportSpec, ServiceImportStatus, ServicePort,
};
