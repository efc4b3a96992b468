//! Workloads by IP address, from EndpointSlices, ServiceEntries and WorkloadEntries.

use std::collections::HashMap;
use std::net::IpAddr;

use config_loader::ResourceSet;
use config_loader::resource::core::Host;
use config_loader::resource::istio::EndpointAddress;

use crate::telemetry::SourceWorkload;

/// Returns the workloads by address. The name of a pod's workload is that of its controller, else that of the service
/// with this endpoint.
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
