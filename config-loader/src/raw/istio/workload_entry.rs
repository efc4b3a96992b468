//! WorkloadEntry as written.

use serde::Deserialize;

use crate::raw::{Field, Map};

/// WorkloadEntry as written, on its own or as an endpoint of a ServiceEntry.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadEntry {
    /// `address`
    pub address: Field<String>,
    /// `ports`
    pub ports: Field<Map<i64>>,
    /// `labels`
    pub labels: Field<Map<String>>,
    /// `network`
    pub network: Field<String>,
    /// `locality`
    pub locality: Field<String>,
    /// `weight`
    pub weight: Field<i64>,
    /// `serviceAccount`
    pub service_account: Field<String>,
}
