//! DestinationRule as written.

use serde::Deserialize;

use super::TrafficPolicy;
use crate::raw::{Field, Map};

/// DestinationRule as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DestinationRule {
    /// Host of the service, as a short name, a full name or a wildcard; required.
    pub host: Field<String>,
    /// Traffic policy for the whole service.
    pub traffic_policy: Field<TrafficPolicy>,
    /// Subsets of the service, with unique names.
    pub subsets: Field<Vec<Field<Subset>>>,
    /// Namespaces that may use the rule: `*`, `.` (its own) or names. Default: all.
    pub export_to: Field<Vec<Field<String>>>,
    /// Client workloads in the rule's namespace that the rule applies to. Default: all clients.
    pub workload_selector: Field<LabelSelector>,
}

/// Subset of a service: an entry of `subsets`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Subset {
    /// Name of the subset, by which routes refer to it; required.
    pub name: Field<String>,
    /// Labels of the subset's endpoints. Default: all endpoints.
    pub labels: Field<Map<String>>,
    /// Traffic policy of the subset, whose blocks replace those of the rule.
    pub traffic_policy: Field<TrafficPolicy>,
}

/// `workloadSelector` of a DestinationRule.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels that a workload must have.
    pub match_labels: Field<Map<String>>,
}
