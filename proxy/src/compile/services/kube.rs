//! Kubernetes: Service with its EndpointSlices, and the WorkloadEntries that its selector takes in.

use std::collections::BTreeMap;
use std::sync::Arc;

use config_loader::resource::Object;
use config_loader::resource::core::{
    EndpointSlice, Host, Protocol, Service as Kube, ServicePort, SessionAffinity, TargetPort,
    TrafficDistribution,
};

use super::{Collector, Draft, policies};
use crate::cluster::Locality;
use crate::compile::members::Member;
use crate::compile::service::{
    Labels, Origin, Port, Workload, WorkloadHost, carries_paths, protocol,
};
use crate::identity::Identity;

/// Adds every Service under `<name>.<namespace>.svc.<domain>`.
pub(super) fn collect(collector: &mut Collector<'_>) {
    let slices = slices_by_service(collector);
    for (_, object) in &collector.resources.services {
        let key = (object.id.namespace.to_string(), object.id.name.to_string());
        let slices = slices.get(&key).map_or(&[][..], Vec::as_slice);
        let service = service(object, slices, collector);
        collector.add(service);
    }
}

type SlicesByService<'a> = BTreeMap<(String, String), Vec<&'a Arc<Object<EndpointSlice>>>>;

fn slices_by_service<'a>(collector: &Collector<'a>) -> SlicesByService<'a> {
    let mut slices = SlicesByService::new();
    for (_, slice) in &collector.resources.endpoint_slices {
        if let Some(name) = slice.service_name() {
            slices
                .entry((slice.id.namespace.to_string(), name.to_owned()))
                .or_default()
                .push(slice);
        }
    }
    slices
}

fn service(
    object: &Arc<Object<Kube>>,
    slices: &[&Arc<Object<EndpointSlice>>],
    collector: &Collector<'_>,
) -> Draft {
    let (name, namespace) = (&object.id.name, &object.id.namespace);
    let mut draft = Draft::new(
        &format!("{name}.{namespace}.svc.{}", collector.domain),
        name,
        namespace,
    );
    draft.saw(object);
    draft.service.distribution = object.spec.traffic_distribution;
    draft.service.sticky = object.spec.session_affinity != SessionAffinity::None;
    draft.service.ports = object
        .spec
        .ports
        .iter()
        .filter(|port| port.protocol == Protocol::Tcp)
        .map(port)
        .collect();
    for slice in slices {
        let Some(member) = member(slice, collector) else {
            continue;
        };
        draft.saw(slice);
        let by_node = object.spec.traffic_distribution == TrafficDistribution::PreferSameNode;
        let endpoints = slice_endpoints(slice, member, collector.identity, by_node);
        draft.service.endpoints.extend(endpoints);
    }
    if let Some(external) = object.spec.external_name() {
        draft
            .service
            .endpoints
            .push(Workload::at(host(&external.host)));
    }
    if !object.spec.selector.is_empty() {
        collector.select_workloads(namespace, &object.spec.selector, &mut draft);
    }
    draft.service.is_exportable = object.spec.external_name().is_none();
    policies::attach(collector, &mut draft);
    draft
}

fn port(port: &ServicePort) -> Port {
    Port {
        number: port.port,
        name: port.name.to_string(),
        protocol: protocol(port.app_protocol.as_deref(), &port.name, ""),
        target: match &port.target {
            TargetPort::Number(number) => *number,
            TargetPort::Name(_) => port.port,
        },
        carries_paths: carries_paths(port.app_protocol.as_deref(), &port.name, ""),
    }
}

/// The member that a slice was copied from; none for the proxy's own cluster. Nothing for one that cannot be told.
fn member(slice: &Object<EndpointSlice>, collector: &Collector<'_>) -> Option<Option<Arc<Member>>> {
    let Some(source) = slice.source_cluster() else {
        return Some(None);
    };
    let member = collector.members.find(source)?;
    Some((member.key != collector.members.own.key).then(|| Arc::clone(member)))
}

/// The label that says on which node something runs.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Endpoints that may take traffic. A slice's own labels stand for those of its pods, which are not read; the node is
/// added where it counts.
fn slice_endpoints<'a>(
    slice: &'a Object<EndpointSlice>,
    member: Option<Arc<Member>>,
    identity: &'a Identity,
    by_node: bool,
) -> impl Iterator<Item = Workload> + 'a {
    let labels: Labels = Arc::new(slice.labels.clone());
    // a slice lists the ports that its endpoints serve; without any, or with one that stands for all, the service's count
    let listed = &slice.spec.ports;
    let only_ports = !listed.is_empty() && listed.iter().all(|port| port.port.is_some());
    let ports: BTreeMap<String, u16> = slice
        .spec
        .ports
        .iter()
        .filter_map(|port| Some((port.name.to_string(), port.port?)))
        .collect();
    slice
        .spec
        .endpoints
        .iter()
        .filter(|endpoint| endpoint.conditions.ready)
        .map(move |endpoint| Workload {
            ports: ports.clone(),
            only_ports,
            labels: match endpoint.node_name.as_ref().filter(|_| by_node) {
                Some(node) => {
                    let mut labels = BTreeMap::clone(&labels);
                    labels.insert(HOSTNAME.to_owned(), node.to_string());
                    Arc::new(labels)
                }
                None => Arc::clone(&labels),
            },
            locality: match &member {
                None => locality(endpoint.zone.as_deref(), &identity.locality().into()),
                Some(member) => locality(endpoint.zone.as_deref(), &member.locality),
            },
            origin: member.as_ref().map_or(Origin::Native, |_| Origin::Slice),
            member: member.clone(),
            ..Workload::at(host(&endpoint.address))
        })
}

/// Where an endpoint of a cluster is: in the cluster's region, and in its zone unless it has one of its own.
fn locality(zone: Option<&str>, cluster: &Locality) -> Locality {
    let [region, own_zone, _] = cluster.parts();
    match zone.unwrap_or(own_zone) {
        "" => Locality::new(region),
        zone => format!("{region}/{zone}").into(),
    }
}

/// The address of a workload, from what a resource calls a host.
pub(super) fn host(host: &Host) -> WorkloadHost {
    match host {
        Host::Dns(name) => WorkloadHost::Name(Arc::clone(name)),
        Host::Ip(ip) => WorkloadHost::Ip(*ip),
    }
}
