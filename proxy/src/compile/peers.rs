//! What the workload of a sidecar accepts from its clients, by PeerAuthentications, and how it terminates the mesh's TLS.

use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::catalog::{PeerPolicy, Workload};
use config_loader::resource::istio::MutualTls;

use crate::compile::certificates::mesh;
use crate::identity::Identity;
use crate::tls::{Alpn, Clients, ServerSettings, ServerTls, Store, Version};

/// What the ports of a proxy's workload accept.
pub struct Peers<'a> {
    policy: PeerPolicy,
    identity: &'a Identity,
    store: &'a Store,
}

/// How a port terminates the mesh's TLS.
#[derive(Clone, Debug)]
pub struct PortTls {
    /// What to handshake with; none without a usable certificate or without authorities, so that every handshake fails.
    pub tls: Option<Arc<ServerTls>>,
    /// Whether everything else is refused.
    pub strict: bool,
}

impl<'a> Peers<'a> {
    /// By these resources, for the workload of a proxy of this identity.
    pub fn of(resources: &ResourceSet, identity: &'a Identity, store: &'a Store) -> Self {
        let workload = Workload {
            namespace: &identity.namespace,
            labels: &identity.labels,
        };
        Self {
            policy: PeerPolicy::of(resources, &identity.root_namespace, workload),
            identity,
            store,
        }
    }

    /// The policies, for pages.
    pub fn policy(&self) -> &PeerPolicy {
        &self.policy
    }

    /// The mesh's TLS on a port of the workload; none if the port takes plain text only, and TLS is the workload's own.
    pub fn on_port(&self, port: u16, alpn: Alpn) -> Option<PortTls> {
        let strict = match self.policy.mode(port) {
            MutualTls::Disable => return None,
            MutualTls::Permissive => false,
            MutualTls::Strict => true,
        };
        let tls = self.store.server(&server_settings(self.identity, alpn));
        Some(PortTls { tls, strict })
    }
}

/// How a workload terminates the mesh's TLS: with its own certificate, and for clients whose certificate is of the mesh and
/// of its trust domain.
pub fn server_settings(identity: &Identity, alpn: Alpn) -> ServerSettings {
    let (own, root) = mesh(identity);
    let trust_domains = identity.workload.trust_domains();
    ServerSettings {
        identities: vec![own],
        clients: Some(Box::new(Clients {
            required: true,
            authorities: Some(root),
            trust_domains: trust_domains.map(Arc::from).collect(),
            ..Clients::default()
        })),
        version_min: Version::Tls12,
        version_max: Version::Tls13,
        alpn,
        ..ServerSettings::default()
    }
}
