//! Destinations that nobody can reach, or whose traffic shift is not followed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::names::{DOMAIN, complete, is_covered};
use super::{place, warning};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::references::{X304, X305, X306};
use crate::kind::Name;
use crate::resource::gloo::{
    Backing, ClusterRef, Destination, KubeService, KubeServiceType, RequiredSubsets, ShiftTarget,
    subset_name,
};
use crate::resource::{Object, ResourceSet};
use crate::span::Line;

pub(super) fn check(set: &ResourceSet, found: &mut Vec<Diagnostic>) {
    if set.destinations.is_empty() {
        return;
    }
    let entered = entered(set);
    let routed = routed(set);
    let mut hosts: HashMap<String, &Object<Destination>> = HashMap::new();
    for object in by_age(set) {
        let Backing::Kube(kube) = &object.spec.backing else {
            continue;
        };
        check_host((object, kube), &mut hosts, found);
        check_gateway(set, (object, kube), &entered, found);
        for (index, required) in object.spec.status.required_subsets.iter().enumerate() {
            if let Some(why) = idle(set, (object, kube), required, &routed) {
                let field = format!("status.requiredSubsets[{index}].trafficShift");
                let message = format!("the shift is not followed: {why}");
                let mut diagnostic = warning(object, X305, required.line, field, message);
                diagnostic.help("write a VirtualService for the host, which says what goes where");
                found.push(diagnostic);
            }
        }
    }
}

/// The subsets that Destinations require, by the hosts that have them.
pub(super) fn required_subsets(set: &ResourceSet) -> HashMap<String, BTreeSet<String>> {
    let mut all: HashMap<String, BTreeSet<String>> = HashMap::new();
    for object in set.destinations.values() {
        let status = &object.spec.status;
        let parts = status.required_subsets.iter();
        let parts = parts.flat_map(|required| &required.shift.destinations);
        let names: BTreeSet<String> = parts
            .filter_map(|part| match &part.target {
                ShiftTarget::Kube { subset, .. } => Some(subset),
                _ => None,
            })
            .filter(|subset| !subset.is_empty())
            .map(subset_name)
            .collect();
        if !names.is_empty() {
            for host in hosts(object) {
                all.entry(host).or_default().extend(names.iter().cloned());
            }
        }
    }
    all
}

/// The hosts that a Destination has.
fn hosts(object: &Object<Destination>) -> Vec<String> {
    let status = &object.spec.status;
    let federated = status.federation.as_ref();
    let federated = federated.and_then(|federation| federation.hostname.as_ref());
    let others = [status.local_fqdn.as_ref(), federated].into_iter();
    let others = others.flatten().map(|host| host.to_ascii_lowercase());
    match &object.spec.backing {
        Backing::Kube(kube) => others.chain([full(&kube.service)]).collect(),
        Backing::External(_) | Backing::Nothing => others.collect(),
    }
}

fn full(service: &ClusterRef) -> String {
    format!("{}.{}.svc.{DOMAIN}", service.name, service.namespace)
}

fn by_age(set: &ResourceSet) -> Vec<&Object<Destination>> {
    let mut all: Vec<_> = set.destinations.values().map(|object| &**object).collect();
    all.sort_by(|a, b| a.age().cmp(&b.age()));
    all
}

/// A host that an older Destination of another service has is that one's.
fn check_host<'a>(
    (object, kube): (&'a Object<Destination>, &KubeService),
    hosts: &mut HashMap<String, &'a Object<Destination>>,
    found: &mut Vec<Diagnostic>,
) {
    let Some(federation) = &object.spec.status.federation else {
        return;
    };
    let Some(host) = &federation.hostname else {
        return;
    };
    if let Some(older) = hosts.get(&host.to_ascii_lowercase()) {
        if matches!(&older.spec.backing, Backing::Kube(other) if other.service == kube.service) {
            return;
        }
        let field = "status.appliedFederation.federatedHostname".to_owned();
        let message = format!("`{host}` is not used: {} has that host", older.id);
        let mut diagnostic = warning(object, X306, federation.line, field, message);
        diagnostic.help("give each Destination a host of its own");
        diagnostic.related(place(older, Line(0)), "this one is older");
        found.push(diagnostic);
        return;
    }
    hosts.insert(host.to_ascii_lowercase(), object);
}

/// The clusters of which a gateway is known.
fn entered(set: &ResourceSet) -> BTreeSet<&str> {
    let all = set.destinations.values();
    let gateways = all.filter_map(|object| match &object.spec.backing {
        Backing::Kube(kube) => Some(kube),
        Backing::External(_) | Backing::Nothing => None,
    });
    let usable = gateways.filter(|kube| {
        let is_gateway = kube
            .labels
            .get("istio")
            .is_some_and(|label| label == "ingressgateway");
        let mut ports = kube.ports.iter();
        let has_port = ports.any(|port| {
            &*port.name == "tls"
                && (kube.service_type != KubeServiceType::NodePort || port.node_port.is_some())
        });
        is_gateway && has_port && !kube.external_addresses.is_empty()
    });
    usable.map(|kube| &*kube.service.cluster).collect()
}

/// Without a gateway there is nothing to connect to. The own cluster, which the proxy knows and this does not, needs none:
/// what has a Service here may be of it.
fn check_gateway(
    set: &ResourceSet,
    (object, kube): (&Object<Destination>, &KubeService),
    entered: &BTreeSet<&str>,
    found: &mut Vec<Diagnostic>,
) {
    let Some(federation) = &object.spec.status.federation else {
        return;
    };
    let at = &kube.service;
    let name = Name::new(at.namespace.clone(), at.name.clone());
    let is_for_others = !federation.flat_network && !federation.meshes.is_empty();
    if !is_for_others || set.services.get(&name).is_some() || entered.contains(&*at.cluster) {
        return;
    }
    let cluster = &at.cluster;
    let field = "status.appliedFederation.flatNetwork".to_owned();
    let message = format!(
        "no resource names a gateway of cluster `{cluster}`: nothing is reached, unless --clusters names one"
    );
    let mut diagnostic = warning(object, X304, federation.line, field, message);
    diagnostic.help(
        "add the cluster's Destination with label `istio: ingressgateway`, its externalAddresses and a port named `tls`, \
         name its gateway by --clusters, or write flatNetwork: true",
    );
    found.push(diagnostic);
}

/// Hosts of VirtualServices, each with one of them; not the one that stands for every host.
fn routed(set: &ResourceSet) -> BTreeMap<String, String> {
    let mut routed = BTreeMap::new();
    for object in set.virtual_services.values() {
        for host in &object.spec.hosts {
            let host = complete(&host.value, &object.id.namespace).into_owned();
            if host != "*" {
                routed.insert(host, object.id.to_string());
            }
        }
    }
    routed
}

/// Why a shift is not followed, if so. What its parts are was told when the object was read.
fn idle(
    set: &ResourceSet,
    (object, kube): (&Object<Destination>, &KubeService),
    required: &RequiredSubsets,
    routed: &BTreeMap<String, String>,
) -> Option<String> {
    let status = &object.spec.status;
    let parts = &required.shift.destinations;
    if parts.is_empty()
        || !parts
            .iter()
            .all(|part| matches!(part.target, ShiftTarget::Kube { .. }))
    {
        return None;
    }
    if let Err(why) = required.target(&status.traffic_policies, &kube.service) {
        return Some(why);
    }
    let host = full(&kube.service);
    let covers =
        |(pattern, _): &(&String, &String)| **pattern == host || is_covered(&host, pattern);
    if let Some((_, by)) = routed.iter().find(covers) {
        return Some(format!("{by} routes `{host}`"));
    }
    parts.iter().find_map(|part| match &part.target {
        ShiftTarget::Kube { service, .. } => unknown(set, kube, service),
        _ => None,
    })
}

/// A part in another cluster must be a Destination that is federated; of the own cluster nothing is asked.
fn unknown(set: &ResourceSet, own: &KubeService, service: &ClusterRef) -> Option<String> {
    if service.cluster == own.service.cluster {
        return None;
    }
    let mut all = set.destinations.values();
    let is_known = all.any(|object| {
        let is_it = matches!(&object.spec.backing, Backing::Kube(kube) if kube.service == *service);
        let federation = object.spec.status.federation.as_ref();
        is_it && federation.is_some_and(|federation| federation.hostname.is_some())
    });
    let (name, cluster) = (&service.name, &service.cluster);
    (!is_known).then(|| format!("`{name}` in cluster `{cluster}` is no federated Destination"))
}

#[cfg(test)]
mod tests;
