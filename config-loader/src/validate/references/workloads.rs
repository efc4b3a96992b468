//! Known labels of workloads.

use std::collections::BTreeMap;

use crate::resource::ResourceSet;
use crate::resource::core::LabelText;

type Labels = BTreeMap<String, String>;

/// Workloads by namespace. A Pod or a WorkloadEntry has all labels of its workload; a Service and its EndpointSlices
/// have some of them.
pub(super) struct Workloads<'a>(BTreeMap<&'a str, Vec<Known<'a>>>);

/// Known labels of one workload, or of several.
struct Known<'a> {
    labels: [Option<&'a Labels>; 2],
    pod: Option<&'a LabelText>,
    /// Whether the workloads have no other labels.
    is_all: bool,
}

impl Known<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        let mut labels = self.labels.iter().flatten();
        labels
            .find_map(|labels| labels.get(key))
            .map(|value| &**value)
            .or_else(|| self.pod?.get(key))
    }

    /// Whether a selector may select the workloads.
    fn may_have(&self, selector: &Labels) -> bool {
        selector.iter().all(|(key, value)| match self.get(key) {
            Some(known) => known == value,
            None => !self.is_all,
        })
    }

    /// Whether a selector certainly selects the workloads.
    fn has(&self, selector: &Labels) -> bool {
        selector
            .iter()
            .all(|(key, value)| self.get(key) == Some(value))
    }
}

impl<'a> Workloads<'a> {
    pub(super) fn new(set: &'a ResourceSet) -> Self {
        let mut workloads: BTreeMap<&str, Vec<Known<'_>>> = BTreeMap::new();
        for entry in set.workload_entries.values() {
            let of_namespace = workloads.entry(&entry.id.namespace).or_default();
            // labels of the spec count before those of the object
            of_namespace.push(Known {
                labels: [Some(&entry.spec.labels), Some(&entry.labels)],
                pod: None,
                is_all: true,
            });
        }
        for pod in set.pods.values() {
            let of_namespace = workloads.entry(&pod.id.namespace).or_default();
            of_namespace.push(Known {
                labels: [None, None],
                pod: Some(&pod.spec.labels),
                is_all: true,
            });
        }
        let mut selectors = BTreeMap::new();
        for service in set.services.values() {
            let name = (&*service.id.namespace, &*service.id.name);
            selectors.insert(name, &service.spec.selector);
            if !service.spec.selector.is_empty() {
                let of_namespace = workloads.entry(&service.id.namespace).or_default();
                of_namespace.push(Known {
                    labels: [Some(&service.spec.selector), None],
                    pod: None,
                    is_all: false,
                });
            }
        }
        for slice in set.endpoint_slices.values() {
            let Some(name) = slice.service_name() else {
                continue;
            };
            let selector = selectors.get(&(&*slice.id.namespace, name));
            let of_namespace = workloads.entry(&slice.id.namespace).or_default();
            of_namespace.push(Known {
                labels: [selector.copied(), Some(&slice.labels)],
                pod: None,
                is_all: false,
            });
        }
        Self(workloads)
    }

    fn of(&self, namespace: &str) -> impl Iterator<Item = &Known<'a>> {
        self.0.get(namespace).into_iter().flatten()
    }

    /// Whether a workload of the namespace is known.
    pub(super) fn has_any(&self, namespace: &str) -> bool {
        self.0.contains_key(namespace)
    }

    /// Whether no workload of any namespace is known.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the namespaces with known workloads.
    pub(super) fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.0.keys().copied()
    }

    /// Whether a selector may select a known workload of the namespace.
    pub(super) fn may_select(&self, namespace: &str, selector: &Labels) -> bool {
        self.of(namespace).any(|known| known.may_have(selector))
    }

    /// Whether both selectors select the same known workload of the namespace.
    pub(super) fn select_one(&self, namespace: &str, one: &Labels, other: &Labels) -> bool {
        self.of(namespace)
            .any(|known| known.has(one) && known.has(other))
    }

    /// Returns the known values of a label in a namespace.
    pub(super) fn values(&self, namespace: &str, key: &str) -> impl Iterator<Item = &str> {
        self.of(namespace).filter_map(move |known| known.get(key))
    }
}
