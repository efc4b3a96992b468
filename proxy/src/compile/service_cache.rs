//! What one compile leaves for the next: services, so that those of which nothing changed need not be put together
//! again.
//!
//! Endpoints change much more often than anything else. Where they alone did, in EndpointSlices, the services that
//! these belong to are rebuilt and all others are taken as they are.

use std::cmp::Ordering;
#[cfg(test)]
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::resource::core::EndpointSlice;
use config_loader::resource::{Object, Objects};

#[cfg(test)]
use super::service::Service;
use super::services::Services;
use crate::identity::Identity;

/// The services of the last compile, and what they were made from.
#[derive(Default)]
pub struct ServiceCache(Option<CachedServices>);

struct CachedServices {
    resources: ResourceSet,
    identity: Identity,
    services: Services,
}

/// Namespaces and names of services.
pub(super) type Names<'a> = BTreeSet<(&'a str, &'a str)>;

impl ServiceCache {
    /// The services of these resources. Afterwards nothing is remembered, until [`ServiceCache::keep`].
    pub(super) fn services(&mut self, resources: &ResourceSet, identity: &Identity) -> Services {
        let kept = self.0.take();
        let kept = kept.and_then(|kept| kept.services(resources, identity));
        kept.unwrap_or_else(|| Services::collect(resources, identity))
    }

    /// Keeps services for the next compile, without the lists of their endpoints, which take much memory.
    pub(super) fn keep(
        &mut self,
        resources: &ResourceSet,
        identity: &Identity,
        services: Services,
    ) {
        self.0 = Some(CachedServices {
            resources: resources.clone(),
            identity: identity.clone(),
            services: services.without_lists(),
        });
    }
}

impl fmt::Debug for ServiceCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

#[cfg(test)]
impl ServiceCache {
    /// Its services by host.
    pub(super) fn by_host(&self) -> BTreeMap<String, Arc<Service>> {
        let services = self.0.iter().flat_map(|kept| kept.services.iter());
        services
            .map(|service| (service.host.to_string(), Arc::clone(service)))
            .collect()
    }
}

impl CachedServices {
    /// The services of these resources, if they can be told from those that there were.
    fn services(self, resources: &ResourceSet, identity: &Identity) -> Option<Services> {
        let is_same = self.identity == *identity && only_slices_differ(&self.resources, resources);
        // what Destinations say of services is found by looking at all of them
        if !is_same || !resources.destinations.is_empty() {
            return None;
        }
        let names = changed(&self.resources.endpoint_slices, &resources.endpoint_slices)?;
        if names.is_empty() {
            return Some(self.services);
        }
        self.services.renewed(resources, identity, &names)
    }
}

/// Whether everything that services are made from is the same, but for EndpointSlices.
fn only_slices_differ(before: &ResourceSet, now: &ResourceSet) -> bool {
    // every field is named, so that a new kind is not forgotten
    let ResourceSet {
        revision: _,
        virtual_services: _,
        destination_rules: _,
        gateways: _,
        sidecars: _,
        service_entries,
        workload_entries,
        clusters,
        global_traffic_policies,
        service_imports,
        service_exports,
        multi_cluster_services,
        destinations,
        services,
        endpoint_slices: _,
        secrets: _,
        withheld,
    } = now;
    before.service_entries.same(service_entries)
        && before.workload_entries.same(workload_entries)
        && before.clusters.same(clusters)
        && before.global_traffic_policies.same(global_traffic_policies)
        && before.service_imports.same(service_imports)
        && before.service_exports.same(service_exports)
        && before.multi_cluster_services.same(multi_cluster_services)
        && before.destinations.same(destinations)
        && before.services.same(services)
        && before.withheld == *withheld
}

type Slice = Arc<Object<EndpointSlice>>;

/// The services to which slices belong that changed. Nothing if slices of other clusters came or went: those clusters
/// may be known by nothing else.
fn changed<'a>(
    before: &'a Objects<EndpointSlice>,
    now: &'a Objects<EndpointSlice>,
) -> Option<Names<'a>> {
    let mut names = Names::new();
    if before.same(now) {
        return Some(names);
    }
    let (mut old, mut new) = (before.iter().peekable(), now.iter().peekable());
    loop {
        let order = match (old.peek(), new.peek()) {
            (None, None) => return Some(names),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((_, gone)), Some((_, came))) if Arc::ptr_eq(gone, came) => Ordering::Equal,
            (Some((gone, _)), Some((came, _))) => gone.cmp(came),
        };
        let gone = if order.is_le() { old.next() } else { None };
        let came = if order.is_ge() { new.next() } else { None };
        let [gone, came] = [gone, came].map(|found| found.map(|(_, slice)| slice));
        if !is_same(gone, came) {
            let source = |slice: Option<&'a Slice>| slice.and_then(|slice| slice.source_cluster());
            if source(gone) != source(came) {
                return None;
            }
            names.extend([gone, came].into_iter().flatten().filter_map(|slice| {
                let service = slice.service_name()?;
                Some((&*slice.id.namespace, service))
            }));
        }
    }
}

fn is_same(gone: Option<&Slice>, came: Option<&Slice>) -> bool {
    matches!((gone, came), (Some(gone), Some(came)) if Arc::ptr_eq(gone, came))
}
