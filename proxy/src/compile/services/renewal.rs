//! Update of services after a change: each unit is rebuilt if a resource that it read has changed; no other is touched.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use config_loader::catalog::{Changes, View};
use config_loader::resource::core::Service as Kube;
use config_loader::resource::flomesh::ServiceImport;
use config_loader::resource::gloo::Destination;

use crate::compile::members::Members;
use crate::compile::service::Service;
use crate::compile::services::collector::{Collector, Draft, Followed};
use crate::compile::services::reads::{DESCRIBED, EVERY, MEMBERS, RULES, SERVICE, SHAPE, VIPS};
use crate::compile::services::unit::{Made, Renewal, Unit};
use crate::compile::services::vips::Vips;
use crate::compile::services::{Services, gloo, imports, kube, outside};

/// Hosts, each with the cause of its change.
type Hosts = BTreeMap<Arc<str>, Arc<str>>;

impl Services {
    /// Applies a change, and adds its effects to `changes`.
    pub(in crate::compile) fn follow(&mut self, renewal: Renewal<'_>, changes: &mut Changes) {
        let mut hosts = self.follow_indexes(renewal, changes);
        self.renew_members(renewal, changes);
        let mut claims_differ = self.renew_clusters(renewal, changes, &mut hosts);
        for (unit, why) in self.readers.touched(changes) {
            if let Unit::Outside(host) = unit {
                hosts.entry(host).or_insert(why);
            }
        }
        for (host, why) in hosts {
            claims_differ |= self.renew_service_without_clusters(renewal, &host, &why, changes);
        }
        if claims_differ {
            let claims = self.units.values().flat_map(|made| &made.claims);
            let vips = Vips::assign(claims.collect());
            if vips != self.vips {
                self.vips = vips;
                changes.add(VIPS, &"addresses of services".into());
            }
        }
    }

    /// Returns the hosts whose description changed.
    fn follow_indexes(&mut self, renewal: Renewal<'_>, changes: &mut Changes) -> Hosts {
        let Renewal { before, now, .. } = renewal;
        self.slices.update(before, now, changes);
        self.selections.update(before, now, changes);
        for (host, id) in self.destination_rules.update(before, now) {
            changes.add_host(RULES, &host, &id.to_string().into());
        }
        let mut hosts = Hosts::new();
        for (host, id) in self.catalog.update(before, now) {
            let why = id.to_string().into();
            changes.add_host(DESCRIBED, &host, &why);
            hosts.insert(host, why);
        }
        hosts
    }

    fn renew_members(&mut self, renewal: Renewal<'_>, changes: &mut Changes) {
        let Some(why) = changes.cause_for(&self.members_from).cloned() else {
            return;
        };
        let collect = || Members::collect(renewal.view(), &self.slices, renewal.identity);
        let (members, reads) = renewal.tape.part(collect);
        self.members_from = reads;
        if members != self.members {
            self.members = members;
            changes.add(MEMBERS, &why);
        }
    }

    /// Rebuilds services of clusters; adds hosts that no cluster has any more to `freed`. Returns whether the claimed
    /// addresses changed.
    fn renew_clusters(
        &mut self,
        renewal: Renewal<'_>,
        changes: &mut Changes,
        freed: &mut Hosts,
    ) -> bool {
        let mut stale: Vec<(Unit, Arc<str>)> = Vec::new();
        let mut claims_differ = false;
        if let Some(why) = changes.cause_for(&self.units_from).cloned() {
            let (units, reads) = renewal.tape.part(|| units(renewal.view()));
            self.units_from = reads;
            let is_gone = |unit: &&Unit| !matches!(unit, Unit::Outside(_)) && !units.contains(unit);
            let gone: Vec<Unit> = self.units.keys().filter(is_gone).cloned().collect();
            for unit in gone {
                self.readers.remove(&unit);
                let made = self.units.remove(&unit);
                let (hosts, claims) =
                    made.map_or_else(Default::default, |made| (made.hosts, made.claims));
                claims_differ |= !claims.is_empty();
                self.remove_services(hosts, &why, freed, changes);
            }
            let new = units
                .into_iter()
                .filter(|unit| !self.units.contains_key(unit));
            stale.extend(new.map(|unit| (unit, Arc::clone(&why))));
        }
        let touched = self.readers.touched(changes).into_iter();
        stale.extend(touched.filter(|(unit, _)| !matches!(unit, Unit::Outside(_))));
        for (unit, why) in stale {
            let (drafts, made) = self.make(renewal, &unit, |collector| match &unit {
                Unit::Named(name) => {
                    kube::collect_named(collector, name);
                    imports::collect_named(collector, name);
                }
                _ => {
                    kube::collect(collector);
                    gloo::collect(collector);
                    imports::collect(collector);
                }
            });
            let mut before = self.units.remove(&unit);
            let (old, claims) = before
                .take()
                .map_or_else(Default::default, |made| (made.hosts, made.claims));
            claims_differ |= claims != made.claims;
            for draft in drafts {
                // a service of a cluster replaces an outside service with the same host
                let outside = Unit::Outside(Arc::clone(&draft.service.host));
                self.readers.remove(&outside);
                let outside = self.units.remove(&outside);
                claims_differ |= outside.is_some_and(|outside| !outside.claims.is_empty());
                self.replace_service(draft.finish(), &why, changes);
            }
            let old = old
                .into_iter()
                .filter(|host| !made.hosts.contains(host))
                .collect();
            self.remove_services(old, &why, freed, changes);
            self.units.insert(unit, made);
        }
        claims_differ
    }

    /// Rebuilds the service of a host that is in no Kubernetes cluster. Returns whether the claimed addresses changed.
    fn renew_service_without_clusters(
        &mut self,
        renewal: Renewal<'_>,
        host: &Arc<str>,
        why: &Arc<str>,
        changes: &mut Changes,
    ) -> bool {
        if self
            .by_host
            .get(host)
            .is_some_and(|service| !service.is_outside)
        {
            return false;
        }
        let unit = Unit::Outside(Arc::clone(host));
        let collect = |collector: &mut Collector<'_>| outside::collect(collector, host);
        let (drafts, made) = self.make(renewal, &unit, collect);
        let before = self.units.remove(&unit).map(|made| made.claims);
        let claims_differ = before.unwrap_or_default() != made.claims;
        if drafts.is_empty() {
            self.readers.remove(&unit);
            self.remove_services(vec![Arc::clone(host)], why, &mut Hosts::new(), changes);
        } else {
            self.units.insert(unit, made);
        }
        for draft in drafts {
            self.replace_service(draft.finish(), why, changes);
        }
        claims_differ
    }

    /// Makes a unit, and keeps its reads.
    fn make(
        &mut self,
        renewal: Renewal<'_>,
        unit: &Unit,
        collect: impl FnOnce(&mut Collector<'_>),
    ) -> (Vec<Draft>, Made) {
        let selections = RefCell::new(std::mem::take(&mut self.selections));
        let (drafts, made, reads) = {
            let followed = Followed {
                catalog: &self.catalog,
                members: &self.members,
                slices: &self.slices,
                selections: &selections,
            };
            let mut collector = Collector::new(renewal.view(), renewal.identity, followed);
            let ((), reads) = renewal.tape.part(|| collect(&mut collector));
            let (drafts, claims) = collector.finish();
            let hosts = drafts.iter().map(|draft| Arc::clone(&draft.service.host));
            let hosts = hosts.collect();
            (drafts, Made { hosts, claims }, reads)
        };
        self.readers.insert(unit.clone(), reads);
        self.selections = selections.into_inner();
        (drafts, made)
    }

    /// Stores a service, and records the change of its host.
    fn replace_service(&mut self, service: Service, why: &Arc<str>, changes: &mut Changes) {
        let host = Arc::clone(&service.host);
        changes.add(EVERY, why);
        changes.add_host(SERVICE, &host, why);
        let before = self.by_host.get(&host);
        if !before.is_some_and(|before| service.shape() == before.shape()) {
            changes.add_host(SHAPE, &host, why);
        }
        self.by_host.insert(host, Arc::new(service));
    }

    /// Removes services, and records the change of their hosts.
    fn remove_services(
        &mut self,
        hosts: Vec<Arc<str>>,
        why: &Arc<str>,
        freed: &mut Hosts,
        changes: &mut Changes,
    ) {
        for host in hosts {
            if self.by_host.remove(&host).is_some() {
                changes.add(EVERY, why);
                changes.add_host(SERVICE, &host, why);
                changes.add_host(SHAPE, &host, why);
            }
            freed.insert(host, Arc::clone(why));
        }
    }
}

/// Returns the units of services of clusters.
fn units(view: View<'_>) -> HashSet<Unit> {
    if !view.is_empty::<Destination>() {
        return HashSet::from([Unit::Clusters]);
    }
    let names = view.names::<Kube>().chain(view.names::<ServiceImport>());
    names.cloned().map(Unit::Named).collect()
}
