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
use crate::compile::services::sources::ServiceResources;
use crate::compile::update::changes::Changes;
use crate::compile::update::visible_routes::VisibleRoutes;
use crate::identity::Identity;

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
    pub(in crate::compile) fn services(&mut self, inputs: &Inputs<'_>) -> Start {
        let (resources, identity) = (inputs.resources, inputs.identity);
        let kept = self.0.take().filter(|kept| kept.identity == *identity);
        let Some(kept) = kept else {
            return Start {
                services: Services::collect(resources, identity),
                routes: VisibleRoutes::collect(resources, identity),
                changes: Changes::everything(),
            };
        };
        let CachedServices {
            resources: before,
            certificates,
            services,
            routes,
            ..
        } = kept;
        let routes = routes.follow(&before, resources, identity);
        let Some((services, touched)) = renewed(services, (&before, resources), identity) else {
            return Start {
                services: Services::collect(resources, identity),
                routes,
                changes: Changes::everything(),
            };
        };
        let changes = match certificates == inputs.certificates.revision() {
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
    (before, now): (&ResourceSet, &ResourceSet),
    identity: &Identity,
) -> Option<(Services, Touched)> {
    let mut services = services;
    services.follow_rules(before, now);
    let (before, now) = (ServiceResources::of(before), ServiceResources::of(now));
    if !now.is_renewable_from(&before) {
        return None;
    }
    let mut names = changed_slices(&before.endpoint_slices, &now.endpoint_slices)?;
    let of_pods = slices_of_changed(&before, &now).into_iter();
    names.extend(of_pods.filter_map(|slice| named_service(slice)));
    for (gone, came) in differences(&before.services, &now.services) {
        let both = [gone, came].into_iter().flatten();
        names.extend(both.map(|service| (&*service.id.namespace, &*service.id.name)));
    }
    services.renewed((&before, &now), identity, names)
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
