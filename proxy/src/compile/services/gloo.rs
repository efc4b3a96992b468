//! Gloo Mesh: Destinations, which describe a Kubernetes service or a host outside the mesh.

use std::collections::BTreeMap;
use std::sync::Arc;

use config_loader::resource::Object;
use config_loader::resource::gloo::{
    Backing, Destination, ExternalProtocol, ExternalService, KubeService,
};

use super::kube::host;
use super::{Collector, Draft};
use crate::cluster::Locality;
use crate::compile::service::{Labels, Port, Workload, WorkloadHost, protocol};
use crate::upstream::Protocol;

/// Adds every Destination under the hosts that it answers to. A host that something else already describes keeps
/// that description.
pub(super) fn collect(collector: &mut Collector<'_>) {
    for (_, object) in &collector.resources.destinations {
        match &object.spec.backing {
            Backing::External(external) => external_service(collector, object, external),
            Backing::Kube(kube) => kube_service(collector, object, kube),
            Backing::Nothing => (),
        }
    }
}

fn external_service(
    collector: &mut Collector<'_>,
    object: &Arc<Object<Destination>>,
    external: &ExternalService,
) {
    for name in external.hosts.iter() {
        let mut draft = Draft::new(name, name, &object.id.namespace);
        draft.saw(object);
        draft.service.external = true;
        draft.service.ports = external
            .ports
            .iter()
            .map(|port| Port {
                number: port.number,
                name: port.name.to_string(),
                protocol: match port.protocol {
                    ExternalProtocol::Grpc | ExternalProtocol::Http2 => Protocol::Http2,
                    _ => Protocol::Http1,
                },
                target: port.number,
            })
            .collect();
        draft.service.endpoints = external
            .endpoints
            .iter()
            .map(|endpoint| Workload {
                host: host(&endpoint.address),
                ports: endpoint
                    .ports
                    .iter()
                    .map(|(name, port)| (name.to_string(), *port))
                    .collect(),
                only_ports: false,
                labels: Labels::default(),
                weight: 1,
                locality: Locality::default(),
                network: Arc::default(),
                account: None,
            })
            .collect();
        if draft.service.endpoints.is_empty() && !name.starts_with('*') {
            draft.service.endpoints.push(Workload {
                host: WorkloadHost::Name(Arc::clone(name)),
                ports: BTreeMap::new(),
                only_ports: false,
                labels: Labels::default(),
                weight: 1,
                locality: Locality::default(),
                network: Arc::default(),
                account: None,
            });
        }
        collector.add(draft);
    }
}

fn kube_service(
    collector: &mut Collector<'_>,
    object: &Arc<Object<Destination>>,
    kube: &KubeService,
) {
    let reference = &kube.service;
    let local = reference.cluster.is_empty() || *reference.cluster == *collector.member;
    let full = format!(
        "{}.{}.svc.{}",
        reference.name, reference.namespace, collector.domain
    );
    let federated = object
        .spec
        .status
        .federation
        .as_ref()
        .and_then(|federation| federation.hostname.as_deref());
    let local_fqdn = object.spec.status.local_fqdn.as_deref().filter(|_| local);
    let own = local.then_some(full.as_str());
    for name in [own, local_fqdn, federated].into_iter().flatten() {
        let mut draft = Draft::new(name, &reference.name, &reference.namespace);
        draft.saw(object);
        draft.service.ports = kube.ports.iter().map(kube_port).collect();
        draft.service.endpoints = endpoints(kube);
        collector.add(draft);
    }
}

fn kube_port(port: &config_loader::resource::gloo::KubePort) -> Port {
    Port {
        number: port.port,
        name: port.name.to_string(),
        protocol: protocol(port.app_protocol.as_deref(), &port.name, &port.protocol),
        target: port.port,
    }
}

fn endpoints(kube: &KubeService) -> Vec<Workload> {
    let mut endpoints = Vec::new();
    for subset in &kube.endpoint_subsets {
        let ports: BTreeMap<String, u16> = kube
            .ports
            .iter()
            .filter_map(|port| {
                Some((
                    port.name.to_string(),
                    kube.endpoint_port(port, subset)?.port,
                ))
            })
            .collect();
        endpoints.extend(subset.endpoints.iter().map(|endpoint| {
            Workload {
                host: WorkloadHost::Ip(endpoint.ip),
                ports: ports.clone(),
                only_ports: false,
                labels: Arc::new(endpoint.labels.clone()),
                weight: 1,
                locality: format!("{}/{}/{}", kube.region, endpoint.zone, endpoint.sub_zone)
                    .trim_end_matches('/')
                    .to_owned()
                    .into(),
                network: Arc::default(),
                account: None,
            }
        }));
    }
    endpoints
}
