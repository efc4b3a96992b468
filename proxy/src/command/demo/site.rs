//! Clusters of the demo: their names, addresses and identities.

use std::net::SocketAddr;

use crate::identity::Identity;

/// Identity of a gateway in the cluster with this key.
pub(super) fn gateway_identity(cluster: String) -> Identity {
    let mut identity = Identity {
        cluster,
        ..Identity::default()
    };
    identity
        .labels
        .insert("istio".to_owned(), "ingressgateway".to_owned());
    identity
}

/// Key of a cluster of the demo.
pub(super) fn key(name: &str) -> String {
    format!("default/default/default/{name}")
}

/// Names of the clusters.
pub(super) const CLUSTERS: [&str; 3] = ["c1", "c2", "c3"];

/// Versions of the service in each cluster.
pub(super) const VERSIONS: [&str; 2] = ["v1", "v2"];

/// Cluster of the demo.
pub(super) struct DemoCluster {
    pub(super) name: &'static str,
    /// Address of its gateway.
    pub(super) gateway: SocketAddr,
    /// Addresses of its workloads, by version.
    pub(super) backends: Vec<(&'static str, SocketAddr)>,
}
