//! WorkloadEntry as written.

use serde::Deserialize;

use crate::raw::{Field, Map};

/// WorkloadEntry as written, on its own or as an endpoint of a ServiceEntry.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadEntry {
    /// Address of the workload: an IP address, a DNS name or `unix://PATH`.
    pub address: Field<String>,
    /// Port numbers by name of the service's port. A missing name keeps the service's number.
    pub ports: Field<Map<i64>>,
    /// Labels of the workload.
    pub labels: Field<Map<String>>,
    /// Network of the workload. Default: the proxy's own network.
    pub network: Field<String>,
    /// Locality of the workload, `REGION/ZONE/SUBZONE`. Default: the label `istio-locality`.
    pub locality: Field<String>,
    /// Load balancing weight relative to other endpoints. Default: 1.
    pub weight: Field<i64>,
    /// Service account that identifies the workload.
    pub service_account: Field<String>,
}
