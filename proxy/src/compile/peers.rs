//! Mutual TLS requirements of a sidecar's workload, from PeerAuthentications, and the settings that terminate mesh
//! mTLS.

use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::catalog::PeerPolicy;
use config_loader::resource::istio::MutualTls;

use crate::compile::applies::workload;
use crate::compile::certificates::{mesh, protocol};
use crate::compile::provenance::provenance_of;
use crate::identity::Identity;
use crate::tls::{Alpn, ClientCertRequirements, ServerSettings, ServerTls, Store, Version};
use traffic::provenance::Provenance;

/// Requirements of the ports of a proxy's workload.
pub struct Peers<'a> {
    policy: PeerPolicy,
    identity: &'a Identity,
    store: &'a Store,
}

/// Settings with which a port terminates mesh mTLS.
#[derive(Clone, Debug)]
pub struct PortTls {
    /// TLS settings of the port; `None` without a usable certificate or authorities, so that every handshake fails.
    pub tls: Option<Arc<ServerTls>>,
    /// Whether the port rejects all other connections.
    pub strict: bool,
}

/// Mutual TLS mode of a port, with its source, for admin pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedMode {
    /// Mutual TLS mode of the port.
    pub mode: MutualTls,
    /// Policy that sets the mode; `None` for the default of the mesh.
    pub by: Option<Provenance>,
    /// Whether the proxy has a certificate. Without one there is no TLS, and a port that requires TLS accepts no
    /// connection.
    pub has_certificate: bool,
}

impl<'a> Peers<'a> {
    /// Returns the requirements by these resources for the workload of a proxy of this identity.
    pub fn of(resources: &ResourceSet, identity: &'a Identity, store: &'a Store) -> Self {
        Self {
            policy: PeerPolicy::of(resources, workload(identity)),
            identity,
            store,
        }
    }

    /// Returns the policies, for admin pages.
    pub fn policy(&self) -> &PeerPolicy {
        &self.policy
    }

    /// Returns the mutual TLS mode of a port of the workload by the policies among these resources.
    pub fn applied(&self, resources: &ResourceSet, port: u16) -> AppliedMode {
        let accepted = self.policy.of_port(port);
        let by = accepted.by.as_ref().map(|id| {
            let mut policies = resources.peer_authentications.values();
            let found = policies.find(|policy| policy.id == *id);
            // a rejected policy applies all the same
            let rejected = || Provenance {
                object: id.to_string().into(),
                file: "".into(),
                line: 0,
            };
            found.map_or_else(rejected, |policy| provenance_of(policy.as_ref(), 0))
        });
        let status = self.store.identity(&mesh(self.identity).0);
        AppliedMode {
            mode: accepted.mode,
            by,
            has_certificate: status.is_some_and(|status| status.in_force.is_some()),
        }
    }

    /// Returns the settings that terminate mesh mTLS on a port of the workload; `None` if the port accepts plain text
    /// only, and any TLS is the workload's own.
    ///
    /// A workload without a mesh certificate accepts plain text, unless a policy forbids it: then it accepts no
    /// connection.
    pub fn on_port(&self, port: u16, alpn: Alpn) -> Option<PortTls> {
        let has_identity = || self.store.identity(&mesh(self.identity).0).is_some();
        let strict = match self.policy.mode(port) {
            MutualTls::Disable => return None,
            MutualTls::Permissive if !has_identity() => return None,
            MutualTls::Permissive => false,
            MutualTls::Strict => true,
        };
        let tls = self.store.server(&server_settings(self.identity, alpn));
        Some(PortTls { tls, strict })
    }
}

/// Returns the TLS settings of a workload: its own certificate, and the requirement that client certificates are of the
/// mesh and its trust domain.
pub fn server_settings(identity: &Identity, alpn: Alpn) -> ServerSettings {
    let (own, root) = mesh(identity);
    let trust_domains: Vec<Arc<str>> = identity.trust_domains().map(Arc::from).collect();
    ServerSettings {
        identities: vec![own],
        clients: Some(Box::new(ClientCertRequirements {
            required: true,
            authorities: Some(root),
            mesh_domains: trust_domains.clone(),
            trust_domains,
            ..ClientCertRequirements::default()
        })),
        protocol: protocol(identity, true),
        version_max: Version::Tls13,
        alpn,
    }
}

#[cfg(test)]
mod tests {
    use config_loader::Diagnostics;

    use super::*;

    #[test]
    fn without_an_identity_only_a_strict_port_speaks_tls() {
        let policy = |mode: &str| {
            format!(
                "apiVersion: security.istio.io/v1\nkind: PeerAuthentication\nmetadata: {{name: all, namespace: default}}\n\
                 spec: {{mtls: {{mode: {mode}}}}}\n"
            )
        };
        let (identity, store) = (Identity::default(), Store::default());
        for (mode, strict) in [
            ("STRICT", Some(true)),
            ("PERMISSIVE", None),
            ("UNSET", None),
            ("DISABLE", None),
        ] {
            let mut found = Diagnostics::default();
            let set = config_loader::load_bytes("a.yaml", policy(mode).as_bytes(), &mut found);
            let peers = Peers::of(&set, &identity, &store);
            let tls = peers.on_port(80, Alpn::Http);
            assert_eq!(tls.as_ref().map(|tls| tls.strict), strict, "{mode}");
            // so that every connection is refused
            assert!(tls.is_none_or(|tls| tls.tls.is_none()), "{mode}");
        }
    }
}
