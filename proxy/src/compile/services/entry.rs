//! Istio: ServiceEntry with its inline endpoints, and WorkloadEntries taken in by a selector.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::resource::Object;
use config_loader::resource::istio::{
    EndpointAddress, Location, Resolution, ServiceEntry, ServiceEntryPort, WorkloadEntry,
};

use super::{Collector, Draft};
use crate::cluster::Locality;
use crate::compile::service::{Port, Workload, WorkloadHost, carries_paths, protocol};

/// Adds every ServiceEntry that this proxy may see, oldest first: of several for one host in one namespace the
/// oldest decides about ports, and endpoints are joined. An entry in the proxy's own namespace goes before others.
pub(super) fn collect(collector: &mut Collector<'_>) {
    let own = &collector.identity.namespace;
    let mut objects: Vec<&Arc<Object<ServiceEntry>>> = collector
        .resources
        .service_entries
        .values()
        .filter(|object| object.spec.export_to.includes(own))
        .collect();
    objects.sort_by(|a, b| {
        (*a.id.namespace != **own, a.age()).cmp(&(*b.id.namespace != **own, b.age()))
    });
    let mut drafts: Vec<Draft> = Vec::new();
    let mut by_host: BTreeMap<(Arc<str>, Arc<str>), usize> = BTreeMap::new();
    for object in objects {
        for host in &object.spec.hosts {
            let key = (
                Arc::from(host.value.to_ascii_lowercase()),
                Arc::clone(&object.id.namespace),
            );
            let index = *by_host.entry(key).or_insert_with(|| {
                drafts.push(draft(&host.value, object));
                drafts.len() - 1
            });
            add_endpoints(collector, &mut drafts[index], object, &host.value);
        }
    }
    drafts.into_iter().for_each(|draft| collector.add(draft));
}

fn draft(host: &str, object: &Object<ServiceEntry>) -> Draft {
    let mut draft = Draft::new(host, host, &object.id.namespace);
    draft.service.ports = object.spec.ports.iter().map(port).collect();
    draft.service.original_destination = object.spec.resolution == Resolution::None;
    draft.service.health_check = object.spec.health_check.clone();
    draft
        .service
        .subject_alt_names
        .clone_from(&object.spec.subject_alt_names);
    draft.service.external = object.spec.location == Location::MeshExternal;
    draft
}

fn port(port: &ServiceEntryPort) -> Port {
    Port {
        number: port.number,
        name: port.name.to_string(),
        protocol: protocol(None, &port.name, port.protocol.as_str()),
        target: port.target_port.unwrap_or(port.number),
        carries_paths: carries_paths(None, &port.name, port.protocol.as_str()),
    }
}

fn add_endpoints(
    collector: &Collector<'_>,
    draft: &mut Draft,
    object: &Object<ServiceEntry>,
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
    let own_name = WorkloadEntry {
        address: EndpointAddress::Dns(host.into()),
        ..WorkloadEntry::default()
    };
    let is_name = spec.resolution != Resolution::Static && !host.starts_with('*');
    let entries = match &*spec.endpoints {
        [] if is_name => std::slice::from_ref(&own_name),
        entries => entries,
    };
    let workloads = entries.iter().filter_map(|entry| {
        let mut workload = workload(entry, &BTreeMap::new(), &object.id.namespace)?;
        if let (Resolution::DnsRoundRobin, WorkloadHost::Name(name)) =
            (spec.resolution, &workload.host)
        {
            workload.host = WorkloadHost::Logical(Arc::clone(name));
        }
        Some(workload)
    });
    draft.service.endpoints.extend(workloads);
}

/// An endpoint, if its address can be reached from here; its own labels go under those of its metadata.
fn workload(
    entry: &WorkloadEntry,
    metadata: &BTreeMap<String, String>,
    namespace: &str,
) -> Option<Workload> {
    let host = match &entry.address {
        EndpointAddress::Dns(name) => WorkloadHost::Name(Arc::clone(name)),
        EndpointAddress::Ip(ip) => WorkloadHost::Ip(*ip),
        EndpointAddress::Unix(path) => WorkloadHost::Unix(Arc::from(Path::new(&**path))),
        EndpointAddress::Network => return None,
    };
    let mut labels = entry.labels.clone();
    labels.extend(metadata.clone());
    Some(Workload {
        ports: entry
            .ports
            .iter()
            .map(|(name, port)| (name.to_string(), *port))
            .collect(),
        weight: entry.weight,
        locality: locality(entry, &labels),
        network: Arc::clone(&entry.network),
        account: account(&entry.service_account, namespace),
        labels: Arc::new(labels),
        ..Workload::at(host)
    })
}

/// An identity within the mesh, if an account is named.
fn account(name: &str, namespace: &str) -> Option<Arc<str>> {
    (!name.is_empty()).then(|| format!("ns/{namespace}/sa/{name}").into())
}

/// Adds the WorkloadEntries of a namespace that a selector takes in.
pub(super) fn select_workloads(
    resources: &ResourceSet,
    namespace: &str,
    selector: &BTreeMap<String, String>,
    draft: &mut Draft,
) {
    for object in resources
        .workload_entries
        .values()
        .filter(|object| *object.id.namespace == *namespace)
    {
        let has = |key: &String| {
            object
                .labels
                .get(key)
                .or_else(|| object.spec.labels.get(key))
        };
        if selector.iter().all(|(key, value)| has(key) == Some(value)) {
            draft.saw(object);
            draft
                .service
                .endpoints
                .extend(workload(&object.spec, &object.labels, namespace));
        }
    }
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
