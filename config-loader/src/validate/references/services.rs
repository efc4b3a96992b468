//! Which services there are, by host.

use std::collections::{BTreeMap, HashMap};

use crate::catalog::{HostIndex, hostname};
use crate::diagnostic::suggest;
use crate::kind::ObjectRef;
use crate::resource::core::{self as kubernetes, EndpointSlice};
use crate::resource::flomesh::{ImportType, ServiceImport};
use crate::resource::gloo::Backing;
use crate::resource::istio::{EndpointAddress, Locality, Resolution, ServiceEntry, WorkloadEntry};
use crate::resource::{Name, Object, ResourceSet};

/// The label that stands in for `locality`, with dots for slashes.
const LOCALITY_LABEL: &str = "istio-locality";

/// Every service, by its hosts.
pub(super) struct Services<'a> {
    domain: &'a str,
    by_host: HostIndex<Service<'a>>,
}

/// What all objects together say about one host.
#[derive(Default)]
pub(super) struct Service<'a> {
    /// Ports, by number and name; a port may stand here twice. Empty if they are not known.
    pub(super) ports: Vec<(u16, &'a str)>,
    /// Every endpoint; none if they are not all known.
    pub(super) endpoints: Option<Vec<Endpoint<'a>>>,
    /// Whether its endpoints are where its clients dialled, which a gateway does not know.
    pub(super) is_where_dialled: bool,
    /// Who sees each of the objects that describe it.
    seen: Vec<Seen<'a>>,
    /// Whether an object describes it; until then nothing is known.
    is_described: bool,
}

/// Who sees what an object says of a host.
#[derive(Clone, Copy, Debug)]
enum Seen<'a> {
    ByAll,
    AsEntry(&'a Object<ServiceEntry>),
    AsService(&'a Object<kubernetes::Service>),
}

impl<'a> Seen<'a> {
    fn is_from(&self, namespace: &str) -> bool {
        match self {
            Seen::ByAll => true,
            Seen::AsEntry(object) => object.spec.export_to.includes(namespace),
            Seen::AsService(object) => object.is_exported_to(namespace),
        }
    }

    /// The object, if it is not seen by all.
    fn by(&self) -> Option<&'a ObjectRef> {
        match self {
            Seen::ByAll => None,
            Seen::AsEntry(object) => Some(&object.id),
            Seen::AsService(object) => Some(&object.id),
        }
    }
}

/// The service that a host names, seen from a namespace.
pub(super) enum Named<'s, 'a> {
    /// A service.
    Known(&'s Service<'a>),
    /// A service that is not exported to the namespace, which this object describes.
    Hidden(&'a ObjectRef),
    /// Nothing.
    Unknown,
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

impl Service<'_> {
    /// How many different ports it has.
    pub(super) fn port_count(&self) -> usize {
        let mut numbers: Vec<u16> = self.ports.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.len()
    }
}

impl<'a> Services<'a> {
    pub(super) fn new(set: &'a ResourceSet, domain: &'a str) -> Services<'a> {
        let mut services = Services {
            domain,
            by_host: HostIndex::new(),
        };
        services.add_kubernetes(set);
        for object in set.service_entries.values() {
            services.add_entry(set, object);
        }
        services.add_multi_cluster(set);
        services
    }

    /// Whether an object describes this very host.
    pub(super) fn has(&self, host: &str) -> bool {
        self.by_host.get(host).is_some()
    }

    /// The service that a host names, whether it names it itself or by a wildcard.
    pub(super) fn find(&self, host: &str) -> Option<&Service<'a>> {
        self.by_host.find(host)
    }

    /// The service that a host names, among the services visible in `namespace`.
    pub(super) fn find_from(&self, host: &str, namespace: &str) -> Named<'_, 'a> {
        let mut hidden = Named::Unknown;
        for service in self.by_host.covering(host) {
            if service.seen.iter().any(|seen| seen.is_from(namespace)) {
                return Named::Known(service);
            }
            if let (Named::Unknown, Some(by)) = (&hidden, service.seen.iter().find_map(Seen::by)) {
                hidden = Named::Hidden(by);
            }
        }
        hidden
    }

    /// The host that was most likely meant by an unknown one: either its first label or the rest is misspelt.
    pub(super) fn near(&self, host: &str) -> Option<&str> {
        let (first, rest) = host.split_once('.').unwrap_or((host, ""));
        let hosts = self.by_host.iter().map(|(host, _)| &**host);
        let alike = hosts.filter(|known| {
            known
                .strip_prefix(first)
                .is_some_and(|known| known.starts_with('.'))
                || known
                    .strip_suffix(rest)
                    .is_some_and(|known| known.ends_with('.'))
        });
        let mut alike: Vec<&str> = alike.collect();
        alike.sort_unstable();
        let labels = alike
            .iter()
            .filter_map(|known| Some((known.strip_suffix(rest)?.strip_suffix('.')?, *known)));
        let labels: Vec<(&str, &str)> = labels.collect();
        let label = suggest::nearest(first, labels.iter().map(|(label, _)| *label));
        let by_label = label
            .and_then(|near| labels.iter().find(|(label, _)| *label == near))
            .map(|(_, known)| *known);
        by_label.or_else(|| {
            alike
                .into_iter()
                .find(|known| known.split('.').next() == Some(first))
        })
    }

    fn add(
        &mut self,
        host: String,
        ports: Vec<(u16, &'a str)>,
        endpoints: Option<Vec<Endpoint<'a>>>,
    ) {
        self.describe(host, ports, endpoints, (false, Seen::ByAll));
    }

    fn describe(
        &mut self,
        host: String,
        ports: Vec<(u16, &'a str)>,
        endpoints: Option<Vec<Endpoint<'a>>>,
        (is_where_dialled, seen): (bool, Seen<'a>),
    ) {
        let service = self.by_host.entry(&host);
        service.ports.extend(ports);
        service.seen.push(seen);
        service.is_where_dialled =
            is_where_dialled && (!service.is_described || service.is_where_dialled);
        service.endpoints = match (service.endpoints.take(), endpoints) {
            (None, endpoints) if !service.is_described => endpoints,
            (Some(mut known), Some(more)) => {
                known.extend(more);
                Some(known)
            }
            _ => None,
        };
        service.is_described = true;
    }

    fn add_kubernetes(&mut self, set: &'a ResourceSet) {
        let mut slices: HashMap<(&str, &str), Vec<&'a Object<EndpointSlice>>> = HashMap::new();
        for slice in set.endpoint_slices.values() {
            if let Some(service) = slice.service_name() {
                let name = (&*slice.id.namespace, service);
                slices.entry(name).or_default().push(slice);
            }
        }
        for (name, object) in &set.services {
            let ports = object
                .spec
                .ports
                .iter()
                .map(|port| (port.port, &*port.name))
                .collect();
            // A slice's labels represent those of its pods. Without slices the endpoints are not known from files.
            let slices = slices.get(&(&*name.namespace, &*name.name));
            let endpoints = slices.map(|slices| {
                let slices = slices.iter().copied();
                slices.filter_map(Endpoint::of_slice).collect()
            });
            self.describe(
                hostname::of_service(&name.name, &name.namespace, self.domain),
                ports,
                endpoints,
                (false, Seen::AsService(object)),
            );
        }
    }

    fn add_entry(&mut self, set: &'a ResourceSet, object: &'a Object<ServiceEntry>) {
        let spec = &object.spec;
        let endpoints: Option<Vec<Endpoint<'_>>> = match &spec.workload_selector {
            None if spec.endpoints.is_empty() => None,
            None => {
                let written = spec.endpoints.iter();
                Some(
                    written
                        .map(|entry| Endpoint::of_entry(entry, None))
                        .collect(),
                )
            }
            Some(selector) => {
                let own = set
                    .workload_entries
                    .values()
                    .filter(|entry| entry.id.namespace == object.id.namespace);
                Some(
                    own.map(|entry| Endpoint::of_entry(&entry.spec, Some(&entry.labels)))
                        .filter(|endpoint| endpoint.has_labels(selector))
                        .collect(),
                )
            }
        };
        for host in &spec.hosts {
            let ports = spec
                .ports
                .iter()
                .map(|port| (port.number, &*port.name))
                .collect();
            self.describe(
                hostname::canonical(&host.value).into_owned(),
                ports,
                endpoints.clone(),
                (spec.resolution == Resolution::None, Seen::AsEntry(object)),
            );
        }
    }

    /// The hosts of an import: the service's own, that of the cluster set, and those of single endpoints.
    fn add_import(&mut self, name: &Name, object: &'a Object<ServiceImport>) {
        let ports = || {
            let ports = object.spec.ports.iter();
            ports.map(|port| (port.port, &*port.name)).collect()
        };
        let (name, namespace) = (&name.name, &name.namespace);
        let together = hostname::of_cluster_set_service(name, namespace);
        self.add(
            hostname::of_service(name, namespace, self.domain),
            ports(),
            None,
        );
        self.add(together.clone(), ports(), None);
        if object.spec.import_type == ImportType::ClusterSetIp {
            return;
        }
        for endpoint in object.spec.ports.iter().flat_map(|port| &port.endpoints) {
            if let Some(target) = &endpoint.target.server_name {
                let hostname = target.split('.').next().unwrap_or_default();
                let cluster = endpoint.cluster.name();
                self.add(format!("{hostname}.{cluster}.{together}"), ports(), None);
            }
        }
    }

    fn add_multi_cluster(&mut self, set: &'a ResourceSet) {
        let imports = &set.service_imports;
        for (name, object) in imports.iter().chain(imports.all_beside()) {
            self.add_import(name, object);
        }
        for object in set.destinations.values() {
            match &object.spec.backing {
                Backing::External(service) => {
                    for host in &service.hosts {
                        let ports = service
                            .ports
                            .iter()
                            .map(|port| (port.number, &*port.name))
                            .collect();
                        self.add(host.to_ascii_lowercase(), ports, None);
                    }
                }
                Backing::Kube(service) => {
                    let ports = service
                        .ports
                        .iter()
                        .map(|port| (port.port, &*port.name))
                        .collect();
                    let at = &service.service;
                    self.add(
                        hostname::of_service(&at.name, &at.namespace, self.domain),
                        ports,
                        None,
                    );
                }
                Backing::Nothing => {}
            }
            let status = &object.spec.status;
            let federated = status
                .federation
                .as_ref()
                .and_then(|federation| federation.hostname.as_deref());
            for host in [status.local_fqdn.as_deref(), federated]
                .into_iter()
                .flatten()
            {
                self.add(host.to_ascii_lowercase(), Vec::new(), None);
            }
        }
        for name in set.multi_cluster_services.keys() {
            let host = hostname::of_cluster_set_service(&name.name, &name.namespace);
            self.add(host, Vec::new(), None);
        }
    }
}

#[cfg(test)]
mod tests;
