//! Settings of a cluster, and the field manager and label of the ServiceImports that Strait manages.

use std::path::PathBuf;

use config_loader::ApiServer;
use config_loader::resource::flomesh::ClusterKey;

/// Field manager of managed ServiceImports, and value of [`OWNER_LABEL`] on them.
pub const MANAGER: &str = "strait-imports";

/// Label of managed ServiceImports. Strait never changes or deletes a ServiceImport without it.
pub const OWNER_LABEL: &str = "app.kubernetes.io/managed-by";

/// Cluster that exports to the others, and imports from them.
#[derive(Clone, Debug)]
pub struct ImportingCluster {
    /// Key of the cluster: `region/zone/group/name`.
    pub key: ClusterKey,
    /// API server of the cluster.
    pub server: ApiServer,
    /// Path of the kubeconfig; `None` for `KUBECONFIG`, `~/.kube/config`, or the service account of the pod.
    pub kubeconfig: Option<PathBuf>,
}
