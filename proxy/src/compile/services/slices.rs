//! Endpoints of EndpointSlices, with facts from their pods and nodes.

use std::collections::HashMap;
use std::sync::Arc;

use config_loader::catalog::PodInfo;
use config_loader::resource::Object;
use config_loader::resource::core::{
    AddressType, EndpointSlice, Host, LabelText, Namespace, Node, Pod, PodOwner, SliceEndpoint,
};

use crate::compile::members::Member;
use crate::compile::service::port::Labels;
use crate::compile::service::workload::{Facts, Listing, Origin, Workload, WorkloadHost};
use crate::compile::services::collector::{Collector, Draft};
use traffic::cluster::{LabelSource, Locality};

/// Label of a workload with its locality, with dots or slashes between the parts.
const LOCALITY: &str = "istio-locality";

/// Adds the endpoints of slices.
pub(in crate::compile) fn add_slices<'a>(
    slices: impl Iterator<Item = &'a Arc<Object<EndpointSlice>>> + Clone,
    collector: &Collector<'_>,
    draft: &mut Draft,
) {
    let count = slices.clone().count();
    let mut known = Vec::with_capacity(count);
    Arc::make_mut(&mut draft.service.provenance).reserve(count);
    for slice in slices {
        if let Some(member) = member(slice, collector) {
            draft.saw_slice(slice);
            known.push((Arc::clone(slice), member, pods(slice, collector, draft)));
        }
    }
    if known.is_empty() {
        return;
    }
    let is_named = |slice: &Object<EndpointSlice>| slice.spec.address_type == AddressType::Fqdn;
    let has_names = known.iter().any(|(slice, ..)| is_named(slice));
    let own = Whereabouts::own(collector);
    draft.service.endpoints.add(has_names, move |listing| {
        for (slice, member, pods) in &known {
            SliceOf::new(slice, member.as_ref(), &own).list(pods, listing);
        }
    });
}

/// Returns the pod of each ready endpoint of a slice, and records it in the draft; nothing for the other endpoints.
fn pods(
    slice: &Object<EndpointSlice>,
    collector: &Collector<'_>,
    draft: &mut Draft,
) -> Vec<PodInfo> {
    let view = collector.view;
    if view.is_empty::<Pod>() && view.is_empty::<Node>() && view.is_empty::<Namespace>() {
        return Vec::new();
    }
    let endpoints = slice.spec.endpoints.iter();
    let infos = endpoints.map(|endpoint| match endpoint.conditions.ready {
        true => PodInfo::of_endpoint(view, slice, endpoint),
        false => PodInfo::default(),
    });
    infos.inspect(|info| draft.saw_pod(info)).collect()
}

/// Returns the member that a slice was copied from, `Some(None)` for the local cluster; `None` if the member is
/// unknown.
pub(in crate::compile) fn member(
    slice: &Object<EndpointSlice>,
    collector: &Collector<'_>,
) -> Option<Option<Arc<Member>>> {
    let Some(source) = slice.source_cluster() else {
        return Some(None);
    };
    let member = collector.members().find(source)?;
    Some((member.key != collector.members().own.key).then(|| Arc::clone(member)))
}

/// Locality and network of the local cluster, for endpoints without their own.
pub(in crate::compile) struct Whereabouts {
    locality: Locality,
    network: Arc<str>,
}

impl Whereabouts {
    /// Returns the locality and network of the proxy.
    pub(in crate::compile) fn own(collector: &Collector<'_>) -> Self {
        Self {
            locality: Locality::from(collector.identity.locality()),
            network: collector.identity.network.as_str().into(),
        }
    }
}

/// EndpointSlice of a service.
pub(in crate::compile) struct SliceOf<'a> {
    slice: &'a Object<EndpointSlice>,
    member: Option<&'a Arc<Member>>,
    /// Locality of the slice's cluster.
    locality: &'a Locality,
    /// Network of the slice's cluster.
    network: &'a Arc<str>,
    /// Labels of the slice, which replace those of unknown pods.
    labels: Labels,
}

/// Key of the facts that endpoints of a slice share. Few facts differ, so a linear search finds equal ones.
#[derive(PartialEq)]
struct Alike<'a> {
    zone: Option<&'a str>,
    node: Option<&'a str>,
    owner: Option<(&'a str, &'a str)>,
    pod: Option<(&'a LabelText, &'a str)>,
}

impl<'a> SliceOf<'a> {
    /// Returns a slice of a member; of the local cluster if none is given.
    pub(in crate::compile) fn new(
        slice: &'a Object<EndpointSlice>,
        member: Option<&'a Arc<Member>>,
        own: &'a Whereabouts,
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
            labels: Arc::new((*slice.labels).clone()),
        }
    }

    /// Lists the endpoints that may take traffic, with the pods behind them.
    fn list(&self, pods: &[PodInfo], listing: &mut Listing) {
        let unknown = PodInfo::default();
        let mut known: Vec<(Alike<'_>, Arc<Facts>)> = Vec::new();
        let mut labels: HashMap<&LabelText, Labels> = HashMap::new();
        let endpoints = self.slice.spec.endpoints.iter().enumerate();
        let hostnames = &self.slice.spec.hostnames;
        for (number, endpoint) in endpoints.filter(|(_, endpoint)| endpoint.conditions.ready) {
            let info = pods.get(number).unwrap_or(&unknown);
            let pod = info.pod.as_ref().map(|pod| &pod.spec);
            let alike = Alike {
                zone: endpoint.zone.as_deref(),
                node: node(endpoint, info).map(|node| &**node),
                owner: endpoint.owner_from(&self.slice.id.namespace),
                pod: pod.map(|pod| (&pod.labels, &*pod.account)),
            };
            let mut facts_with = |hostname: Option<&Arc<str>>| {
                let own = pod.map(|pod| {
                    let known = labels.entry(&pod.labels);
                    Arc::clone(known.or_insert_with(|| Arc::new(pod.labels.to_map())))
                });
                Arc::new(Facts {
                    hostname: hostname.cloned(),
                    ..self.facts(endpoint, info, own)
                })
            };
            let named = hostnames.binary_search_by_key(&number, |(of, _)| *of as usize);
            let known_alike = || known.iter().rev().find(|(of, _)| *of == alike);
            let facts = match named.ok().and_then(|at| hostnames.get(at)) {
                // hostnames are unique, so these facts are not shared
                Some((_, hostname)) => facts_with(Some(hostname)),
                None => match known_alike() {
                    Some((_, facts)) => Arc::clone(facts),
                    None => {
                        let facts = facts_with(None);
                        known.push((alike, Arc::clone(&facts)));
                        facts
                    }
                },
            };
            listing.push(Workload::new(host(&endpoint.address), facts));
        }
    }

    /// Returns the facts of an endpoint with this pod, and with these labels or else those of the slice.
    pub(in crate::compile) fn facts(
        &self,
        endpoint: &SliceEndpoint,
        info: &PodInfo,
        labels: Option<Labels>,
    ) -> Facts {
        // a slice lists the ports that its endpoints serve; without ports, or with one that represents all, the ports
        // of the service apply
        let listed = &self.slice.spec.ports;
        let owner = endpoint.owner_from(&self.slice.id.namespace);
        Facts {
            ports: listed
                .iter()
                .filter_map(|port| Some((port.name.to_string(), port.port?)))
                .collect(),
            only_ports: !listed.is_empty() && listed.iter().all(|port| port.port.is_some()),
            labels: labels.unwrap_or_else(|| Arc::clone(&self.labels)),
            owner: owner.map(|(namespace, name)| {
                Arc::new(PodOwner {
                    name: name.into(),
                    namespace: namespace.into(),
                })
            }),
            node: node(endpoint, info).cloned(),
            locality: locality(endpoint.zone.as_deref(), info, self.locality),
            account: info.pod.as_deref().map(account),
            labels_from: match info.pod {
                Some(_) => LabelSource::Pod,
                None => LabelSource::Slice,
            },
            origin: self.member.map_or(Origin::Native, |_| Origin::Slice),
            member: self.member.cloned(),
            network: info
                .network()
                .map_or_else(|| Arc::clone(self.network), Arc::from),
            ..Facts::default()
        }
    }
}

/// Returns the node that an endpoint runs on, if its slice or its pod names it.
fn node<'a>(endpoint: &'a SliceEndpoint, info: &'a PodInfo) -> Option<&'a Arc<str>> {
    let of_pod = info.pod.as_ref().and_then(|pod| pod.spec.node.as_ref());
    endpoint.node_name.as_ref().or(of_pod)
}

/// Returns the mesh identity of a pod: that of its service account.
pub(in crate::compile) fn account(pod: &Object<Pod>) -> Arc<str> {
    format!("ns/{}/sa/{}", pod.id.namespace, pod.spec.account).into()
}

/// Returns the locality of an endpoint: the one in its pod's label; else the region and zone of its pod's or node's
/// labels, the zone of its slice, and the region, and if that is the same the zone, of its cluster.
pub(in crate::compile) fn locality(
    of_slice: Option<&str>,
    info: &PodInfo,
    cluster: &Locality,
) -> Locality {
    if let Some(label) = info.label(LOCALITY) {
        return match label.contains('/') {
            true => Locality::new(label),
            false => label.replace('.', "/").into(),
        };
    }
    let [of_cluster, zone_of_cluster, _] = cluster.parts();
    let [region, zone, subzone] = info.topology();
    let is_elsewhere = region.is_some_and(|region| region != of_cluster);
    let region = region.unwrap_or(of_cluster);
    let zone = zone.or(of_slice);
    let zone = zone.unwrap_or(if is_elsewhere { "" } else { zone_of_cluster });
    match (zone, subzone) {
        ("", _) => Locality::new(region),
        (zone, None) => format!("{region}/{zone}").into(),
        (zone, Some(subzone)) => format!("{region}/{zone}/{subzone}").into(),
    }
}

/// Returns the address of a workload from a resource's host.
pub(in crate::compile) fn host(host: &Host) -> WorkloadHost {
    match host {
        Host::Dns(name) => WorkloadHost::Name(Arc::clone(name)),
        Host::Ip(ip) => WorkloadHost::Ip(*ip),
    }
}

#[cfg(test)]
mod tests;
