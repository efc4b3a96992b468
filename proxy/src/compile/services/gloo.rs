//! Gloo Mesh: Destinations, which describe a Kubernetes service or a host outside the mesh.

use std::collections::BTreeMap;
use std::sync::Arc;

use config_loader::resource::Object;
use config_loader::resource::gloo::{
    Backing, Destination, ExternalProtocol, ExternalService, KubeService,
};

use super::kube::host;
use super::{Collector, Draft, policies};
use crate::compile::members::Member;
use crate::compile::service::{
    Facts, Origin, Port, Workload, WorkloadHost, Workloads, carries_paths, protocol,
};
use crate::compile::workload::Listing;
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
                carries_paths: !matches!(
                    port.protocol,
                    ExternalProtocol::Tcp
                        | ExternalProtocol::Tls
                        | ExternalProtocol::Https
                        | ExternalProtocol::Mongo
                ),
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
            .map(|endpoint| {
                let ports = endpoint.ports.iter();
                let facts = Facts {
                    ports: ports
                        .map(|(name, port)| (name.to_string(), *port))
                        .collect(),
                    ..Facts::default()
                };
                Workload::new(host(&endpoint.address), facts)
            })
            .collect();
        if draft.service.endpoints.is_empty() && !name.starts_with('*') {
            draft
                .service
                .endpoints
                .push(Workload::at(WorkloadHost::Name(Arc::clone(name))));
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
    let own = &collector.members.own;
    let member = collector.members.find(&reference.cluster).cloned();
    let is_own =
        reference.cluster.is_empty() || member.as_ref().is_some_and(|member| member.key == own.key);
    let full = format!(
        "{}.{}.svc.{}",
        reference.name, reference.namespace, collector.domain
    );
    let federation = object.spec.status.federation.as_ref();
    let federated = federation.and_then(|federation| federation.hostname.as_deref());
    let local_fqdn = object.spec.status.local_fqdn.as_deref().filter(|_| is_own);
    let member = member.filter(|_| !is_own);
    let here = is_own.then_some(full.as_str());
    for name in [here, local_fqdn, federated].into_iter().flatten() {
        let mut draft = Draft::new(name, &reference.name, &reference.namespace);
        draft.saw(object);
        draft.service.ports = kube.ports.iter().map(kube_port).collect();
        endpoints(object, member.as_ref(), &mut draft.service.endpoints);
        // its own host stands for the one cluster: no policy has to let it
        draft.service.is_cluster_set = federated == Some(name);
        collector.add(draft);
    }
    if let Some(member) = &member {
        join(collector, object, kube, member, &full);
    }
}

/// Adds what another cluster has of a service to the service of that name, where it waits for a GlobalTrafficPolicy.
fn join(
    collector: &mut Collector<'_>,
    object: &Arc<Object<Destination>>,
    kube: &KubeService,
    member: &Arc<Member>,
    host: &str,
) {
    let reference = &kube.service;
    let mut draft = collector.take(host).unwrap_or_else(|| {
        let mut draft = Draft::new(host, &reference.name, &reference.namespace);
        draft.service.ports = kube.ports.iter().map(kube_port).collect();
        policies::attach(collector, &mut draft);
        draft
    });
    if draft.service.sharing.is_some() {
        draft.saw(object);
        endpoints(object, Some(member), &mut draft.service.endpoints);
        collector.add(draft);
    } else if !draft.service.provenance.is_empty() {
        collector.add(draft);
    }
}

fn kube_port(port: &config_loader::resource::gloo::KubePort) -> Port {
    Port {
        number: port.port,
        name: port.name.to_string(),
        protocol: protocol(port.app_protocol.as_deref(), &port.name, &port.protocol),
        target: port.port,
        carries_paths: carries_paths(port.app_protocol.as_deref(), &port.name, &port.protocol),
    }
}

/// Adds the endpoints of a Kubernetes service.
fn endpoints(
    object: &Arc<Object<Destination>>,
    member: Option<&Arc<Member>>,
    workloads: &mut Workloads,
) {
    let (object, member) = (Arc::clone(object), member.cloned());
    workloads.add(false, move |listing| {
        if let Backing::Kube(kube) = &object.spec.backing {
            list(kube, member.as_ref(), listing);
        }
    });
}

fn list(kube: &KubeService, member: Option<&Arc<Member>>, listing: &mut Listing) {
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
        for endpoint in &subset.endpoints {
            let facts = Facts {
                ports: ports.clone(),
                labels: Arc::new(endpoint.labels.clone()),
                locality: format!("{}/{}/{}", kube.region, endpoint.zone, endpoint.sub_zone)
                    .trim_end_matches('/')
                    .to_owned()
                    .into(),
                origin: member.map_or(Origin::Native, |_| Origin::Gloo),
                member: member.cloned(),
                ..Facts::default()
            };
            let facts = listing.share(facts);
            listing.push(Workload::new(WorkloadHost::Ip(endpoint.ip), facts));
        }
    }
}
