//! Workload that resources with a selector are matched against.

use std::collections::BTreeMap;

/// Properties of a workload by which resources select it.
#[derive(Clone, Copy, Debug)]
pub struct Workload<'a> {
    /// Namespace of the workload.
    pub namespace: &'a str,
    /// Labels of the workload.
    pub labels: &'a BTreeMap<String, String>,
    /// Root namespace, which holds mesh-wide defaults.
    pub root_namespace: &'a str,
}

impl Workload<'_> {
    /// Whether the workload has all labels of the selector.
    pub fn is_selected_by(&self, selector: &BTreeMap<String, String>) -> bool {
        selector
            .iter()
            .all(|(key, value)| self.labels.get(key) == Some(value))
    }
}
