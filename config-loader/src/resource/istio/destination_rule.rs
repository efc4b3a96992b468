//! DestinationRule, checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::TrafficPolicy;
use crate::resource::{ExportTo, HealthChecked};
use crate::span::Line;

/// Checked DestinationRule.
#[derive(Clone, Debug, Default)]
pub struct DestinationRule {
    /// Host of the service, as written; may be a wildcard.
    pub host: Arc<str>,
    /// Source line of `host`.
    pub host_line: Line,
    /// Traffic policy for the whole service.
    pub traffic_policy: TrafficPolicy,
    /// Subsets of the service. Names are unique.
    pub subsets: Vec<Subset>,
    /// Namespaces that may use the resource (`exportTo`).
    pub export_to: ExportTo,
    /// Labels of the client workloads, in the resource's own namespace, that the rule applies to; `None` for every
    /// client.
    pub workload_selector: Option<BTreeMap<String, String>>,
    /// Active health checking of the service's endpoints.
    pub health_check: HealthChecked,
}

impl DestinationRule {
    /// Returns the subset with this name.
    pub fn subset(&self, name: &str) -> Option<&Subset> {
        self.subsets.iter().find(|subset| &*subset.name == name)
    }
}

/// Subset of a service: an entry of `subsets`.
#[derive(Clone, Debug, Default)]
pub struct Subset {
    /// Name of the subset.
    pub name: Arc<str>,
    /// Labels of the subset's endpoints; empty for all.
    pub labels: BTreeMap<String, String>,
    /// Traffic policy of the subset, which overrides the rule's policy.
    pub traffic_policy: TrafficPolicy,
    /// Source line within the document.
    pub line: Line,
}
