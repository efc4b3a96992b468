//! Which workloads are at which addresses, as EndpointSlices, ServiceEntries and WorkloadEntries say.

use std::collections::HashMap;
use std::net::IpAddr;

use config_loader::ResourceSet;
use config_loader::resource::core::Host;
use config_loader::resource::istio::EndpointAddress;

use crate::telemetry::SourceWorkload;

/// Workloads by their addresses. A pod is known by what controls it, else by the service that it is an endpoint of.
pub(super) fn workloads(set: &ResourceSet) -> HashMap<IpAddr, SourceWorkload> {
    let mut found = HashMap::new();
    for entry in set.service_entries.values() {
        for endpoint in &entry.spec.endpoints {
            if let EndpointAddress::Ip(ip) = endpoint.address {
                let name = endpoint
                    .labels
                    .get("app")
                    .map_or(&*entry.id.name, |app| app);
                put(&mut found, ip, &entry.id.namespace, name);
            }
        }
    }
    for entry in set.workload_entries.values() {
        if let EndpointAddress::Ip(ip) = entry.spec.address {
            put(&mut found, ip, &entry.id.namespace, &entry.id.name);
        }
    }
    for slice in set.endpoint_slices.values() {
        for endpoint in &slice.spec.endpoints {
            let (own, service) = (&*slice.id.namespace, slice.service_name());
            let owner = endpoint.owner_from(own);
            let (namespace, name) = owner.unwrap_or((own, service.unwrap_or(&slice.id.name)));
            if let Host::Ip(ip) = endpoint.address {
                put(&mut found, ip, namespace, name);
            }
        }
    }
    found
}

fn put(found: &mut HashMap<IpAddr, SourceWorkload>, ip: IpAddr, namespace: &str, name: &str) {
    let workload = SourceWorkload {
        namespace: namespace.into(),
        name: name.into(),
    };
    found.insert(ip.to_canonical(), workload);
}
