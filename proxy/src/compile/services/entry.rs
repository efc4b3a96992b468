//! Istio: ServiceEntry with its inline endpoints, and WorkloadEntries and pods that its selector matches.

use std::collections::BTreeMap;
use std::sync::Arc;

use config_loader::catalog::PodInfo;
use config_loader::resource::Object;
use config_loader::resource::core::Pod;
use config_loader::resource::istio::{
    EndpointAddress, Location, Protocol as Declared, Resolution, ServiceEntry, ServiceEntryPort,
    WorkloadEntry,
};

use crate::compile::service::port::Carries;
use crate::compile::service::port::Port;
use crate::compile::service::workload::Facts;
use crate::compile::service::workload::Listing;
use crate::compile::service::workload::Workload;
use crate::compile::service::workload::WorkloadHost;
use crate::compile::service::workload_entry::{are_alike, facts, host};
use crate::compile::services::collector::Collector;
use crate::compile::services::collector::Draft;
use crate::compile::services::slices::{account, locality};
use crate::upstream::Protocol;
use traffic::cluster::{LabelSource, Locality};

/// Returns a host as the ServiceEntries of one namespace describe it, oldest first. It has the ports of all of them;
/// the oldest one decides about a port that several have. Endpoints serve only the ports of their own entry.
pub(in crate::compile) fn outside(
    collector: &Collector<'_>,
    host: &str,
    entries: &[&Arc<Object<ServiceEntry>>],
) -> Option<Draft> {
    let mut draft = draft(host, entries.first()?);
    for object in entries {
        let ports: Arc<[Port]> = ports(object).collect();
        for port in ports.iter() {
            if draft.service.find_port(port.number).is_none() {
                draft.service.ports.push(port.clone());
            }
        }
        let of_others = std::mem::take(&mut draft.service.endpoints);
        add_endpoints(collector, &mut draft, object, host);
        if entries.len() == 1 {
            return Some(draft);
        }
        let own = std::mem::replace(&mut draft.service.endpoints, of_others);
        let endpoints = &mut draft.service.endpoints;
        endpoints.add(own.has_names(), move |listing| {
            // cloned, so that the original does not cache its list
            for workload in &own.clone() {
                let facts = listing.share(Facts {
                    entry_ports: Some(Arc::clone(&ports)),
                    ..(*workload.facts).clone()
                });
                listing.push(Workload {
                    facts,
                    ..workload.clone()
                });
            }
        });
    }
    Some(draft)
}

fn draft(host: &str, object: &Object<ServiceEntry>) -> Draft {
    let mut draft = Draft::new(host, host, &object.id.namespace);
    draft.service.is_outside = true;
    draft.service.addresses.clone_from(&object.spec.addresses);
    draft.service.health_check = object.spec.health_check.clone();
    draft
        .service
        .subject_alt_names
        .clone_from(&object.spec.subject_alt_names);
    draft.service.external = object.spec.location == Location::MeshExternal;
    draft
}

fn ports(object: &Object<ServiceEntry>) -> impl Iterator<Item = Port> {
    let original_destination = object.spec.resolution == Resolution::None;
    let ports = object.spec.ports.iter();
    ports.map(move |written| Port {
        original_destination,
        ..port(written)
    })
}

/// Returns a port. Its declared protocol is that of its endpoints; its name only maps it to ports of endpoints.
fn port(port: &ServiceEntryPort) -> Port {
    Port {
        original_destination: false,
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
        // the endpoint is the address that the client dialed, which a gateway does not know
        Resolution::None | Resolution::DynamicDns => return,
        Resolution::Dns | Resolution::DnsRoundRobin | Resolution::Static => (),
    }
    if let Some(selector) = &spec.workload_selector {
        select_workloads(collector, &object.id.namespace, selector, draft);
        return select_pods(collector, &object.id.namespace, selector, draft);
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
    let is_name = |entry: &Arc<WorkloadEntry>| matches!(entry.address, EndpointAddress::Dns(_));
    let has_names = spec.endpoints.iter().any(is_name);
    let object = Arc::clone(object);
    draft.service.endpoints.add(has_names, move |listing| {
        let as_one = object.spec.resolution == Resolution::DnsRoundRobin;
        list(
            listing,
            &object.spec.endpoints,
            &object.id.namespace,
            as_one,
        );
    });
}

/// Lists the endpoints whose addresses can be reached from here. With `as_one`, a DNS name is one endpoint.
fn list(listing: &mut Listing, entries: &[Arc<WorkloadEntry>], namespace: &str, as_one: bool) {
    let nothing = BTreeMap::new();
    let mut before: Option<(&WorkloadEntry, Arc<Facts>)> = None;
    for entry in entries {
        let Some(host) = host(&entry.address, as_one) else {
            continue;
        };
        let same = before.as_ref().filter(|(other, _)| are_alike(entry, other));
        let facts = match same {
            Some((_, facts)) => Arc::clone(facts),
            None => listing.share(facts(entry, &nothing, namespace)),
        };
        listing.push(Workload {
            host,
            weight: entry.weight,
            facts: Arc::clone(&facts),
        });
        before = Some((entry, facts));
    }
}

/// Adds the WorkloadEntries of a namespace that a selector matches.
pub(in crate::compile) fn select_workloads(
    collector: &Collector<'_>,
    namespace: &Arc<str>,
    selector: &BTreeMap<String, String>,
    draft: &mut Draft,
) {
    let selection = collector.selection(namespace, selector);
    draft.saw_selection(&selection);
    if selection.is_empty() {
        return;
    }
    let has_names = selection.has_names();
    let list = move |listing: &mut Listing| {
        selection
            .workloads()
            .for_each(|one| listing.push(one.clone()));
    };
    draft.service.endpoints.add(has_names, list);
}

/// Adds the ready pods of a namespace of the local cluster that the selector of a ServiceEntry matches.
fn select_pods(
    collector: &Collector<'_>,
    namespace: &str,
    selector: &BTreeMap<String, String>,
    draft: &mut Draft,
) {
    let is_selected = |pod: &&Arc<Object<Pod>>| {
        let pod = &pod.spec;
        pod.source_cluster.is_none() && pod.is_ready && pod.labels.has_all(selector)
    };
    let selected = collector
        .view
        .in_namespace::<Pod>(namespace)
        .filter(is_selected);
    let infos: Vec<PodInfo> = selected
        .map(|pod| PodInfo::of_pod(collector.view, pod))
        .inspect(|info| draft.saw_pod(info))
        .collect();
    if infos.is_empty() {
        return;
    }
    let cluster = Locality::from(collector.identity.locality());
    let network: Arc<str> = collector.identity.network.as_str().into();
    draft.service.endpoints.add(false, move |listing| {
        for info in &infos {
            let Some((pod, address)) = info.pod.as_ref().and_then(|pod| {
                let address = pod.spec.addresses.first()?;
                Some((pod, *address))
            }) else {
                continue;
            };
            let facts = listing.share(Facts {
                labels: Arc::new(pod.spec.labels.to_map()),
                node: pod.spec.node.clone(),
                locality: locality(None, info, &cluster),
                network: info
                    .network()
                    .map_or_else(|| Arc::clone(&network), Arc::from),
                account: Some(account(pod)),
                labels_from: LabelSource::Pod,
                ..Facts::default()
            });
            listing.push(Workload::new(WorkloadHost::Ip(address), facts));
        }
    });
}
