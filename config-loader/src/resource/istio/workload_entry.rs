//! WorkloadEntry, checked: as a resource, or as an endpoint of a ServiceEntry.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{EndpointAddress, Locality};
use crate::span::Line;

/// Checked WorkloadEntry.
#[derive(Clone, Debug)]
pub struct WorkloadEntry {
    /// Address of the workload.
    pub address: EndpointAddress,
    /// Port numbers by name of the service's port. A missing name keeps the service's number.
    pub ports: BTreeMap<Arc<str>, u16>,
    /// Labels of the workload. Endpoints of a ServiceEntry with equal labels share them.
    pub labels: Arc<BTreeMap<String, String>>,
    /// Network of the workload; empty for the proxy's own network.
    pub network: Arc<str>,
    /// Locality of the workload. If empty, the label `istio-locality` is used.
    pub locality: Locality,
    /// Load balancing weight, relative to other endpoints.
    ///
    /// Unit: none, > 0. Default: 1, also for 0.
    pub weight: u32,
    /// Service account that identifies the workload; empty if unknown.
    pub service_account: Arc<str>,
    /// Source line within the document.
    pub line: Line,
}

impl Default for WorkloadEntry {
    fn default() -> WorkloadEntry {
        WorkloadEntry {
            address: EndpointAddress::Network,
            ports: BTreeMap::new(),
            labels: Arc::default(),
            network: Arc::default(),
            locality: Locality::default(),
            weight: 1,
            service_account: Arc::default(),
            line: Line::default(),
        }
    }
}
