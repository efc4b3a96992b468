//! Every host that requests can be sent to, in one index, whatever kind of resource describes it.
//!
//! Services of clusters come first, whether Kubernetes, Destinations or ServiceImports define them: what a
//! ServiceEntry or a Destination says of a host outside adds nothing to them. Of ServiceEntries for one host in one
//! namespace the ports are joined, each with the endpoints of its entries, and the oldest decides about the rest. Of others
//! for one host a ServiceEntry in the proxy's namespace counts, else the oldest.

pub(in crate::compile) mod collector;

mod entry;

mod gloo;

mod imports;

mod kube;

mod outside;

mod policies;

pub(in crate::compile) mod renewal;

pub(in crate::compile) mod selecting;

pub(in crate::compile) mod slices;

pub(in crate::compile) mod sources;

pub(in crate::compile) mod vips;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::resource::Objects;

use crate::compile::members::Members;
use crate::compile::service::Service;
use crate::compile::service::port::{Carries, Port};
use crate::compile::service::selections::Selections;
use crate::compile::services::collector::Collector;
use crate::compile::services::sources::ServiceResources;
use crate::identity::Identity;
use config_loader::catalog::{
    DefaultDomain, DestinationRules, HostIndex, Naming, Services as Catalog, Slices, hostname,
};
pub(in crate::compile) use vips::Vips;

/// All services by host.
pub(in crate::compile) struct Services {
    /// Which resources describe which host.
    catalog: Catalog,
    slices: Slices,
    selections: Selections,
    destination_rules: DestinationRules,
    by_host: HostIndex<Arc<Service>>,
    vips: Vips,
    members: Members,
    naming: Naming,
    /// The namespace of the proxy.
    namespace: Arc<str>,
}

impl Services {
    /// Collects the services that a proxy of this identity can see.
    pub(in crate::compile) fn collect(resources: &ResourceSet, identity: &Identity) -> Self {
        let naming = identity.naming();
        let mut destination_rules = DestinationRules::new(&naming.domain);
        destination_rules.update(&ResourceSet::default(), resources);
        let resources = &ServiceResources::of(resources);
        let catalog = Catalog::new(resources, &naming.domain);
        let mut slices = Slices::default();
        slices.update(&Objects::default(), &resources.endpoint_slices);
        let mut collector = Collector {
            resources,
            identity,
            domain: &identity.domain,
            members: Members::collect(resources, identity),
            slices: &slices,
            selections: RefCell::default(),
            only: None,
            by_host: HashMap::new(),
            claims: Vec::new(),
        };
        kube::collect(&mut collector);
        gloo::collect(&mut collector);
        imports::collect(&mut collector);
        outside::collect(&mut collector, &catalog);
        let Collector {
            by_host,
            claims,
            members,
            selections,
            ..
        } = collector;
        let mut services = HostIndex::new();
        for (host, draft) in by_host {
            services.insert(host, Arc::new(draft.finish()));
        }
        Self {
            vips: Vips::settle(claims),
            catalog,
            slices,
            selections: selections.into_inner(),
            destination_rules,
            by_host: services,
            members,
            naming,
            namespace: identity.namespace.as_str().into(),
        }
    }

    /// Without the cached lists of endpoints.
    pub(in crate::compile) fn without_lists(mut self) -> Self {
        for service in self.by_host.values_mut().filter_map(Arc::get_mut) {
            service.endpoints.forget_list();
        }
        self
    }

    /// The clusters that services are spread over.
    pub(in crate::compile) fn members(&self) -> &Members {
        &self.members
    }

    /// Follows a change of the DestinationRules.
    pub(in crate::compile) fn follow_rules(&mut self, before: &ResourceSet, now: &ResourceSet) {
        self.destination_rules.update(before, now);
    }

    /// The DestinationRules of the resources.
    pub(in crate::compile) fn destination_rules(&self) -> &DestinationRules {
        &self.destination_rules
    }

    /// Every host, in no order.
    pub(in crate::compile) fn hosts(&self) -> impl Iterator<Item = &str> {
        self.by_host.iter().map(|(host, _)| &**host)
    }

    /// Every service as clients know it, in no order: an alias has the ports of its target whose connections
    /// tell by which name they come.
    pub(in crate::compile) fn of_clients(&self) -> impl Iterator<Item = Arc<Service>> {
        self.iter().map(|service| {
            let behind = self.behind_alias(&service.host);
            let Some(behind) = behind.and_then(|behind| self.find(&behind)) else {
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

    /// Every service, in no order.
    pub(in crate::compile) fn iter(&self) -> impl Iterator<Item = &Arc<Service>> {
        self.by_host.iter().map(|(_, service)| service)
    }

    /// The addresses that represent services.
    pub(in crate::compile) fn vips(&self) -> &Vips {
        &self.vips
    }

    /// Under what else requests for a service may come: for one of this domain the host under which clusters serve it
    /// together, and the addresses that represent it.
    pub(in crate::compile) fn aliases(&self, host: &str, domain: &str) -> Vec<String> {
        let vips = |together: &str| {
            let vips = self.vips.of(together).iter().map(vips::text);
            let short = match self.naming.default_domain {
                DefaultDomain::Cluster => Vec::new(),
                DefaultDomain::ClusterSet => hostname::short_names(together, &self.namespace),
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

    /// The full host of a destination that an object in `namespace` names; for an alias its target host.
    pub(in crate::compile) fn destination<'h>(
        &self,
        host: &'h str,
        namespace: &str,
    ) -> Cow<'h, str> {
        let is_host = |host: &str| self.by_host.get(host).is_some();
        let full = self.naming.destination(host, namespace, is_host);
        match self.behind_alias(&full) {
            Some(target) => Cow::Owned(target),
            None => full,
        }
    }

    /// The target host of an alias; none for the host of no alias, and for the alias of a DNS name that no resource
    /// describes.
    pub(in crate::compile) fn behind_alias(&self, host: &str) -> Option<String> {
        let is_alias = self.by_host.get(host)?.alias_of.is_some();
        let of_catalog = || self.catalog.behind_alias(host, &self.namespace);
        is_alias.then(of_catalog).flatten()
    }

    /// The service that answers to a host: by its own name, else by the longest wildcard that covers it.
    pub(in crate::compile) fn find(&self, host: &str) -> Option<&Arc<Service>> {
        self.by_host.find(host)
    }
}
