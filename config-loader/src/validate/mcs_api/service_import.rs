//! ServiceImport of the upstream API: like that of flomesh, but its endpoints are in EndpointSlices labeled with their
//! cluster.

use crate::diagnostic::codes::multicluster::SI015;
use crate::raw::mcs_api as raw;
use crate::raw::{Field, flomesh};
use crate::resource::flomesh::ServiceImport;
use crate::validate::core::{DISTRIBUTIONS, TRAFFIC_POLICIES};
use crate::validate::flomesh::import;
use crate::validate::{Check, api, api_status};

/// Largest number of addresses: one per IP family.
const IPS_MAX: usize = 2;

/// Values of `status.endpointSliceObjects`, which is informational.
const SLICES: [(&str, ()); 2] = [("Absent", ()), ("Present", ())];

/// Checks a ServiceImport.
pub fn service_import(raw: &raw::ServiceImport, check: &mut Check<'_>) -> ServiceImport {
    let same = flomesh::ServiceImport {
        spec: raw.spec.map(spec),
        status: raw.status.map(status),
    };
    let mut checked = import(&same, IPS_MAX, check);
    if let Some(spec) = raw.spec.get() {
        let distribution = api::enum_of(&spec.traffic_distribution, &DISTRIBUTIONS, check);
        checked.traffic_distribution = distribution.unwrap_or_default();
        api::enum_of(&spec.internal_traffic_policy, &TRAFFIC_POLICIES, check);
    }
    if let Some(status) = raw.status.get() {
        api_status::conditions(&status.conditions, SI015, check);
        api::enum_of(&status.endpoint_slice_objects, &SLICES, check);
    }
    checked
}

fn spec(raw: &raw::ServiceImportSpec) -> flomesh::ServiceImportSpec {
    flomesh::ServiceImportSpec {
        ports: raw.ports.map(|ports| {
            let ports = ports.iter();
            ports.map(|one| one.map(port)).collect()
        }),
        ips: raw.ips.clone(),
        import_type: raw.import_type.clone(),
        session_affinity: raw.session_affinity.clone(),
        session_affinity_config: raw.session_affinity_config.clone(),
        service_account_name: Field::default(),
    }
}

fn port(raw: &raw::ServicePort) -> flomesh::ServicePort {
    flomesh::ServicePort {
        name: raw.name.clone(),
        protocol: raw.protocol.clone(),
        app_protocol: raw.app_protocol.clone(),
        port: raw.port.clone(),
        endpoints: Field::present(Vec::new(), raw.port.span()),
    }
}

fn status(raw: &raw::ServiceImportStatus) -> flomesh::ServiceImportStatus {
    let cluster = |raw: &raw::ClusterStatus| flomesh::ClusterStatus {
        cluster: raw.cluster.clone(),
        addresses: Field::default(),
    };
    flomesh::ServiceImportStatus {
        clusters: raw.clusters.map(|clusters| {
            let clusters = clusters.iter();
            clusters.map(|one| one.map(cluster)).collect()
        }),
    }
}

#[cfg(test)]
mod tests;
