//! Every host that requests can be sent to, in one index, whatever kind of resource describes it.
//!
//! Services of clusters come first, whether Kubernetes, Destinations or ServiceImports tell of them: what a
//! ServiceEntry or a Destination says of a host outside adds nothing to them. Among ServiceEntries for one host in one
//! namespace endpoints are joined and the oldest decides about the rest. Of others for one host a ServiceEntry in the
//! proxy's namespace counts, else the oldest.

pub(in crate::compile) mod collector;

mod entry;

mod gloo;

mod imports;

mod kube;

mod policies;

pub(in crate::compile) mod vips;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::catalog::{HostIndex, hostname};

use crate::compile::members::Members;
use crate::compile::service::Service;
use crate::compile::services::collector::{Collector, Names};
use crate::identity::Identity;
use config_loader::catalog::{Naming, ShortNames};
pub(in crate::compile) use vips::Vips;

/// All services by host.
pub(in crate::compile) struct Services {
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
        add_outside(&mut collector);
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
    pub(in crate::compile) fn renewed(
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

    /// Every host, in no order.
    pub(in crate::compile) fn hosts(&self) -> impl Iterator<Item = &str> {
        self.by_host.iter().map(|(host, _)| &**host)
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
    pub(in crate::compile) fn destination<'h>(
        &self,
        host: &'h str,
        namespace: &str,
    ) -> Cow<'h, str> {
        let is_host = |host: &str| self.by_host.get(host).is_some();
        self.naming.destination(host, namespace, is_host)
    }

    /// The service that answers to a host: by its own name, else by the longest wildcard that covers it.
    pub(in crate::compile) fn find(&self, host: &str) -> Option<&Arc<Service>> {
        self.by_host.find(host)
    }
}

/// Adds the services outside of all clusters: a ServiceEntry in the proxy's namespace before others, then the
/// oldest.
fn add_outside<'a>(collector: &mut Collector<'a>) {
    let mut outside = entry::collect(collector);
    outside.extend(gloo::external(collector));
    outside.sort_by(|a, b| (!a.is_near, &a.age).cmp(&(!b.is_near, &b.age)));
    for one in outside {
        let host = Arc::clone(&one.draft.service.host);
        if collector.add(one.draft) {
            for (age, net) in one.addresses {
                collector.claim(age, net, &host);
            }
        }
    }
}
