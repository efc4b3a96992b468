//! References to objects.

use std::net::Ipv4Addr;
use std::sync::Arc;

/// Reference to an object of the management plane.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MeshRef {
    /// Name of the object.
    pub name: Arc<str>,
    /// Namespace of the object.
    pub namespace: Arc<str>,
}

/// Reference to an object of a Kubernetes cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterRef {
    /// Name of the object.
    pub name: Arc<str>,
    /// Namespace of the object.
    pub namespace: Arc<str>,
    /// Name of the cluster.
    pub cluster: Arc<str>,
}

impl ClusterRef {
    /// Returns the virtual IP address of the service's federated host, as Gloo allocates it: an FNV-1 hash (32 bits) in
    /// the reserved range 240.0.0.0/4.
    pub fn federated_address(&self) -> Ipv4Addr {
        let parts = [
            &*self.name,
            &*self.namespace,
            &*self.cluster,
            "kube-service",
        ];
        let bytes = parts.iter().flat_map(|part| part.bytes());
        let hash = bytes.fold(0x811c_9dc5_u32, |hash, byte| {
            hash.wrapping_mul(0x0100_0193) ^ u32::from(byte)
        });
        let [first, rest @ ..] = hash.to_le_bytes();
        let [second, third, fourth] = rest;
        Ipv4Addr::new(first | 240, second, third, fourth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn federated_hosts_have_their_gloo_addresses() {
        let service = |cluster: &str| ClusterRef {
            name: "some-svc".into(),
            namespace: "some-ns".into(),
            cluster: cluster.into(),
        };
        let address = service("cluster").federated_address();
        assert_eq!(address, Ipv4Addr::new(243, 21, 204, 125));
        assert_ne!(address, service("other").federated_address());
    }
}
