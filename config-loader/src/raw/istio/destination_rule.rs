//! DestinationRule as written.

use serde::Deserialize;

use super::TrafficPolicy;
use crate::raw::{Field, Map};

/// DestinationRule as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DestinationRule {
    /// `host`
    pub host: Field<String>,
    /// `trafficPolicy`
    pub traffic_policy: Field<TrafficPolicy>,
    /// `subsets`
    pub subsets: Field<Vec<Field<Subset>>>,
    /// `exportTo`
    pub export_to: Field<Vec<Field<String>>>,
    /// `workloadSelector`
    pub workload_selector: Field<LabelSelector>,
}

/// An entry of `subsets`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Subset {
    /// `name`
    pub name: Field<String>,
    /// `labels`
    pub labels: Field<Map<String>>,
    /// `trafficPolicy`
    pub traffic_policy: Field<TrafficPolicy>,
}

/// `workloadSelector` of a DestinationRule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// `matchLabels`
    pub match_labels: Field<Map<String>>,
}
