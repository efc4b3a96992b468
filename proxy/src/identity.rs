//! Who this proxy is: mode, cluster, namespace, labels, network.

use std::collections::BTreeMap;

/// Which side of the traffic this proxy stands on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// An edge or east-west gateway: serves what Gateways with a matching selector describe.
    #[default]
    Gateway,
    /// A sidecar next to a workload.
    Sidecar,
}

/// What the proxy was told about itself; never changes while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Gateway or sidecar. Flag `--mode`, default gateway.
    pub mode: Mode,
    /// Cluster key `region/zone/group/cluster`. Flag `--cluster`, default `default/default/default/local`.
    pub cluster: String,
    /// Namespace of the workload. Flag `--namespace`, default `default`.
    pub namespace: String,
    /// Labels of the workload, compared with Gateway selectors and `sourceLabels`. Flag `--labels`.
    pub labels: BTreeMap<String, String>,
    /// Network name, empty by default. Flag `--network`.
    pub network: String,
    /// Domain that short host names are completed with. Flag `--domain`, default `cluster.local`.
    pub domain: String,
    /// Namespace that holds mesh-wide defaults. Flag `--root-namespace`, default `istio-system`.
    pub root_namespace: String,
    /// Directory of the mesh identity: `cert-chain.pem`, `key.pem`, `root-cert.pem`. Flag `--mesh-certs`, default
    /// `/etc/certs`.
    pub mesh_certificates: String,
    /// What the mesh does where a rule says nothing.
    pub mesh: MeshDefaults,
}

/// What the mesh does where a rule says nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeshDefaults {
    /// Whether plain 503 responses are tried again, as in older Istio. Flag `--compat-retry-503`, default no.
    pub retry_503: bool,
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            mode: Mode::Gateway,
            cluster: "default/default/default/local".to_owned(),
            namespace: "default".to_owned(),
            labels: BTreeMap::new(),
            network: String::new(),
            domain: "cluster.local".to_owned(),
            root_namespace: "istio-system".to_owned(),
            mesh_certificates: "/etc/certs".to_owned(),
            mesh: MeshDefaults::default(),
        }
    }
}
