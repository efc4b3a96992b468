//! Kubernetes: Service with its EndpointSlices, and the WorkloadEntries that its selector takes in.

use std::collections::BTreeMap;
use std::num::NonZeroU8;
use std::sync::Arc;

use config_loader::Name;
use config_loader::resource::Object;
use config_loader::resource::core::{
    AddressType, EndpointSlice, Host, Protocol, Service as Kube, ServicePort, SliceEndpoint,
    TargetPort, TrafficDistribution,
};

use ipnet::IpNet;

use crate::cluster::Locality;
use crate::compile::members::Member;
use crate::compile::service::affinity;
use crate::compile::service::port::Carries;
use crate::compile::service::port::Labels;
use crate::compile::service::port::Port;
use crate::compile::service::port::carries_paths;
use crate::compile::service::port::protocol;
use crate::compile::service::workload::Facts;
use crate::compile::service::workload::Listing;
use crate::compile::service::workload::Origin;
use crate::compile::service::workload::Workload;
use crate::compile::service::workload::WorkloadHost;
use crate::compile::services::collector::Collector;
use crate::compile::services::collector::Draft;
use crate::compile::services::entry;
use crate::compile::services::policies;

/// Adds every Service that this proxy may see under `<name>.<namespace>.svc.<domain>`.
pub(in crate::compile) fn collect(collector: &mut Collector<'_>) {
    let services = &collector.resources.services;
    let Some(only) = collector.only else {
        return services.values().for_each(|object| add(object, collector));
    };
    for (namespace, name) in only {
        if let Some(object) = services.get(&Name::new(*namespace, *name)) {
            add(object, collector);
        }
    }
}

fn add(object: &Arc<Object<Kube>>, collector: &mut Collector<'_>) {
    if object.is_exported_to(&collector.identity.namespace) {
        let slices = collector.slices.of(&object.id.namespace, &object.id.name);
        let service = service(object, slices, collector);
        collector.add(service);
    }
}

fn service(
    object: &Arc<Object<Kube>>,
    slices: &[Arc<Object<EndpointSlice>>],
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
    let own = object.spec.cluster_ips.iter().copied();
    draft.service.addresses = own.map(IpNet::from).collect();
    draft.service.is_headless = object.spec.headless;
    draft.service.affinity = affinity(object.spec.session_affinity);
    draft.service.ports = object
        .spec
        .ports
        .iter()
        .filter(|port| port.protocol == Protocol::Tcp)
        .map(port)
        .collect();
    let by_node = object.spec.traffic_distribution == TrafficDistribution::PreferSameNode;
    add_slices(slices.iter(), by_node, collector, &mut draft);
    if let Some(external) = object.spec.external_name() {
        draft
            .service
            .endpoints
            .push(Workload::at(host(&external.host)));
    }
    if !object.spec.selector.is_empty() {
        entry::select_workloads(collector, namespace, &object.spec.selector, &mut draft);
    }
    draft.service.is_exportable = object.spec.external_name().is_none();
    policies::attach(collector, &mut draft);
    draft
}

/// Adds the endpoints of slices; `by_node` is whether it counts on which node they run.
pub(in crate::compile) fn add_slices<'a>(
    slices: impl Iterator<Item = &'a Arc<Object<EndpointSlice>>> + Clone,
    by_node: bool,
    collector: &Collector<'_>,
    draft: &mut Draft,
) {
    let count = slices.clone().count();
    let mut known = Vec::with_capacity(count);
    Arc::make_mut(&mut draft.service.provenance).reserve(count);
    for slice in slices {
        if let Some(member) = member(slice, collector) {
            draft.saw_slice(slice);
            known.push((Arc::clone(slice), member));
        }
    }
    if known.is_empty() {
        return;
    }
    let is_named = |slice: &Object<EndpointSlice>| slice.spec.address_type == AddressType::Fqdn;
    let has_names = known.iter().any(|(slice, _)| is_named(slice));
    let own = Whereabouts::own(collector);
    draft.service.endpoints.add(has_names, move |listing| {
        for (slice, member) in &known {
            SliceOf::new(slice, member.as_ref(), &own, by_node).list(listing);
        }
    });
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
        carries: Carries::of(port.app_protocol.as_deref(), &port.name, "", port.port),
    }
}

/// The member that a slice was copied from; none for the proxy's own cluster. Nothing for one that cannot be told.
pub(in crate::compile) fn member(
    slice: &Object<EndpointSlice>,
    collector: &Collector<'_>,
) -> Option<Option<Arc<Member>>> {
    let Some(source) = slice.source_cluster() else {
        return Some(None);
    };
    let member = collector.members.find(source)?;
    Some((member.key != collector.members.own.key).then(|| Arc::clone(member)))
}

/// The label that says on which node something runs.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Where the proxy's own endpoints are that do not say.
pub(in crate::compile) struct Whereabouts {
    locality: Locality,
    network: Arc<str>,
}

impl Whereabouts {
    /// Where the proxy is.
    pub(in crate::compile) fn own(collector: &Collector<'_>) -> Self {
        Self {
            locality: Locality::from(collector.identity.locality()),
            network: collector.identity.network.as_str().into(),
        }
    }
}

/// A slice of a service.
pub(in crate::compile) struct SliceOf<'a> {
    slice: &'a Object<EndpointSlice>,
    member: Option<&'a Arc<Member>>,
    /// Where its cluster is.
    locality: &'a Locality,
    /// The network of its cluster.
    network: &'a Arc<str>,
    /// Whether it counts on which node an endpoint runs.
    by_node: bool,
}

impl<'a> SliceOf<'a> {
    /// That of a member; of the proxy's own if none is given.
    pub(in crate::compile) fn new(
        slice: &'a Object<EndpointSlice>,
        member: Option<&'a Arc<Member>>,
        own: &'a Whereabouts,
        by_node: bool,
    ) -> Self {
        let (locality, network) = match member {
            Some(member) => (&member.locality, &member.network),
            None => (&own.locality, &own.network),
        };
        Self {
            slice,
            member,
            locality,
            network,
            by_node,
        }
    }

    /// Lists the endpoints that may take traffic.
    fn list(&self, listing: &mut Listing) {
        let labels: Labels = Arc::new(self.slice.labels.clone());
        // few zones, nodes and workloads: those of the endpoints before are found by looking at each
        type Key<'a> = (Option<&'a str>, Option<&'a str>, Option<NonZeroU8>);
        let mut known: Vec<(Key<'_>, Arc<Facts>)> = Vec::new();
        let endpoints = self.slice.spec.endpoints.iter();
        for endpoint in endpoints.filter(|endpoint| endpoint.conditions.ready) {
            let zone = endpoint.zone.as_deref();
            let node = endpoint.node_name.as_deref().filter(|_| self.by_node);
            let key = (zone, node, endpoint.owner);
            let same = known.iter().rev().find(|(of, _)| *of == key);
            let facts = match same {
                Some((_, facts)) => Arc::clone(facts),
                None => {
                    let facts = Arc::new(self.facts(endpoint, &labels));
                    known.push((key, Arc::clone(&facts)));
                    facts
                }
            };
            listing.push(Workload::new(host(&endpoint.address), facts));
        }
    }

    /// What is known of an endpoint. The slice's own labels represent those of its pods, which are not read; the node
    /// is added where it counts.
    pub(in crate::compile) fn facts(&self, endpoint: &SliceEndpoint, labels: &Labels) -> Facts {
        // a slice lists the ports that its endpoints serve; without any, or with one that represents all, the service's
        // count
        let listed = &self.slice.spec.ports;
        Facts {
            ports: listed
                .iter()
                .filter_map(|port| Some((port.name.to_string(), port.port?)))
                .collect(),
            only_ports: !listed.is_empty() && listed.iter().all(|port| port.port.is_some()),
            labels: match endpoint.node_name.as_ref().filter(|_| self.by_node) {
                Some(node) => {
                    let mut labels = BTreeMap::clone(labels);
                    labels.insert(HOSTNAME.to_owned(), node.to_string());
                    Arc::new(labels)
                }
                None => Arc::clone(labels),
            },
            owner: self.slice.spec.owner(endpoint).cloned(),
            locality: locality(endpoint.zone.as_deref(), self.locality),
            origin: self
                .member
                .as_ref()
                .map_or(Origin::Native, |_| Origin::Slice),
            member: self.member.cloned(),
            network: Arc::clone(self.network),
            ..Facts::default()
        }
    }
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
pub(in crate::compile) fn host(host: &Host) -> WorkloadHost {
    match host {
        Host::Dns(name) => WorkloadHost::Name(Arc::clone(name)),
        Host::Ip(ip) => WorkloadHost::Ip(*ip),
    }
}
