//! Kubernetes: Service with its EndpointSlices, and the WorkloadEntries that its selector takes in.

use std::collections::BTreeMap;
use std::sync::Arc;

use config_loader::resource::Object;
use config_loader::resource::core::{
    EndpointSlice, Host, Protocol, Service as Kube, ServicePort, SessionAffinity, TargetPort,
    TrafficDistribution,
};
use config_loader::resource::flomesh::ImportPort;

use super::{Collector, Draft};
use crate::cluster::Locality;
use crate::compile::service::{Labels, Port, Service, Workload, WorkloadHost, protocol};
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
        // a slice of another member is the multi-cluster policies' business
        if slice.source_cluster().is_some() {
            continue;
        }
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
        draft.saw(slice);
        let by_node = object.spec.traffic_distribution == TrafficDistribution::PreferSameNode;
        let endpoints = slice_endpoints(slice, collector.identity, by_node);
        draft.service.endpoints.extend(endpoints);
    }
    if let Some(external) = object.spec.external_name() {
        draft
            .service
            .endpoints
            .push(external_endpoint(&external.host));
    }
    if !object.spec.selector.is_empty() {
        collector.select_workloads(namespace, &object.spec.selector, &mut draft);
    }
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
    }
}

/// The label that says on which node something runs.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Endpoints that may take traffic. A slice's own labels stand for those of its pods, which are not read; the node is
/// added where it counts.
fn slice_endpoints<'a>(
    slice: &'a Object<EndpointSlice>,
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
            host: host(&endpoint.address),
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
            weight: 1,
            locality: locality(endpoint.zone.as_deref(), identity),
            network: Arc::default(),
            account: None,
        })
}

/// Where an endpoint of the proxy's own cluster is: in the cluster's region, and in its zone unless it has one of its own.
fn locality(zone: Option<&str>, identity: &Identity) -> Locality {
    let own = Locality::from(identity.locality());
    let [region, own_zone, _] = own.parts();
    match zone.unwrap_or(own_zone) {
        "" => Locality::new(region),
        zone => format!("{region}/{zone}").into(),
    }
}

fn external_endpoint(address: &Host) -> Workload {
    Workload {
        host: host(address),
        ports: BTreeMap::new(),
        only_ports: false,
        labels: Labels::default(),
        weight: 1,
        locality: Locality::default(),
        network: Arc::default(),
        account: None,
    }
}

/// The address of a workload, from what a resource calls a host.
pub(super) fn host(host: &Host) -> WorkloadHost {
    match host {
        Host::Dns(name) => WorkloadHost::Name(Arc::clone(name)),
        Host::Ip(ip) => WorkloadHost::Ip(*ip),
    }
}

/// Adds every ServiceImport under `<name>.<namespace>.svc.clusterset.local`, joined with the endpoints of the Service
/// of that name. Endpoints that are reached under a path prefix wait for the hop through their gateway.
pub(super) fn collect_imports(collector: &mut Collector<'_>) {
    let imports = &collector.resources.service_imports;
    for (key, object) in imports {
        let (name, namespace) = (&object.id.name, &object.id.namespace);
        let mut draft = Draft::new(
            &format!("{name}.{namespace}.svc.clusterset.local"),
            name,
            namespace,
        );
        draft.saw(object);
        if let Some(native) =
            collector.found(&format!("{name}.{namespace}.svc.{}", collector.domain))
        {
            draft.join(native);
        }
        draft.service.sticky |= object.spec.session_affinity != SessionAffinity::None;
        for port in &object.spec.ports {
            add_import_port(port, &mut draft.service);
        }
        if let Some(other) = imports.beside().get(key) {
            draft.saw(other);
            let known = draft.service.endpoints.len();
            for port in &other.spec.ports {
                add_import_port(port, &mut draft.service);
            }
            // An endpoint that both name is one.
            let more = draft.service.endpoints.split_off(known);
            let is_new = |new: &Workload| {
                let mut known = draft.service.endpoints.iter();
                !known.any(|old| (&old.host, &old.ports) == (&new.host, &new.ports))
            };
            let more: Vec<Workload> = more.into_iter().filter(is_new).collect();
            draft.service.endpoints.extend(more);
        }
        collector.add(draft);
    }
}

/// Adds a port of an import; one that is there already only gets its endpoints.
fn add_import_port(import: &ImportPort, service: &mut Service) {
    if import.protocol != Protocol::Tcp {
        return;
    }
    let known = service.find_port(import.port);
    let name = known.map_or_else(|| import.name.to_string(), |port| port.name.clone());
    if known.is_none() {
        service.ports.push(Port {
            number: import.port,
            name: name.clone(),
            protocol: protocol(import.app_protocol.as_deref(), &import.name, "http"),
            target: import.port,
        });
    }
    let direct = import
        .endpoints
        .iter()
        .filter(|endpoint| endpoint.target.path_prefix.is_empty());
    service.endpoints.extend(direct.map(|endpoint| Workload {
        host: host(&endpoint.target.address),
        ports: BTreeMap::from([(name.clone(), endpoint.target.port)]),
        only_ports: true,
        labels: Labels::default(),
        weight: 1,
        locality: Locality::default(),
        network: Arc::default(),
        account: None,
    }));
}
