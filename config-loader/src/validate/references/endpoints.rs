//! Endpoints of a service, if the resources describe all of them.

use std::collections::{BTreeMap, HashMap};

use crate::catalog::{Seen, Source, View, pod_of};
use crate::resource::core::{EndpointSlice, LabelText, Pod};
use crate::resource::istio::{EndpointAddress, Locality, ServiceEntry, WorkloadEntry};
use crate::resource::{Object, ResourceSet};

/// Label that replaces `locality`, with dots instead of slashes.
const LOCALITY_LABEL: &str = "istio-locality";

/// EndpointSlices by namespace and name of their service.
type Slices<'a> = HashMap<(&'a str, &'a str), Vec<&'a Object<EndpointSlice>>>;

/// Endpoints in the resources.
pub(super) struct Endpoints<'a> {
    set: &'a ResourceSet,
    slices: Slices<'a>,
}

impl<'a> Endpoints<'a> {
    pub(super) fn new(set: &'a ResourceSet) -> Self {
        Self {
            set,
            slices: slices(set),
        }
    }

    /// Returns the endpoints of a host as a namespace sees it; `None` if some are unknown.
    pub(super) fn of(&self, seen: &Seen<'a>) -> Option<Vec<Endpoint<'a>>> {
        let mut all = Vec::new();
        for source in seen.sources() {
            all.extend(self.of_source(source)?);
        }
        (!seen.sources().is_empty()).then_some(all)
    }

    fn of_source(&self, source: &'a Source) -> Option<Vec<Endpoint<'a>>> {
        match source {
            // The labels of a slice stand in for those of pods that are not known. Without slices the endpoints are not known from
            // files.
            Source::Service(object) => {
                let slices = self
                    .slices
                    .get(&(&*object.id.namespace, &*object.id.name))?;
                let slices = slices.iter().copied();
                let endpoints = slices.flat_map(|slice| Endpoint::of_slice(self.set, slice));
                Some(endpoints.collect())
            }
            Source::Entry(object) => self.of_entry(object),
            Source::Import(_)
            | Source::Destination(_)
            | Source::Exposure(_)
            | Source::External(_) => None,
        }
    }

    fn of_entry(&self, object: &'a Object<ServiceEntry>) -> Option<Vec<Endpoint<'a>>> {
        let spec = &object.spec;
        let Some(selector) = &spec.workload_selector else {
            let written = spec.endpoints.iter();
            let written: Vec<_> = written
                .map(|entry| Endpoint::of_entry(entry, None))
                .collect();
            return (!written.is_empty()).then_some(written);
        };
        let entries = self.set.workload_entries.values();
        let own = entries.filter(|entry| entry.id.namespace == object.id.namespace);
        let own = own.map(|entry| Endpoint::of_entry(&entry.spec, Some(&entry.labels)));
        let pods = View::from(self.set).in_namespace::<Pod>(&object.id.namespace);
        let pods = pods.filter(|pod| pod.spec.source_cluster.is_none() && pod.spec.is_ready);
        let all = own.chain(pods.map(|pod| Endpoint::of_pod(pod, 1)));
        Some(all.filter(|one| one.has_labels(selector)).collect())
    }
}

fn slices(set: &ResourceSet) -> Slices<'_> {
    let mut slices = Slices::new();
    for slice in set.endpoint_slices.values() {
        if let Some(service) = slice.service_name() {
            let name = (&*slice.id.namespace, service);
            slices.entry(name).or_default().push(slice);
        }
    }
    slices
}

/// Endpoint, or a group of endpoints with equal properties.
#[derive(Clone, Copy, Debug)]
pub(super) struct Endpoint<'a> {
    /// Labels. The first map takes precedence.
    labels: [Option<&'a BTreeMap<String, String>>; 2],
    /// Labels of the pod, if known.
    pub(super) pod: Option<&'a LabelText>,
    /// Whether it is in an EndpointSlice, so that its labels come from its pod.
    pub(super) is_of_slice: bool,
    whereabouts: Whereabouts<'a>,
    /// Whether its address is a DNS name, which may have any number of IP addresses.
    pub(super) is_name: bool,
    /// Number of endpoints in the group.
    pub(super) count: usize,
}

/// Known locality of an endpoint.
#[derive(Clone, Copy, Debug)]
enum Whereabouts<'a> {
    /// The region of the proxy, which may be unknown itself.
    Own,
    /// A remote cluster, whose locality is unknown.
    Unknown,
    /// The locality as written.
    Written(&'a Locality),
}

/// Locality of an endpoint in comparable form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// The region of the proxy.
    OwnRegion,
    /// This locality; empty if there is none.
    Location(Locality),
}

impl At {
    /// Returns the locality, if it is known.
    pub(super) fn location(&self) -> Option<&Locality> {
        match self {
            At::OwnRegion => None,
            At::Location(location) => Some(location),
        }
    }
}

impl<'a> Endpoint<'a> {
    /// Returns the endpoints of a slice, grouped by the labels of their pods. Endpoints of unknown pods use the labels
    /// of the slice.
    fn of_slice(set: &'a ResourceSet, slice: &'a Object<EndpointSlice>) -> Vec<Endpoint<'a>> {
        let mut counts: BTreeMap<Option<&LabelText>, usize> = BTreeMap::new();
        for endpoint in &slice.spec.endpoints {
            let pod = pod_of(set, slice, endpoint);
            *counts.entry(pod.map(|pod| &pod.spec.labels)).or_default() += 1;
        }
        let endpoints = counts.into_iter().map(|(pod, count)| Endpoint {
            labels: [Some(&*slice.labels).filter(|_| pod.is_none()), None],
            pod,
            is_of_slice: true,
            whereabouts: match slice.source_cluster() {
                Some(_) => Whereabouts::Unknown,
                None => Whereabouts::Own,
            },
            is_name: false,
            count,
        });
        endpoints.collect()
    }

    /// Returns the endpoints whose pods have the labels of `pod`.
    fn of_pod(pod: &'a Object<Pod>, count: usize) -> Endpoint<'a> {
        Endpoint {
            labels: [None, None],
            pod: Some(&pod.spec.labels),
            is_of_slice: false,
            whereabouts: Whereabouts::Own,
            is_name: false,
            count,
        }
    }

    /// Returns an endpoint of a ServiceEntry or WorkloadEntry, with the labels of its metadata, if any.
    fn of_entry(
        entry: &'a WorkloadEntry,
        metadata: Option<&'a BTreeMap<String, String>>,
    ) -> Endpoint<'a> {
        Endpoint {
            labels: [metadata, Some(&entry.labels)],
            pod: None,
            is_of_slice: false,
            whereabouts: Whereabouts::Written(&entry.locality),
            is_name: matches!(entry.address, EndpointAddress::Dns(_)),
            count: 1,
        }
    }

    pub(super) fn label(&self, key: &str) -> Option<&'a str> {
        let own = self.labels.iter().flatten().find_map(|of| of.get(key));
        own.map(String::as_str).or_else(|| self.pod?.get(key))
    }

    /// Whether the endpoint has all labels in `wanted`.
    pub(super) fn has_labels(&self, wanted: &BTreeMap<String, String>) -> bool {
        wanted
            .iter()
            .all(|(key, value)| self.label(key) == Some(value.as_str()))
    }

    /// Returns the locality; `None` if unknown.
    pub(super) fn at(&self) -> Option<At> {
        let written = match self.whereabouts {
            Whereabouts::Own => return Some(At::OwnRegion),
            Whereabouts::Unknown => return None,
            Whereabouts::Written(written) => written,
        };
        Some(At::Location(match self.label(LOCALITY_LABEL) {
            Some(label) if written.is_empty() => Locality::parse(&label.replace('.', "/")),
            _ => written.clone(),
        }))
    }
}
