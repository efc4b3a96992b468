//! DestinationRule, checked.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::TrafficPolicy;
use crate::resource::{ExportTo, HealthChecked};
use crate::span::Line;

/// A checked DestinationRule.
#[derive(Clone, Debug, Default)]
pub struct DestinationRule {
    /// The service that it is for, as written; may be a wildcard.
    pub host: Arc<str>,
    /// Where `host` was written.
    pub host_line: Line,
    /// What holds for all of the service.
    pub traffic_policy: TrafficPolicy,
    /// Named parts of the service. Names are unique.
    pub subsets: Vec<Subset>,
    /// Who may use it.
    pub export_to: ExportTo,
    /// The client workloads of the resource's own namespace that it is for; none for every client.
    pub workload_selector: Option<BTreeMap<String, String>>,
    /// Whether and how the service's endpoints are health-checked.
    pub health_check: HealthChecked,
}

impl DestinationRule {
    /// The subset of that name.
    pub fn subset(&self, name: &str) -> Option<&Subset> {
        self.subsets.iter().find(|subset| &*subset.name == name)
    }
}

/// An entry of `subsets`.
#[derive(Clone, Debug, Default)]
pub struct Subset {
    /// Its name.
    pub name: Arc<str>,
    /// The labels of its endpoints; empty for all.
    pub labels: BTreeMap<String, String>,
    /// What holds for this part in place of the rule's own.
    pub traffic_policy: TrafficPolicy,
    /// Where it was written.
    pub line: Line,
}
