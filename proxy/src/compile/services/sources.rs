//! The resources that services are made from.
//!
//! Services are kept from one compile to the next, so that what they read and what makes them stale must be the same. Here
//! both are said in one place: a kind that [`ServiceResources::of`] leaves out is empty for all that collects services.

use std::ops::Deref;

use config_loader::ResourceSet;
use config_loader::catalog::differences;
use config_loader::resource::Object;
use config_loader::resource::istio::VirtualService;

/// The resources of the kinds that services are made from. All other kinds are empty.
pub(in crate::compile) struct ServiceResources(ResourceSet);

impl Deref for ServiceResources {
    type Target = ResourceSet;

    fn deref(&self) -> &ResourceSet {
        &self.0
    }
}

impl ServiceResources {
    /// Takes these kinds from a set.
    pub(in crate::compile) fn of(set: &ResourceSet) -> Self {
        let mut destinations = set.destinations.values();
        let has_shifts = destinations.any(|one| !one.spec.status.required_subsets.is_empty());
        // every field is named, so that a new kind is not forgotten
        let ResourceSet {
            revision: _,
            virtual_services,
            destination_rules: _,
            gateways: _,
            peer_authentications: _,
            authorization_policies: _,
            request_authentications: _,
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
            endpoint_slices,
            pods,
            nodes,
            namespaces,
            secrets: _,
            withheld,
        } = set.clone();
        Self(ResourceSet {
            // a shift counts only for a host that no VirtualService routes
            virtual_services: match has_shifts {
                true => virtual_services,
                false => Default::default(),
            },
            service_entries,
            workload_entries,
            clusters,
            global_traffic_policies,
            service_imports,
            service_exports,
            multi_cluster_services,
            destinations,
            services,
            endpoint_slices,
            pods,
            nodes,
            namespaces,
            withheld,
            ..ResourceSet::default()
        })
    }

    /// Whether services of `before` can be followed one by one: nothing that any of them may follow from is different, but for
    /// Services, EndpointSlices, ServiceEntries, WorkloadEntries, Pods, Nodes and Namespaces.
    pub(in crate::compile) fn is_renewable_from(&self, before: &Self) -> bool {
        // every field is named, so that a new kind is not forgotten
        let ResourceSet {
            revision: _,
            virtual_services,
            destination_rules: _,
            gateways: _,
            peer_authentications: _,
            authorization_policies: _,
            request_authentications: _,
            sidecars: _,
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
        } = &**self;
        let mut routes = differences(&before.virtual_services, virtual_services);
        let routes_same_hosts = routes.all(|change| match change {
            (Some(gone), Some(came)) => hosts(gone).eq(hosts(came)),
            _ => false,
        });
        routes_same_hosts
            && before.clusters.same(clusters)
            && before.global_traffic_policies.same(global_traffic_policies)
            && before.service_imports.same(service_imports)
            && before.service_exports.same(service_exports)
            && before.multi_cluster_services.same(multi_cluster_services)
            && before.destinations.same(destinations)
            && before.withheld == *withheld
    }
}

/// The hosts of a VirtualService as they are written: its namespace is the same in all versions.
fn hosts(object: &Object<VirtualService>) -> impl Iterator<Item = &str> {
    object.spec.hosts.iter().map(|host| &*host.value)
}
