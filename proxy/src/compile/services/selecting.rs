//! Services that select the WorkloadEntries and pods that a change touches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::catalog::{differences, hostname};
use config_loader::resource::Object;
use config_loader::resource::core::Pod;
use config_loader::resource::istio::{ServiceEntry, WorkloadEntry};

use crate::compile::service::workload_entry::{in_namespace, is_selected};
use crate::compile::services::collector::Names;

/// The services that select a WorkloadEntry as it was or as it is.
#[derive(Default)]
pub(in crate::compile) struct Selecting<'a> {
    /// Namespaces and names of Services.
    pub services: Names<'a>,
    /// Hosts of ServiceEntries.
    pub hosts: BTreeSet<Arc<str>>,
}

impl<'a> Selecting<'a> {
    /// Services that select the WorkloadEntries and pods that differ between both. A change of a service itself is not looked at. Pods are
    /// selected by ServiceEntries only: those of a Service are in its EndpointSlices.
    pub(in crate::compile) fn of_changed(before: &'a ResourceSet, now: &'a ResourceSet) -> Self {
        let mut changed: BTreeMap<&str, Vec<&Object<WorkloadEntry>>> = BTreeMap::new();
        for (gone, came) in differences(&before.workload_entries, &now.workload_entries) {
            for workload in [gone, came].into_iter().flatten() {
                let namespace = changed.entry(&workload.id.namespace).or_default();
                namespace.push(workload);
            }
        }
        let mut selecting = Self::default();
        let pods = pods_by_namespace(before, now);
        let of_pods = |namespace: &str| pods.get(namespace).map_or(&[][..], Vec::as_slice);
        for namespace in pods.keys() {
            changed.entry(namespace).or_default();
        }
        if !before.nodes.same(&now.nodes) || !before.namespaces.same(&now.namespaces) {
            // where pods are may follow from them
            let selecting_pods = now.service_entries.values();
            let selecting_pods = selecting_pods.filter(|one| one.spec.workload_selector.is_some());
            selecting.hosts.extend(selecting_pods.flat_map(hosts));
        }
        for (namespace, workloads) in changed {
            let pods = of_pods(namespace);
            for service in in_namespace(&now.services, namespace) {
                let selector = &service.spec.selector;
                let mut workloads = workloads.iter();
                if !selector.is_empty() && workloads.any(|one| is_selected(one, selector)) {
                    let name = (&*service.id.namespace, &*service.id.name);
                    selecting.services.insert(name);
                }
            }
            for entry in in_namespace(&now.service_entries, namespace) {
                let selector = entry.spec.workload_selector.as_ref();
                let takes_one = |by: &BTreeMap<String, String>| {
                    let mut workloads = workloads.iter();
                    workloads.any(|one| is_selected(one, by))
                        || pods.iter().any(|pod| pod.spec.labels.has_all(by))
                };
                if selector.is_some_and(takes_one) {
                    selecting.hosts.extend(hosts(entry));
                }
            }
        }
        selecting
    }
}

/// The hosts of a ServiceEntry.
fn hosts(entry: &Arc<Object<ServiceEntry>>) -> impl Iterator<Item = Arc<str>> {
    let hosts = entry.spec.hosts.iter();
    hosts.map(|host| hostname::canonical(&host.value).into())
}

/// The pods of the local cluster that differ between both, as they were and as they are, by their namespaces.
fn pods_by_namespace<'a>(
    before: &'a ResourceSet,
    now: &'a ResourceSet,
) -> BTreeMap<&'a str, Vec<&'a Object<Pod>>> {
    let mut changed: BTreeMap<&str, Vec<&Object<Pod>>> = BTreeMap::new();
    if now.service_entries.is_empty() {
        return changed;
    }
    for (gone, came) in differences(&before.pods, &now.pods) {
        for pod in [gone, came].into_iter().flatten() {
            changed.entry(&pod.id.namespace).or_default().push(pod);
        }
    }
    changed
}
