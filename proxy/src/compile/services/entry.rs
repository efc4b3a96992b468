//! Istio: ServiceEntry with its inline endpoints, and WorkloadEntries taken in by a selector.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use config_loader::resource::Object;
use config_loader::resource::istio::{
    EndpointAddress, Location, Protocol as Declared, Resolution, ServiceEntry, ServiceEntryPort,
    WorkloadEntry,
};
use config_loader::{Name, ResourceSet};

use crate::cluster::Locality;
use crate::compile::service::port::Carries;
use crate::compile::service::port::Port;
use crate::compile::service::workload::Facts;
use crate::compile::service::workload::Listing;
use crate::compile::service::workload::Workload;
use crate::compile::service::workload::WorkloadHost;
use crate::compile::services::collector::Collector;
use crate::compile::services::collector::Draft;
use crate::upstream::Protocol;

/// A host as the ServiceEntries of one namespace describe it, oldest first: the oldest decides about ports, and endpoints are
/// joined.
pub(in crate::compile) fn outside(
    collector: &Collector<'_>,
    host: &str,
    entries: &[&Arc<Object<ServiceEntry>>],
) -> Option<Draft> {
    let mut draft = draft(host, entries.first()?);
    for object in entries {
        add_endpoints(collector, &mut draft, object, host);
    }
    Some(draft)
}

fn draft(host: &str, object: &Object<ServiceEntry>) -> Draft {
    let mut draft = Draft::new(host, host, &object.id.namespace);
    draft.service.is_outside = true;
    draft.service.ports = object.spec.ports.iter().map(port).collect();
    draft.service.addresses.clone_from(&object.spec.addresses);
    draft.service.original_destination = object.spec.resolution == Resolution::None;
    draft.service.health_check = object.spec.health_check.clone();
    draft
        .service
        .subject_alt_names
        .clone_from(&object.spec.subject_alt_names);
    draft.service.external = object.spec.location == Location::MeshExternal;
    draft
}

/// The protocol that a port declares decides what its endpoints speak; its name only joins it to ports of endpoints.
fn port(port: &ServiceEntryPort) -> Port {
    Port {
        number: port.number,
        name: port.name.to_string(),
        protocol: match port.protocol.is_http2() {
            true => Protocol::Http2,
            false => Protocol::Http1,
        },
        target: port.target_port.unwrap_or(port.number),
        carries_paths: port.protocol.is_http() || port.protocol == Declared::Detect,
        carries: Carries::of_protocol(port.protocol),
    }
}

fn add_endpoints(
    collector: &Collector<'_>,
    draft: &mut Draft,
    object: &Arc<Object<ServiceEntry>>,
    host: &str,
) {
    draft.saw(object);
    let spec = &object.spec;
    match spec.resolution {
        // the address that the client dialled; a gateway knows none
        Resolution::None | Resolution::DynamicDns => return,
        Resolution::Dns | Resolution::DnsRoundRobin | Resolution::Static => (),
    }
    if let Some(selector) = &spec.workload_selector {
        return select_workloads(collector.resources, &object.id.namespace, selector, draft);
    }
    if spec.endpoints.is_empty() {
        let is_name = spec.resolution != Resolution::Static && !host.starts_with('*');
        let name = Arc::from(host);
        let own = is_name.then(|| match spec.resolution {
            Resolution::DnsRoundRobin => WorkloadHost::Logical(name),
            _ => WorkloadHost::Name(name),
        });
        draft.service.endpoints.extend(own.map(Workload::at));
        return;
    }
    let is_name = |entry: &WorkloadEntry| matches!(entry.address, EndpointAddress::Dns(_));
    let has_names = spec.endpoints.iter().any(is_name);
    let object = Arc::clone(object);
    draft.service.endpoints.add(has_names, move |listing| {
        let nothing = BTreeMap::new();
        let entries = object.spec.endpoints.iter();
        let entries = entries.map(|entry| (entry, &nothing));
        let as_one = object.spec.resolution == Resolution::DnsRoundRobin;
        list(listing, entries, &object.id.namespace, as_one);
    });
}

/// Lists entries whose addresses can be reached from here, each with the labels of its metadata. A name may stand `as_one`
/// endpoint.
fn list<'e>(
    listing: &mut Listing,
    entries: impl Iterator<Item = (&'e WorkloadEntry, &'e BTreeMap<String, String>)>,
    namespace: &str,
    as_one: bool,
) {
    let mut before: Option<(&WorkloadEntry, &BTreeMap<String, String>, Arc<Facts>)> = None;
    for (entry, metadata) in entries {
        let host = match &entry.address {
            EndpointAddress::Dns(name) if as_one => WorkloadHost::Logical(Arc::clone(name)),
            EndpointAddress::Dns(name) => WorkloadHost::Name(Arc::clone(name)),
            EndpointAddress::Ip(ip) => WorkloadHost::Ip(*ip),
            EndpointAddress::Unix(path) => WorkloadHost::Unix(Arc::from(Path::new(&**path))),
            EndpointAddress::Network => continue,
        };
        let same = before
            .as_ref()
            .filter(|(other, others, _)| are_alike(entry, other) && metadata == *others);
        let facts = match same {
            Some((_, _, facts)) => Arc::clone(facts),
            None => listing.share(facts(entry, metadata, namespace)),
        };
        listing.push(Workload {
            host,
            weight: entry.weight,
            facts: Arc::clone(&facts),
        });
        before = Some((entry, metadata, facts));
    }
}

/// Whether the same is known of two entries, but for where they are and their weights.
fn are_alike(one: &WorkloadEntry, other: &WorkloadEntry) -> bool {
    one.labels == other.labels
        && one.locality == other.locality
        && one.ports == other.ports
        && one.network == other.network
        && one.service_account == other.service_account
}

/// What is known of an entry; its own labels go under those of its metadata.
fn facts(entry: &WorkloadEntry, metadata: &BTreeMap<String, String>, namespace: &str) -> Facts {
    let mut labels = Arc::clone(&entry.labels);
    if !metadata.is_empty() {
        Arc::make_mut(&mut labels).extend(metadata.clone());
    }
    Facts {
        ports: entry
            .ports
            .iter()
            .map(|(name, port)| (name.to_string(), *port))
            .collect(),
        locality: locality(entry, &labels),
        network: Arc::clone(&entry.network),
        account: account(&entry.service_account, namespace),
        labels,
        ..Facts::default()
    }
}

/// An identity within the mesh, if an account is named.
fn account(name: &str, namespace: &str) -> Option<Arc<str>> {
    (!name.is_empty()).then(|| format!("ns/{namespace}/sa/{name}").into())
}

/// Adds the WorkloadEntries of a namespace that a selector takes in.
pub(in crate::compile) fn select_workloads(
    resources: &ResourceSet,
    namespace: &str,
    selector: &BTreeMap<String, String>,
    draft: &mut Draft,
) {
    let first = Name::new(namespace, "");
    let own = resources.workload_entries.starting_at(&first);
    let own = own.take_while(|(name, _)| *name.namespace == *namespace);
    let mut selected = Vec::new();
    for (_, object) in own {
        let has = |key: &String| {
            object
                .labels
                .get(key)
                .or_else(|| object.spec.labels.get(key))
        };
        if selector.iter().all(|(key, value)| has(key) == Some(value)) {
            draft.saw(object);
            selected.push(Arc::clone(object));
        }
    }
    if selected.is_empty() {
        return;
    }
    let is_name = |object: &Arc<Object<WorkloadEntry>>| {
        matches!(object.spec.address, EndpointAddress::Dns(_))
    };
    let has_names = selected.iter().any(is_name);
    let namespace = namespace.to_owned();
    draft.service.endpoints.add(has_names, move |listing| {
        let entries = selected
            .iter()
            .map(|object| (&*object.spec, &object.labels));
        list(listing, entries, &namespace, false);
    });
}

/// The label that stands in for the field, with dots for slashes.
const LOCALITY_LABEL: &str = "istio-locality";

fn locality(entry: &WorkloadEntry, labels: &BTreeMap<String, String>) -> Locality {
    let named = labels.get(LOCALITY_LABEL);
    match named.filter(|_| entry.locality.is_empty()) {
        Some(label) => label.replace('.', "/").into(),
        None => entry.locality.to_string().into(),
    }
}
