//! Every host that requests can be sent to, in one index, whatever kind of resource describes it.
//!
//! Services of clusters come first, whether Kubernetes, Destinations or ServiceImports tell of them: what a
//! ServiceEntry or a Destination says of a host outside adds nothing to them. Among ServiceEntries for one host in one
//! namespace endpoints are joined and the oldest decides about the rest. Of others for one host a ServiceEntry in the
//! proxy's namespace counts, else the oldest.

mod entry;

mod gloo;

mod imports;

mod kube;

mod policies;

mod vips;

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::catalog::{HostIndex, hostname};
use config_loader::resource::core::{EndpointSlice, TrafficDistribution};
use config_loader::resource::{Age, HealthChecked, Line, Object, Spec};
use ipnet::IpNet;

use crate::compile::members::Members;
use crate::compile::service::{Service, Workloads, Written};
use crate::compile::service_cache::Names;
use crate::identity::Identity;
use crate::provenance::Provenance;
use config_loader::catalog::{Naming, ShortNames};
use vips::Claim;
pub(super) use vips::{Vips, of_name as address_of_name};

/// All services by host.
pub(super) struct Services {
    by_host: HostIndex<Arc<Service>>,
    vips: Vips,
    members: Members,
    naming: Naming,
    /// The namespace of the proxy.
    namespace: Arc<str>,
}

impl Services {
    /// Collects the services that a proxy of this identity can see.
    pub(super) fn collect(resources: &ResourceSet, identity: &Identity) -> Self {
        let mut collector = Collector {
            resources,
            identity,
            domain: &identity.domain,
            members: Members::collect(resources, identity),
            only: None,
            by_host: HashMap::new(),
            claims: Vec::new(),
        };
        kube::collect(&mut collector);
        gloo::collect(&mut collector);
        imports::collect(&mut collector);
        collector.add_outside();
        let Collector {
            by_host,
            claims,
            members,
            ..
        } = collector;
        let mut services = HostIndex::new();
        for (host, draft) in by_host {
            services.insert(host, Arc::new(draft.finish()));
        }
        Self {
            by_host: services,
            vips: Vips::settle(claims),
            members,
            naming: identity.naming(),
            namespace: identity.namespace.as_str().into(),
        }
    }

    /// With the services of these names made anew, after a change of EndpointSlices, and the hosts of those. Nothing if other
    /// hosts or ports came of it, or if something else has one of theirs.
    pub(super) fn renewed(
        self,
        resources: &ResourceSet,
        identity: &Identity,
        names: &Names<'_>,
    ) -> Option<(Self, Vec<Arc<str>>)> {
        let Self {
            mut by_host,
            vips,
            members,
            naming,
            namespace,
        } = self;
        let mut collector = Collector {
            resources,
            identity,
            domain: &identity.domain,
            members,
            only: Some(names),
            by_host: HashMap::new(),
            claims: Vec::new(),
        };
        kube::collect(&mut collector);
        imports::collect(&mut collector);
        let Collector {
            by_host: renewed,
            members,
            ..
        } = collector;
        let is_one = |service: &Service| names.contains(&(&*service.namespace, &*service.name));
        let before = by_host
            .iter()
            .filter(|(_, service)| is_one(service))
            .count();
        if before != renewed.len() {
            return None;
        }
        let mut hosts = Vec::with_capacity(renewed.len());
        for (host, draft) in renewed {
            let place = by_host.get_mut(&host).filter(|service| is_one(service))?;
            let service = Arc::new(draft.finish());
            if !service.has_ports_of(place) {
                return None;
            }
            *place = service;
            hosts.push(host);
        }
        let services = Self {
            by_host,
            vips,
            members,
            naming,
            namespace,
        };
        Some((services, hosts))
    }

    /// Without the lists of endpoints that were made when somebody asked.
    pub(super) fn without_lists(mut self) -> Self {
        for service in self.by_host.values_mut().filter_map(Arc::get_mut) {
            service.endpoints.forget_list();
        }
        self
    }

    /// The clusters that services are spread over.
    pub(super) fn members(&self) -> &Members {
        &self.members
    }

    /// Every host, in no order.
    pub(super) fn hosts(&self) -> impl Iterator<Item = &str> {
        self.by_host.iter().map(|(host, _)| &**host)
    }

    /// Every service, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Service>> {
        self.by_host.iter().map(|(_, service)| service)
    }

    /// The addresses that represent services.
    pub(super) fn vips(&self) -> &Vips {
        &self.vips
    }

    /// Under what else requests for a service may come: for one of this domain the host under which clusters serve it
    /// together, and the addresses that represent it.
    pub(super) fn aliases(&self, host: &str, domain: &str) -> Vec<String> {
        let vips = |together: &str| {
            let vips = self.vips.of(together).iter().map(vips::text);
            let short = match self.naming.short_names {
                ShortNames::Cluster => Vec::new(),
                ShortNames::ClusterSet => hostname::short_names(together, &self.namespace),
            };
            vips.chain(short).collect::<Vec<_>>()
        };
        let together = hostname::of_cluster_set(host, domain);
        let Some(together) = together.filter(|name| self.by_host.get(name).is_some()) else {
            return vips(host);
        };
        let vips = vips(&together);
        [together].into_iter().chain(vips).collect()
    }

    /// The full host of a destination that an object in `namespace` names.
    pub(super) fn destination<'h>(&self, host: &'h str, namespace: &str) -> Cow<'h, str> {
        let is_host = |host: &str| self.by_host.get(host).is_some();
        self.naming.destination(host, namespace, is_host)
    }

    /// The service that answers to a host: by its own name, else by the longest wildcard that covers it.
    pub(super) fn find(&self, host: &str) -> Option<&Arc<Service>> {
        self.by_host.find(host)
    }
}

/// What services are collected from and into.
struct Collector<'a> {
    resources: &'a ResourceSet,
    identity: &'a Identity,
    domain: &'a str,
    members: Members,
    /// The services that are wanted; all of them if it does not say.
    only: Option<&'a Names<'a>>,
    by_host: HashMap<Arc<str>, Draft>,
    claims: Vec<Claim<'a>>,
}

/// A service outside of all clusters, as one kind of resource describes it.
struct Outside<'a> {
    /// Whether it is a ServiceEntry in the proxy's namespace.
    is_near: bool,
    age: Age<'a>,
    draft: Draft,
    /// The addresses that represent it, each with the age of what says so.
    addresses: Vec<(Age<'a>, IpNet)>,
}

/// Whether a service is wanted; without a list, all are.
fn is_wanted(only: Option<&Names<'_>>, namespace: &str, name: &str) -> bool {
    only.is_none_or(|names| names.contains(&(namespace, name)))
}

impl<'a> Collector<'a> {
    /// Whether the service of this namespace and name is to be collected.
    fn wants(&self, namespace: &str, name: &str) -> bool {
        is_wanted(self.only, namespace, name)
    }

    /// Adds a service unless its host is described already; whether it was added.
    fn add(&mut self, draft: Draft) -> bool {
        match self.by_host.entry(Arc::clone(&draft.service.host)) {
            Entry::Occupied(_) => false,
            Entry::Vacant(free) => {
                free.insert(draft);
                true
            }
        }
    }

    /// Adds the services outside of all clusters: a ServiceEntry in the proxy's namespace before others, then the
    /// oldest.
    fn add_outside(&mut self) {
        let mut outside = entry::collect(self);
        outside.extend(gloo::external(self));
        outside.sort_by(|a, b| (!a.is_near, &a.age).cmp(&(!b.is_near, &b.age)));
        for one in outside {
            let host = Arc::clone(&one.draft.service.host);
            if self.add(one.draft) {
                for (age, net) in one.addresses {
                    self.claim(age, net, &host);
                }
            }
        }
    }

    /// Notes an address, or a block of them, that represents a host.
    fn claim(&mut self, age: Age<'a>, net: IpNet, host: &Arc<str>) {
        self.claims.push(Claim {
            age,
            net,
            host: Arc::clone(host),
        });
    }

    /// Takes out what is known of a host, to be added again with more.
    fn take(&mut self, host: &str) -> Option<Draft> {
        self.by_host.remove(host)
    }

    /// Adds the WorkloadEntries of a namespace that a selector takes in.
    fn select_workloads(
        &self,
        namespace: &str,
        selector: &BTreeMap<String, String>,
        draft: &mut Draft,
    ) {
        entry::select_workloads(self.resources, namespace, selector, draft);
    }
}

/// A service that is being put together, with the hash over everything that goes into it.
struct Draft {
    service: Service,
    hasher: DefaultHasher,
    /// Where the objects are that were noted.
    seen: HashSet<usize>,
}

impl Draft {
    fn new(host: &str, name: &str, namespace: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        (host, name, namespace).hash(&mut hasher);
        Self {
            service: Service {
                host: host.to_ascii_lowercase().into(),
                name: name.into(),
                namespace: namespace.into(),
                ports: Vec::new(),
                endpoints: Workloads::default(),
                original_destination: false,
                affinity: None,
                external: false,
                health_check: HealthChecked::Unsaid,
                distribution: TrafficDistribution::Any,
                subject_alt_names: Vec::new(),
                imported_account: None,
                is_cluster_set: false,
                stands_for: None,
                sharing: None,
                exposure: None,
                is_exportable: false,
                export: None,
                shifts: Vec::new(),
                subsets: BTreeMap::new(),
                provenance: Vec::new(),
                fingerprint: 0,
            },
            hasher,
            seen: HashSet::new(),
        }
    }

    /// Notes an object that adds to the service.
    fn saw<T: Spec>(&mut self, object: &Object<T>) {
        object.fingerprint.hash(&mut self.hasher);
        if self.seen.insert(std::ptr::from_ref(object).addr()) {
            let line = object.line_of(Line(0));
            let (object, file) = (object.id.clone(), &object.provenance.file);
            (file, line).hash(&mut self.hasher);
            self.service.provenance.push(Written::Object {
                object,
                file: Arc::clone(file),
                line,
            });
        }
    }

    /// Notes a slice, which adds to a service but once.
    fn saw_slice(&mut self, slice: &Arc<Object<EndpointSlice>>) {
        let (place, line) = (&slice.provenance, slice.line_of(Line(0)));
        (slice.fingerprint, &place.file, line).hash(&mut self.hasher);
        let written = Written::Slice(Arc::clone(slice));
        self.service.provenance.push(written);
    }

    /// The same service under the host by which clusters serve it together.
    fn under(&self, host: &str) -> Draft {
        let mut draft = Draft::new(host, &self.service.name, &self.service.namespace);
        self.hasher.finish().hash(&mut draft.hasher);
        draft.service = Service {
            host: Arc::clone(&draft.service.host),
            is_cluster_set: true,
            shifts: Vec::new(),
            ..self.service.clone()
        };
        draft
    }

    fn finish(self) -> Service {
        let mut service = self.service;
        service.fingerprint = self.hasher.finish();
        service
    }
}

/// Kind, namespace and name of an object, as provenances have them.
pub(super) fn object_name<T: Spec>(object: &Object<T>) -> Arc<str> {
    format!("{}/{}/{}", T::KIND, object.id.namespace, object.id.name).into()
}

/// Where an object, or the part of it on a line of its document, was read.
pub(super) fn provenance<T: Spec>(object: &Object<T>, line: u32) -> Provenance {
    Provenance {
        object: object_name(object),
        file: Arc::clone(&object.provenance.file),
        line: object.line_of(Line(line)),
    }
}
