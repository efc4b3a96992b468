//! One address that takes traffic, with what it is chosen by.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Locality;
use crate::registry::{Address, EndpointState};
use crate::telemetry::RequestStats;
use crate::upstream::Alternates;

/// One address and port of a cluster.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Where it accepts connections.
    pub address: Address,
    /// Where else a connection may be made to when the address takes none.
    pub alternates: Alternates,
    /// `address` as text, for logs and headers.
    pub address_text: Arc<str>,
    /// Relative share of traffic, at least 1.
    pub weight: u32,
    /// `region/zone/subzone`, empty when not known.
    pub locality: Locality,
    /// Network that it is on, empty for the default one.
    pub network: Arc<str>,
    /// Labels that subsets select by.
    pub labels: Arc<BTreeMap<String, String>>,
    /// Live state shared by all workers.
    pub state: Arc<EndpointState>,
    /// Where its requests are counted; endpoints with the same labels share it.
    pub stats: Arc<RequestStats>,
}

impl Endpoint {
    /// What balancers by hash know it as: its address, or the path of a Unix socket.
    pub fn hash_key(&self) -> &str {
        self.address_text
            .strip_prefix("unix://")
            .unwrap_or(&self.address_text)
    }
}
