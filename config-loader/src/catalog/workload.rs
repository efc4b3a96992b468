//! A workload, for which resources with a selector count or do not.

use std::collections::BTreeMap;

/// A workload, as far as it matters which resources are for it.
#[derive(Clone, Copy, Debug)]
pub struct Workload<'a> {
    /// Namespace of the object.
    pub namespace: &'a str,
    /// Its labels.
    pub labels: &'a BTreeMap<String, String>,
    /// The namespace that holds defaults of the mesh.
    pub root_namespace: &'a str,
}

impl Workload<'_> {
    /// Whether a selector takes it in.
    pub fn is_selected_by(&self, selector: &BTreeMap<String, String>) -> bool {
        selector
            .iter()
            .all(|(key, value)| self.labels.get(key) == Some(value))
    }
}
