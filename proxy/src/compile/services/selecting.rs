//! Which services select the WorkloadEntries that a change touches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::catalog::{differences, hostname};
use config_loader::resource::Object;
use config_loader::resource::istio::WorkloadEntry;

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
    /// Those of the WorkloadEntries that differ between both. A change of a service itself is not looked at.
    pub(in crate::compile) fn of_changed(before: &ResourceSet, now: &'a ResourceSet) -> Self {
        let mut changed: BTreeMap<&str, Vec<&Object<WorkloadEntry>>> = BTreeMap::new();
        for (gone, came) in differences(&before.workload_entries, &now.workload_entries) {
            for workload in [gone, came].into_iter().flatten() {
                let namespace = changed.entry(&workload.id.namespace).or_default();
                namespace.push(workload);
            }
        }
        let mut selecting = Self::default();
        for (namespace, workloads) in changed {
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
                let mut workloads = workloads.iter();
                if selector.is_some_and(|by| workloads.any(|one| is_selected(one, by))) {
                    let hosts = entry.spec.hosts.iter();
                    let hosts = hosts.map(|host| hostname::canonical(&host.value).into());
                    selecting.hosts.extend(hosts);
                }
            }
        }
        selecting
    }
}
