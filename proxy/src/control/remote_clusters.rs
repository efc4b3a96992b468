//! Remote clusters file (`--clusters`): settings of Kubernetes clusters other than the local one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use config_loader::resource::flomesh::ClusterKey;
use config_loader::resource::gloo::MeshRef;
use config_loader::resource::istio::MeshNetwork;
use config_loader::{
    ClusterSettings, Diagnostic, Fleet, GatewayTlsSettings, ProxyWorkload, RemoteCluster,
    SettingsUpdate,
};

use crate::identity::{
    GatewayTls, GatewayTlsLocation, Identity, MemberGateway, MemberSettings, Mode,
};

/// Remote clusters file as read at the start.
#[derive(Clone, Debug)]
pub struct ClustersFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Settings of the clusters.
    pub clusters: Vec<ClusterSettings>,
}

impl ClustersFile {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// Returns all of its errors.
    pub fn read(path: &Path) -> Result<Self, Vec<Diagnostic>> {
        Ok(Self {
            path: path.to_owned(),
            clusters: config_loader::read_settings(path)?.0,
        })
    }

    /// Converts the settings of the clusters to the proxy's own type.
    pub fn members(&self) -> Vec<MemberSettings> {
        self.clusters.iter().map(settings).collect()
    }
}

/// Remote clusters file as of its last update.
#[derive(Clone, Default)]
pub struct RemoteClustersState {
    /// Settings of the remote clusters; `None` before the first update, which means those of the start.
    pub settings: Option<Arc<[MemberSettings]>>,
    /// Findings about the current file.
    pub diagnostics: Vec<Diagnostic>,
}

impl From<SettingsUpdate<Vec<ClusterSettings>>> for RemoteClustersState {
    fn from(update: SettingsUpdate<Vec<ClusterSettings>>) -> Self {
        Self {
            settings: Some(update.settings.iter().map(settings).collect()),
            diagnostics: update.diagnostics,
        }
    }
}

/// Returns clusters with the network and the gateway that networks of the mesh configuration have for them, where they have
/// none of their own.
pub fn with_networks(members: &[MemberSettings], networks: &[MeshNetwork]) -> Vec<MemberSettings> {
    let mut members = members.to_vec();
    for member in &mut members {
        let name = member.key.rsplit('/').next().unwrap_or_default();
        let is_of = |network: &&MeshNetwork| network.clusters.iter().any(|one| **one == *name);
        let Some(network) = networks.iter().find(is_of) else {
            continue;
        };
        if member.network.is_empty() {
            member.network = network.name.to_string();
        }
        let gateway = network.gateway.as_ref().map(|(host, port)| MemberGateway {
            host: host.to_string(),
            port: *port,
            tls: None,
        });
        member.gateway = member.gateway.take().or(gateway);
    }
    members
}

/// Returns the fleet that findings refer to, for a proxy with this identity.
pub fn fleet(identity: &Identity) -> Fleet {
    let told = identity.members.iter().filter_map(|member| {
        Some(RemoteCluster {
            key: ClusterKey::parse(&member.key)?,
            has_gateway: member.gateway.is_some(),
        })
    });
    Fleet {
        naming: identity.naming(),
        own: ClusterKey::parse(&identity.cluster),
        told: told.collect(),
        mesh: identity.gloo_mesh.as_ref().map(|mesh| MeshRef {
            name: mesh.name.as_str().into(),
            namespace: mesh.namespace.as_str().into(),
        }),
        namespace: Some(identity.namespace.as_str().into()),
        root_namespace: Some(identity.root_namespace.as_str().into()),
        trust_domains: identity.trust_domains().map(Arc::from).collect(),
        gateway_controller: Some(identity.gateways.controller.as_str().into()),
        path_normalization: identity.path_normalization(),
        workload: workload(identity),
        has_gateway_pool: !identity.gateways.pool.is_empty(),
        ingress: identity.ingress.clone(),
    }
}

/// Returns the workload of a proxy, if its labels are known.
pub fn workload(identity: &Identity) -> Option<ProxyWorkload> {
    (!identity.labels.is_empty()).then(|| ProxyWorkload {
        labels: identity.labels.clone(),
        is_sidecar: identity.mode == Mode::Sidecar,
    })
}

fn settings(cluster: &ClusterSettings) -> MemberSettings {
    MemberSettings {
        key: cluster.key.to_string(),
        network: cluster.network.to_string(),
        locality: cluster.locality.to_string(),
        trust_domain: cluster.trust_domain.as_deref().map(str::to_owned),
        gateway: cluster.gateway.as_ref().map(|gateway| MemberGateway {
            host: gateway.host.to_string(),
            port: gateway.port,
            tls: gateway.tls.as_ref().map(tls),
        }),
    }
}

fn tls(asked: &GatewayTlsSettings) -> GatewayTls {
    let place = &asked.location;
    GatewayTls {
        server_name: asked.sni.clone(),
        authorities: asked.ca_certificates.clone(),
        shows: asked.client.clone(),
        place: GatewayTlsLocation {
            file: Arc::clone(&place.file),
            path: Arc::clone(&place.path),
            line: place.line,
            fields: place.fields.clone(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_of_the_mesh_fill_what_clusters_lack() {
        let member = |key: &str, network: &str, gateway: Option<&str>| MemberSettings {
            key: key.to_owned(),
            network: network.to_owned(),
            gateway: gateway.map(|host| MemberGateway {
                host: host.to_owned(),
                port: 1,
                tls: None,
            }),
            ..MemberSettings::default()
        };
        let members = [
            member("r/z/g/c1", "", None),
            member("r/z/g/c2", "own", Some("own.test")),
            member("r/z/g/c3", "", None),
        ];
        let network = MeshNetwork {
            name: "n".into(),
            clusters: vec!["c1".into(), "c2".into()],
            addresses: Vec::new(),
            gateway: Some(("gw.test".into(), 15443)),
        };
        let found = with_networks(&members, &[network]);
        let found = found.iter().map(|one| {
            let gateway = one.gateway.as_ref();
            let gateway = gateway.map(|one| (&*one.host, one.port));
            (&*one.network, gateway)
        });
        let expected = [
            ("n", Some(("gw.test", 15443))),
            ("own", Some(("own.test", 1))),
            ("", None),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
