//! A cluster, and the marks of what is written to it.

use std::path::PathBuf;

use config_loader::ApiServer;
use config_loader::resource::flomesh::ClusterKey;

/// The field manager of the ServiceImports that are written here, and the value of [`OWNER_LABEL`] on them.
pub const MANAGER: &str = "strait-imports";

/// The label of the ServiceImports that are written here. One without it is never changed or deleted.
pub const OWNER_LABEL: &str = "app.kubernetes.io/managed-by";

/// A cluster that exports to the others, and imports from them.
#[derive(Clone, Debug)]
pub struct ImportingCluster {
    /// Its key, `region/zone/group/name`.
    pub key: ClusterKey,
    /// Its API server.
    pub server: ApiServer,
    /// The kubeconfig; none for `KUBECONFIG`, `~/.kube/config`, or the service account of the pod.
    pub kubeconfig: Option<PathBuf>,
}
