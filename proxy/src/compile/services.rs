//! Index of every host that requests can be sent to, independent of the kind of resource that describes it.
//!
//! Services of clusters come first, whether Kubernetes Services, Destinations or ServiceImports define them: a
//! ServiceEntry or a Destination for an outside host adds nothing to them. Ports of several ServiceEntries for one host
//! in one namespace are joined, each with the endpoints of its entries; the oldest decides about the rest. Among
//! entries for one host in several namespaces, the one in the proxy's namespace applies, else the oldest.

pub(in crate::compile) mod collector;

mod entry;

mod gloo;

mod imports;

mod kube;

mod outside;

mod policies;

pub(in crate::compile) mod reads;

mod renewal;

pub(in crate::compile) mod slices;

pub(in crate::compile) mod unit;

pub(in crate::compile) mod vips;

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use config_loader::ResourceSet;

use crate::compile::members::Members;
use crate::compile::service::Service;
use crate::compile::service::port::{Carries, Port};
use crate::compile::service::selections::Selections;
use crate::compile::services::reads::{DESCRIBED, EVERY, MEMBERS, SERVICE, SHAPE, VIPS};
use crate::compile::services::unit::{Made, Renewal, Unit};
use crate::identity::Identity;
use config_loader::catalog::{
    Changes, DefaultDomain, DestinationRules, HostIndex, Naming, Read, Readers, Reads,
    Services as Catalog, Slices, Tape, View, hostname,
};
pub(in crate::compile) use vips::Vips;

/// All services by host.
pub(in crate::compile) struct Services {
    /// Resources that describe each host.
    catalog: Catalog,
    slices: Slices,
    selections: Selections,
    destination_rules: DestinationRules,
    by_host: HostIndex<Arc<Service>>,
    units: HashMap<Unit, Made>,
    /// Reads of the units.
    readers: Readers<Unit>,
    /// Reads of the list of units.
    units_from: Reads,
    vips: Vips,
    members: Members,
    members_from: Reads,
    naming: Naming,
    /// Namespace of the proxy.
    namespace: Arc<str>,
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Services {
    /// Collects the services that a proxy of this identity can see.
    pub(in crate::compile) fn collect(resources: &ResourceSet, identity: &Identity) -> Self {
        let naming = identity.naming();
        let (nothing, slices) = (ResourceSet::default(), Slices::default());
        let mut services = Self {
            catalog: Catalog::new(&nothing, &naming.domain),
            destination_rules: DestinationRules::new(&naming.domain),
            members: Members::collect((&nothing).into(), &slices, identity),
            slices,
            selections: Selections::default(),
            by_host: HostIndex::new(),
            units: HashMap::new(),
            readers: Readers::default(),
            units_from: Reads::default(),
            members_from: Reads::default(),
            vips: Vips::default(),
            naming,
            namespace: identity.namespace.as_str().into(),
        };
        let renewal = Renewal {
            before: &nothing,
            now: resources,
            identity,
            tape: &Tape::default(),
        };
        services.follow(renewal, &mut Changes::everything("the first compile"));
        services
    }

    /// Drops the cached lists of endpoints.
    pub(in crate::compile) fn without_lists(mut self) -> Self {
        for service in self.by_host.values_mut().filter_map(Arc::get_mut) {
            service.endpoints.forget_list();
        }
        self
    }

    /// Returns the clusters that services are distributed over.
    pub(in crate::compile) fn members(&self, view: View<'_>) -> &Members {
        view.read(MEMBERS, || self.members.fingerprint);
        &self.members
    }

    /// Returns the DestinationRules of the resources.
    pub(in crate::compile) fn destination_rules(&self) -> &DestinationRules {
        &self.destination_rules
    }

    /// Returns every host, in no order.
    pub(in crate::compile) fn hosts(&self, view: View<'_>) -> impl Iterator<Item = &str> {
        view.read(EVERY, || self.fingerprint());
        self.by_host.iter().map(|(host, _)| &**host)
    }

    /// Returns every service as clients know it, in no order: an alias has those ports of its target whose protocol
    /// carries the requested name.
    pub(in crate::compile) fn of_clients(
        &self,
        view: View<'_>,
    ) -> impl Iterator<Item = Arc<Service>> {
        self.iter(view).map(move |service| {
            let behind = self.behind_alias(view, &service.host);
            let Some(behind) = behind.and_then(|behind| self.find(view, &behind)) else {
                return Arc::clone(service);
            };
            let ports = behind.ports.iter();
            let ports = ports.filter_map(|port| match port.carries {
                Carries::Bytes => None,
                Carries::Detect | Carries::Http => Some(Port {
                    carries: Carries::Http,
                    ..port.clone()
                }),
                Carries::GrpcWeb | Carries::Tls => Some(port.clone()),
            });
            Arc::new(Service {
                ports: ports.collect(),
                ..Service::clone(service)
            })
        })
    }

    /// Returns every service, in no order.
    pub(in crate::compile) fn iter(&self, view: View<'_>) -> impl Iterator<Item = &Arc<Service>> {
        view.read(EVERY, || self.fingerprint());
        self.by_host.iter().map(|(_, service)| service)
    }

    /// Returns the virtual addresses of services.
    pub(in crate::compile) fn vips(&self, view: View<'_>) -> &Vips {
        view.read(VIPS, || self.vips.fingerprint);
        &self.vips
    }

    /// Returns the other names by which requests for a service may arrive: for a service of this domain its
    /// `clusterset.local` host, and its virtual addresses.
    pub(in crate::compile) fn aliases(
        &self,
        view: View<'_>,
        host: &str,
        domain: &str,
    ) -> Vec<String> {
        let vips = |together: &str| {
            let vips = self.vips(view).of(together).iter().map(vips::text);
            let short = match self.naming.default_domain {
                DefaultDomain::Cluster => Vec::new(),
                DefaultDomain::ClusterSet => hostname::short_names(together, &self.namespace),
            };
            vips.chain(short).collect::<Vec<_>>()
        };
        let together = hostname::of_cluster_set(host, domain);
        let Some(together) = together.filter(|name| self.shape(view, name).is_some()) else {
            return vips(host);
        };
        let vips = vips(&together);
        [together].into_iter().chain(vips).collect()
    }

    /// Returns the full host of a destination that an object in `namespace` names; for an alias its target host.
    pub(in crate::compile) fn destination<'h>(
        &self,
        view: View<'_>,
        host: &'h str,
        namespace: &str,
    ) -> Cow<'h, str> {
        let is_host = |host: &str| self.shape(view, host).is_some();
        let full = self.naming.destination(host, namespace, is_host);
        match self.behind_alias(view, &full) {
            Some(target) => Cow::Owned(target),
            None => full,
        }
    }

    /// Returns the target host of an alias; `None` if the host is not an alias, or if no resource describes its target.
    pub(in crate::compile) fn behind_alias(&self, view: View<'_>, host: &str) -> Option<String> {
        let is_alias = self.shape(view, host)?.alias_of.is_some();
        let of_catalog = || {
            let behind = self.catalog.behind_alias(host, &self.namespace);
            let aliases = self.catalog.aliases(host, &self.namespace);
            for name in std::iter::once(host).chain(aliases.iter().map(String::as_str)) {
                view.read_host(DESCRIBED, name, || hash(&behind));
            }
            behind
        };
        is_alias.then(of_catalog).flatten()
    }

    /// Returns the service of exactly this host. The recorded read covers only its ports, alias and shifts.
    fn shape(&self, view: View<'_>, host: &str) -> Option<&Arc<Service>> {
        let service = self.by_host.get(host);
        view.read(Read::Index(SHAPE, host, ""), || {
            hash(service.map(|one| one.shape()))
        });
        service
    }

    /// Returns the service of [`Self::find`]. The recorded read covers only its ports, alias and shifts.
    pub(in crate::compile) fn find_shape(
        &self,
        view: View<'_>,
        host: &str,
    ) -> Option<&Arc<Service>> {
        let service = self.by_host.find(host);
        view.read_host(SHAPE, host, || hash(service.map(|one| one.shape())));
        service
    }

    fn fingerprint(&self) -> u64 {
        let services = self.by_host.iter().map(|(_, service)| service.fingerprint);
        services.fold(0, u64::wrapping_add)
    }

    /// Returns the service of a host: by its own name, else by the longest wildcard that covers it.
    pub(in crate::compile) fn find(&self, view: View<'_>, host: &str) -> Option<&Arc<Service>> {
        let service = self.by_host.find(host);
        view.read_host(SERVICE, host, || {
            service.map_or(0, |service| service.fingerprint)
        });
        service
    }
}
