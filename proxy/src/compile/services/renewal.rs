//! Services after a change of Services, EndpointSlices, ServiceEntries and WorkloadEntries: only touched services are compiled again.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use config_loader::catalog::HostIndex;

use crate::compile::service::Service;
use crate::compile::services::collector::{Collector, Names};
use crate::compile::services::selecting::Selecting;
use crate::compile::services::sources::ServiceResources;
use crate::compile::services::{Services, imports, kube, outside};
use crate::identity::Identity;

/// The hosts whose services a change touches.
#[derive(Debug, Default)]
pub(in crate::compile) struct Touched {
    /// Hosts of services with other endpoints or settings.
    pub changed: BTreeSet<Arc<str>>,
    /// Hosts of services that came, went, or have other ports: what names them is compiled again.
    pub reshaped: BTreeSet<Arc<str>>,
    /// Whether these may be behind aliases.
    pub has_aliases: bool,
}

impl Touched {
    /// Replaces the service of a host, and notes the host.
    fn replace(
        &mut self,
        by_host: &mut HostIndex<Arc<Service>>,
        host: Arc<str>,
        new: Option<Arc<Service>>,
    ) {
        let hosts = match (by_host.get(&host), &new) {
            (Some(old), Some(new)) if new.is_shaped_like(old) => &mut self.changed,
            (None, None) => return,
            _ => &mut self.reshaped,
        };
        hosts.insert(Arc::clone(&host));
        match new {
            Some(new) => drop(by_host.insert(host, new)),
            None => drop(by_host.remove(&host)),
        }
    }
}

impl Services {
    /// The services after a change from `before` to `now`, in which of what describes services only Services, EndpointSlices,
    /// ServiceEntries and WorkloadEntries differ, and `names` are those of the Services that slices touch. `None` if addresses
    /// that represent services may have changed: of several services with one address the oldest has it, so that all have to
    /// be looked at.
    pub(in crate::compile) fn renewed<'a>(
        mut self,
        (before, now): (&'a ServiceResources, &'a ServiceResources),
        identity: &Identity,
        mut names: Names<'a>,
    ) -> Option<(Self, Touched)> {
        self.slices
            .update(&before.endpoint_slices, &now.endpoint_slices);
        self.selections
            .update(&before.workload_entries, &now.workload_entries);
        let mut hosts = self.catalog.update(before, now);
        let selecting = Selecting::of_changed(before, now);
        names.extend(selecting.services);
        hosts.extend(selecting.hosts);
        // what Destinations say of services is found by looking at all of them
        if !names.is_empty() && !now.destinations.is_empty() {
            return None;
        }
        let is_one = |service: &Service| {
            !service.is_outside && names.contains(&(&*service.namespace, &*service.name))
        };
        if !names.is_empty() {
            let old = self.by_host.iter().filter(|(_, service)| is_one(service));
            hosts.extend(old.map(|(host, _)| Arc::clone(host)));
        }
        let mut collector = Collector {
            resources: now,
            identity,
            domain: &identity.domain,
            members: self.members,
            slices: &self.slices,
            selections: RefCell::new(self.selections),
            only: Some(&names),
            by_host: HashMap::new(),
            claims: Vec::new(),
        };
        if !names.is_empty() {
            kube::collect(&mut collector);
            imports::collect(&mut collector);
        }
        hosts.extend(collector.by_host.keys().cloned());
        let mut touched = Touched::default();
        for host in hosts {
            let old = self.by_host.get(&host);
            let new = match collector.take(&host) {
                Some(draft) => Some(draft),
                // a service of a cluster that the change does not touch has the host
                None if old.is_some_and(|old| !old.is_outside && !is_one(old)) => continue,
                None => {
                    let entry = self.catalog.get(&host);
                    let found = entry.and_then(|entry| outside::of_host(&collector, &host, entry));
                    match found {
                        Some(found) if !found.addresses.is_empty() => return None,
                        found => found.map(|found| found.draft),
                    }
                }
            };
            if !self.vips.of(&host).is_empty() && old.is_some_and(|old| old.is_outside) {
                return None;
            }
            let new = new.map(|draft| Arc::new(draft.finish()));
            touched.replace(&mut self.by_host, host, new);
        }
        self.members = collector.members;
        self.selections = collector.selections.into_inner();
        if !touched.reshaped.is_empty() {
            touched.has_aliases = self.iter().any(|service| service.alias_of.is_some());
        }
        Some((self, touched))
    }
}
