//! The endpoints of a service, where files say all of them.

use std::collections::{BTreeMap, HashMap};

use crate::catalog::{Seen, Source};
use crate::resource::core::EndpointSlice;
use crate::resource::istio::{EndpointAddress, Locality, ServiceEntry, WorkloadEntry};
use crate::resource::{Object, ResourceSet};

/// The label that stands in for `locality`, with dots for slashes.
const LOCALITY_LABEL: &str = "istio-locality";

/// Slices by namespace and name of their service.
type Slices<'a> = HashMap<(&'a str, &'a str), Vec<&'a Object<EndpointSlice>>>;

/// The endpoints that resources name.
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

    /// The endpoints of what a namespace sees of a host; `None` if they are not all known.
    pub(super) fn of(&self, seen: &Seen<'a>) -> Option<Vec<Endpoint<'a>>> {
        let mut all = Vec::new();
        for source in seen.sources() {
            all.extend(self.of_source(source)?);
        }
        (!seen.sources().is_empty()).then_some(all)
    }

    fn of_source(&self, source: &'a Source) -> Option<Vec<Endpoint<'a>>> {
        match source {
            // A slice's labels represent those of its pods. Without slices the endpoints are not known from files.
            Source::Service(object) => {
                let slices = self
                    .slices
                    .get(&(&*object.id.namespace, &*object.id.name))?;
                let slices = slices.iter().copied();
                Some(slices.filter_map(Endpoint::of_slice).collect())
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
        Some(own.filter(|one| one.has_labels(selector)).collect())
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

/// What is known of an endpoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Endpoint<'a> {
    /// Its labels; of two values of one label, that of the first counts.
    labels: [Option<&'a BTreeMap<String, String>>; 2],
    whereabouts: Whereabouts<'a>,
    /// Whether it is a name, which has as many addresses as DNS says.
    pub(super) is_name: bool,
    /// How many there are like it.
    pub(super) count: usize,
}

/// What is known of where an endpoint is.
#[derive(Clone, Copy, Debug)]
enum Whereabouts<'a> {
    /// In the region of the proxy, whichever that is.
    Own,
    /// In another cluster, of which nothing is known here.
    Unknown,
    /// Where it is written to be.
    Written(&'a Locality),
}

/// Where an endpoint is, as far as that can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// Somewhere in the region of the proxy.
    OwnRegion,
    /// There; nowhere if nothing says where.
    Location(Locality),
}

impl At {
    /// The place, if it is known.
    pub(super) fn location(&self) -> Option<&Locality> {
        match self {
            At::OwnRegion => None,
            At::Location(location) => Some(location),
        }
    }
}

impl<'a> Endpoint<'a> {
    /// The endpoints of a slice, whose labels represent those of its pods; none if there are none.
    fn of_slice(slice: &'a Object<EndpointSlice>) -> Option<Endpoint<'a>> {
        let count = slice.spec.endpoints.len();
        (count > 0).then_some(Endpoint {
            labels: [Some(&slice.labels), None],
            whereabouts: match slice.source_cluster() {
                Some(_) => Whereabouts::Unknown,
                None => Whereabouts::Own,
            },
            is_name: false,
            count,
        })
    }

    /// An endpoint that is written, with the labels of its metadata if it has some.
    fn of_entry(
        entry: &'a WorkloadEntry,
        metadata: Option<&'a BTreeMap<String, String>>,
    ) -> Endpoint<'a> {
        Endpoint {
            labels: [metadata, Some(&entry.labels)],
            whereabouts: Whereabouts::Written(&entry.locality),
            is_name: matches!(entry.address, EndpointAddress::Dns(_)),
            count: 1,
        }
    }

    fn label(&self, key: &str) -> Option<&'a String> {
        self.labels.iter().flatten().find_map(|of| of.get(key))
    }

    /// Whether it carries all of `wanted`.
    pub(super) fn has_labels(&self, wanted: &BTreeMap<String, String>) -> bool {
        wanted
            .iter()
            .all(|(key, value)| self.label(key) == Some(value))
    }

    /// Its locality; none if unknown.
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
