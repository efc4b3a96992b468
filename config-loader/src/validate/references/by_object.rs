//! Diagnostics that are kept per object, and computed again for the objects that a change affects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::resolver::{Resolver, destinations};
use crate::catalog::{DefaultDomain, HostIndex, differences, hostname, slices_of_changed};
use crate::diagnostic::Diagnostic;
use crate::kind::Name;
use crate::resource::istio::{Destination, DestinationRule, HttpAction, VirtualService};
use crate::resource::{Object, Objects, ResourceSet};

/// Diagnostics of the objects of one kind. An object without diagnostics has no entry.
#[derive(Debug, Default)]
pub(super) struct ByObject(BTreeMap<Name, OfObject>);

#[derive(Debug)]
struct OfObject {
    found: Vec<Diagnostic>,
    /// Whether the object names an unknown host. Its diagnostic may suggest any known host, and the number of
    /// suggestions is limited, so it is computed again with every change.
    names_unknown: bool,
}

/// Predicate: whether a change affects an object that did not change itself.
type IsTouched<'a, T> = dyn Fn(&Object<T>) -> bool + 'a;

impl ByObject {
    /// Applies a change. Checks new, changed, and affected objects in the order of their names. `check` also returns
    /// whether an object names an unknown host.
    pub(super) fn update<T>(
        &mut self,
        before: &Objects<T>,
        now: &Objects<T>,
        touched: Option<&IsTouched<'_, T>>,
        mut check: impl FnMut(&Object<T>) -> (Vec<Diagnostic>, bool),
    ) {
        let mut stale: BTreeSet<Name> = BTreeSet::new();
        for (gone, came) in differences(before, now) {
            let object = came.or(gone);
            stale.extend(object.map(|object| object.id.to_name()));
        }
        if let Some(is_touched) = touched {
            let touched = now.iter().filter(|(_, object)| is_touched(object));
            stale.extend(touched.map(|(name, _)| name.clone()));
        }
        if touched.is_none() && stale.is_empty() {
            return;
        }
        let unknown = self.0.iter().filter(|(_, of)| of.names_unknown);
        stale.extend(unknown.map(|(name, _)| name.clone()));
        for name in stale {
            let (found, names_unknown) = match now.get(&name) {
                Some(object) => check(object),
                None => (Vec::new(), false),
            };
            match found.is_empty() {
                true => self.0.remove(&name),
                false => self.0.insert(
                    name,
                    OfObject {
                        found,
                        names_unknown,
                    },
                ),
            };
        }
    }

    pub(super) fn found(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.values().flat_map(|of| &of.found)
    }
}

/// Hosts and objects that a change affects.
pub(super) struct Touched {
    /// Hosts whose description, endpoints or rules changed.
    pub(super) hosts: HostIndex<()>,
    /// Whether any host may be affected.
    pub(super) any_host: bool,
    /// Whether a Gateway changed.
    gateways: bool,
    virtual_services: BTreeSet<Name>,
}

impl Touched {
    /// Returns the difference between two sets. `hosts` are those whose description or rules changed.
    pub(super) fn new(
        before: &ResourceSet,
        now: &ResourceSet,
        hosts: HostIndex<()>,
        domain: &str,
    ) -> Self {
        let mut hosts = hosts;
        for (gone, came) in differences(&before.endpoint_slices, &now.endpoint_slices) {
            for slice in [gone, came].into_iter().flatten() {
                if let Some(name) = slice.service_name() {
                    let host = hostname::of_service(name, &slice.id.namespace, domain);
                    hosts.insert(host, ());
                }
            }
        }
        for slice in slices_of_changed(before, now) {
            if let Some(name) = slice.service_name() {
                let host = hostname::of_service(name, &slice.id.namespace, domain);
                hosts.insert(host, ());
            }
        }
        let selects_pods = || {
            let mut entries = now.service_entries.values();
            entries.any(|entry| entry.spec.workload_selector.is_some())
        };
        let changed = differences(&before.virtual_services, &now.virtual_services);
        let changed = changed.filter_map(|(gone, came)| came.or(gone));
        Self {
            hosts,
            // WorkloadEntries and pods are endpoints of hosts that select them; Destinations require subsets
            any_host: !before.workload_entries.same(&now.workload_entries)
                || before.pods.is_empty() != now.pods.is_empty()
                || !before.pods.same(&now.pods) && selects_pods()
                || !before.destinations.same(&now.destinations),
            gateways: !before.gateways.same(&now.gateways),
            virtual_services: changed.map(|object| object.id.to_name()).collect(),
        }
    }

    /// Whether diagnostics about unchanged VirtualServices or DestinationRules may differ.
    pub(super) fn reaches_others(&self) -> bool {
        self.any_host
            || self.gateways
            || !self.hosts.is_empty()
            || !self.virtual_services.is_empty()
    }

    fn has(&self, host: &str, domain: &str) -> bool {
        // rules for a service hold for it among clusters, too
        let native = || hostname::of_domain(host, domain);
        self.hosts.find(host).is_some()
            || native().is_some_and(|native| self.hosts.find(&native).is_some())
    }

    /// Whether the change affects a VirtualService: its gateways, hosts of its destinations, or its delegates.
    pub(super) fn has_routes(
        &self,
        object: &Object<VirtualService>,
        resolver: Resolver<'_>,
    ) -> bool {
        let (naming, namespace) = (resolver.naming, &object.id.namespace);
        let is_host = |host: &Arc<str>| {
            let of_cluster_set = || match naming.default_domain {
                DefaultDomain::Cluster => None,
                DefaultDomain::ClusterSet => hostname::short_of_cluster_set(host, namespace),
            };
            self.has(&naming.complete(host, namespace), &naming.domain)
                || of_cluster_set().is_some_and(|host| self.has(&host, &naming.domain))
        };
        let is_alias = |to: &Destination| {
            let mut names = resolver.aliases(object, to).into_iter();
            names.any(|name| self.has(&name, &naming.domain))
        };
        let delegates = || {
            let mut rules = object.spec.http.iter();
            rules.any(|rule| match &rule.action {
                HttpAction::Delegate(delegate) => self.virtual_services.contains(&delegate.name),
                _ => false,
            })
        };
        self.any_host
            || self.gateways
            || !self.hosts.is_empty()
                && destinations(object).any(|to| is_host(&to.host) || is_alias(to))
            || !self.virtual_services.is_empty() && delegates()
    }

    /// Whether the change affects the host of a DestinationRule.
    pub(super) fn has_rule(&self, object: &Object<DestinationRule>, domain: &str) -> bool {
        let host = object.full_host(domain);
        let covers = || {
            let mut hosts = self.hosts.iter();
            host.starts_with('*') && hosts.any(|(touched, _)| hostname::is_subset(touched, &host))
        };
        self.any_host || !self.hosts.is_empty() && (self.has(&host, domain) || covers())
    }
}
