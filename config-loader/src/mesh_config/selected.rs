//! Objects in namespaces that `discoverySelectors` match.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::core::SelectorExt as _;

use crate::resource::ResourceSet;
use crate::resource::istio::MeshConfig;

/// Label that every namespace has: its name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// Returns the objects of selected namespaces, of the namespaces `always`, and those without a namespace. All are
/// selected without selectors, and if no namespace is known.
pub fn selected(resources: &ResourceSet, by: &MeshConfig, always: &[&str]) -> ResourceSet {
    if by.namespaces.is_empty() || resources.namespaces.is_empty() {
        return resources.clone();
    }
    let namespaces = selected_namespaces(resources, by);
    resources.of_namespaces(|namespace| {
        always.contains(&namespace) || namespaces.get(namespace).copied().unwrap_or(false)
    })
}

/// Returns the known namespaces, and whether they are selected.
pub fn selected_namespaces(resources: &ResourceSet, by: &MeshConfig) -> BTreeMap<Arc<str>, bool> {
    let own = resources.namespaces.values();
    let own = own.filter(|object| object.spec.source_cluster.is_none());
    let namespaces = own.map(|object| {
        let labels = object.spec.labels.iter();
        let mut labels: BTreeMap<String, String> = labels
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect();
        labels.insert(NAMESPACE_NAME.to_owned(), object.id.name.to_string());
        let is_selected = by.namespaces.iter().any(|one| one.matches(&labels));
        (Arc::clone(&object.id.name), is_selected)
    });
    namespaces.collect()
}
