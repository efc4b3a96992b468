//! What one compile leaves for the next: services, so that those of which nothing changed need not be put together
//! again.
//!
//! After a change of Services, EndpointSlices, ServiceEntries, WorkloadEntries, Pods, Nodes and Namespaces alone, the services that
//! these describe are compiled again and all others are taken as they are.

#[cfg(test)]
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::catalog::{differences, slices_of_changed};
use config_loader::resource::core::EndpointSlice;
use config_loader::resource::{Object, Objects};

use crate::compile::Inputs;
#[cfg(test)]
use crate::compile::service::Service;
use crate::compile::services::Services;
use crate::compile::services::collector::Names;
use crate::compile::services::renewal::Touched;
use crate::compile::update::changes::Changes;
use crate::compile::update::visible_routes::VisibleRoutes;
use crate::identity::Identity;
use crate::snapshot::Snapshot;

/// The services of the last compile, and what they were made from.
#[derive(Default)]
pub struct ServiceCache(Option<CachedServices>);

struct CachedServices {
    resources: ResourceSet,
    identity: Identity,
    certificates: u64,
    services: Services,
    routes: VisibleRoutes,
}

/// What a compile begins with.
pub(in crate::compile) struct Start {
    pub services: Services,
    pub routes: VisibleRoutes,
    /// What the change touches.
    pub changes: Changes,
}

impl ServiceCache {
    /// The services and VirtualServices of these resources, and what the change touches. Afterwards nothing is remembered, until [`ServiceCache::keep`].
    pub(in crate::compile) fn services(
        &mut self,
        inputs: &Inputs<'_>,
        previous: &Snapshot,
    ) -> Start {
        let (resources, identity) = (inputs.resources, inputs.identity);
        let kept = self.0.take().filter(|kept| kept.identity == *identity);
        let Some(kept) = kept else {
            return Start {
                services: Services::collect(resources, identity),
                routes: VisibleRoutes::collect(resources, identity),
                changes: Changes::everything(),
            };
        };
        // listeners that went away still have clusters of old in the snapshot
        let is_plain = previous.retired.is_empty();
        let CachedServices {
            resources: before,
            certificates,
            services,
            routes,
            ..
        } = kept;
        let is_known = is_plain
            && certificates == inputs.certificates.revision()
            // policies of workloads decide about TLS to them
            && before.peer_authentications.same(&resources.peer_authentications);
        let routes = routes.follow(&before, resources, identity);
        let Some((services, touched)) = renewed(services, &before, resources, identity) else {
            return Start {
                services: Services::collect(resources, identity),
                routes,
                changes: Changes::everything(),
            };
        };
        let changes = match is_known {
            true => Changes::between(&before, resources, identity, &touched),
            false => Changes::everything(),
        };
        Start {
            services,
            routes,
            changes,
        }
    }

    /// Keeps services for the next compile, without the lists of their endpoints, which take much memory.
    pub(in crate::compile) fn keep(
        &mut self,
        inputs: &Inputs<'_>,
        certificates: u64,
        (services, routes): (Services, VisibleRoutes),
    ) {
        self.0 = Some(CachedServices {
            resources: inputs.resources.clone(),
            identity: inputs.identity.clone(),
            certificates,
            services: services.without_lists(),
            routes,
        });
    }
}

impl fmt::Debug for ServiceCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceCache").finish_non_exhaustive()
    }
}

#[cfg(test)]
impl ServiceCache {
    /// Its services by host.
    pub(in crate::compile) fn by_host(&self) -> BTreeMap<String, Arc<Service>> {
        let services = self.0.iter().flat_map(|kept| kept.services.iter());
        services
            .map(|service| (service.host.to_string(), Arc::clone(service)))
            .collect()
    }
}

/// The services of these resources and what the change touches, if they can be derived from the previous services.
fn renewed(
    services: Services,
    before: &ResourceSet,
    resources: &ResourceSet,
    identity: &Identity,
) -> Option<(Services, Touched)> {
    if !is_renewable(before, resources) {
        return None;
    }
    let mut names = changed_slices(&before.endpoint_slices, &resources.endpoint_slices)?;
    let of_pods = slices_of_changed(before, resources).into_iter();
    names.extend(of_pods.filter_map(|slice| named_service(slice)));
    for (gone, came) in differences(&before.services, &resources.services) {
        let both = [gone, came].into_iter().flatten();
        names.extend(both.map(|service| (&*service.id.namespace, &*service.id.name)));
    }
    services.renewed((before, resources), identity, names)
}

/// Whether everything that services are made from is the same, but for Services, EndpointSlices, ServiceEntries,
/// WorkloadEntries, Pods, Nodes and Namespaces.
fn is_renewable(before: &ResourceSet, now: &ResourceSet) -> bool {
    // every field is named, so that a new kind is not forgotten
    let ResourceSet {
        revision: _,
        virtual_services: _,
        destination_rules: _,
        gateways: _,
        sidecars: _,
        peer_authentications: _,
        authorization_policies: _,
        request_authentications: _,
        service_entries: _,
        workload_entries: _,
        clusters,
        global_traffic_policies,
        service_imports,
        service_exports,
        multi_cluster_services,
        destinations,
        services: _,
        endpoint_slices: _,
        pods: _,
        nodes: _,
        namespaces: _,
        secrets: _,
        withheld,
    } = now;
    before.clusters.same(clusters)
        && before.global_traffic_policies.same(global_traffic_policies)
        && before.service_imports.same(service_imports)
        && before.service_exports.same(service_exports)
        && before.multi_cluster_services.same(multi_cluster_services)
        && before.destinations.same(destinations)
        && before.withheld == *withheld
}

/// The services to which slices belong that changed. Nothing if slices of other clusters came or went: those clusters may be
/// known by nothing else.
fn changed_slices<'a>(
    before: &'a Objects<EndpointSlice>,
    now: &'a Objects<EndpointSlice>,
) -> Option<Names<'a>> {
    let mut names = Names::new();
    for (gone, came) in differences(before, now) {
        let source = |slice: Option<&'a Arc<Object<EndpointSlice>>>| {
            slice.and_then(|slice| slice.source_cluster())
        };
        if source(gone) != source(came) {
            return None;
        }
        let both = [gone, came].into_iter().flatten();
        names.extend(both.filter_map(|slice| named_service(slice)));
    }
    Some(names)
}

/// Namespace and name of the service that a slice belongs to.
fn named_service(slice: &Object<EndpointSlice>) -> Option<(&str, &str)> {
    Some((&*slice.id.namespace, slice.service_name()?))
}
