//! WorkloadEntry, checked: on its own, or as an endpoint of a ServiceEntry.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{EndpointAddress, Locality};
use crate::span::Line;

/// A checked WorkloadEntry.
#[derive(Clone, Debug)]
pub struct WorkloadEntry {
    /// Where it is.
    pub address: EndpointAddress,
    /// Its ports, by the names of the service's; a name that is missing keeps the service's.
    pub ports: BTreeMap<Arc<str>, u16>,
    /// Its labels; endpoints of a ServiceEntry with the same labels share them.
    pub labels: Arc<BTreeMap<String, String>>,
    /// Its network; empty for the proxy's own.
    pub network: Arc<str>,
    /// Where in the world it is. Empty if that was not written: then the label `istio-locality` may tell.
    pub locality: Locality,
    /// Its share of the traffic, relative to other endpoints.
    ///
    /// Unit: none, > 0. Default: 1, also for 0.
    pub weight: u32,
    /// The account by which it proves its identity; empty if unknown.
    pub service_account: Arc<str>,
    /// Where it was written.
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
