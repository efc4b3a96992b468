//! The clusters of the demo: their names, addresses and identities.

use std::net::SocketAddr;

use crate::identity::Identity;

/// Who a gateway in the cluster with this key is.
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

/// The key of a cluster of the demo.
pub(super) fn key(name: &str) -> String {
    format!("default/default/default/{name}")
}

/// The names of the clusters.
pub(super) const CLUSTERS: [&str; 3] = ["c1", "c2", "c3"];

/// Versions that each cluster has.
pub(super) const VERSIONS: [&str; 2] = ["v1", "v2"];

/// A cluster of the demo.
pub(super) struct Site {
    pub(super) name: &'static str,
    /// Where its gateway listens.
    pub(super) gateway: SocketAddr,
    /// Its workloads by version.
    pub(super) backends: Vec<(&'static str, SocketAddr)>,
}
