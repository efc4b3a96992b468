//! What a change touches: an update costs what changed, not what there is.
//!
//! Two sets of resources are compared kind by kind. An object that did not change is the same `Arc` in both, so that a comparison
//! looks at pointers only. Where a change is of a kind whose reach is known, everything out of reach is taken from the snapshot
//! before without being looked at:
//!
//! - A VirtualService that keeps its hosts and gateways touches the virtual hosts that it is attached to.
//! - A DestinationRule touches the clusters of the hosts that it is for.
//! - EndpointSlices, Services, ServiceEntries and WorkloadEntries touch the clusters of their hosts, and where a host comes, goes or gets other
//!   ports, the VirtualServices that send requests there.
//!
//! After any other change everything is compiled; what turns out the same is kept nevertheless.

use std::collections::BTreeSet;
use std::sync::Arc;

use config_loader::catalog::{HostIndex, differences, hostname};
use config_loader::resource::Object;
use config_loader::resource::istio::{Destination, HttpAction, VirtualService};
use config_loader::{Name, ResourceSet};

use crate::compile::services::renewal::Touched;
use crate::identity::Identity;

/// What a change touches.
#[derive(Debug, Default)]
pub(in crate::compile) struct Changes {
    /// VirtualServices whose virtual hosts are compiled again; none if any virtual host may have come, gone or changed.
    routes: Option<BTreeSet<Name>>,
    /// Hosts and wildcards whose clusters are looked at again; none if that may be any.
    clusters: Option<HostIndex<()>>,
}

impl Changes {
    /// Anything may be different.
    pub(in crate::compile) fn everything() -> Self {
        Self::default()
    }

    /// The difference between two sets of resources whose services are the same, except for the `touched` ones.
    pub(in crate::compile) fn between(
        before: &ResourceSet,
        now: &ResourceSet,
        identity: &Identity,
        touched: &Touched,
    ) -> Self {
        // every kind is named, so that a new one is not forgotten
        let ResourceSet {
            revision: _,
            virtual_services: _,
            destination_rules: _,
            gateways,
            peer_authentications,
            // they are reported, and not enforced
            authorization_policies: _,
            request_authentications: _,
            sidecars,
            // `touched` says what follows from them
            service_entries: _,
            workload_entries: _,
            clusters: _,
            global_traffic_policies: _,
            service_imports: _,
            service_exports: _,
            multi_cluster_services: _,
            destinations: _,
            services: _,
            endpoint_slices: _,
            pods: _,
            nodes: _,
            namespaces: _,
            withheld: _,
            // the store of certificates has what they say
            secrets: _,
        } = now;
        // policies of workloads decide about TLS to them
        if !before.peer_authentications.same(peer_authentications) {
            return Self::everything();
        }
        let mut clusters = HostIndex::new();
        for host in touched.changed.iter().chain(&touched.reshaped) {
            clusters.insert(Arc::clone(host), ());
        }
        for (gone, came) in differences(&before.destination_rules, &now.destination_rules) {
            for rule in [gone, came].into_iter().flatten() {
                clusters.insert(rule.full_host(&identity.domain), ());
            }
        }
        let is_same = before.gateways.same(gateways) && before.sidecars.same(sidecars);
        let routes = is_same.then(|| routes(before, now, identity, touched));
        let routes = routes.flatten();
        Self {
            routes,
            clusters: Some(clusters),
        }
    }

    /// The VirtualServices whose virtual hosts are compiled again; none if all are looked at.
    pub(in crate::compile) fn routes(&self) -> Option<&BTreeSet<Name>> {
        self.routes.as_ref()
    }

    /// Whether clusters of a host are what they were.
    pub(in crate::compile) fn keep_clusters_of(&self, host: &str, domain: &str) -> bool {
        let Some(touched) = &self.clusters else {
            return false;
        };
        // rules for a service hold for it among clusters, too
        let native = || hostname::of_domain(host, domain);
        touched.is_empty()
            || touched.find(host).is_none()
                && native().is_none_or(|native| touched.find(&native).is_none())
    }
}

/// The VirtualServices that changed, with the roots that delegate to them; none if one came, went, or is for other hosts,
/// gateways or namespaces than before.
fn routes(
    before: &ResourceSet,
    now: &ResourceSet,
    identity: &Identity,
    services: &Touched,
) -> Option<BTreeSet<Name>> {
    let mut touched = naming(now, identity, services)?;
    for change in differences(&before.virtual_services, &now.virtual_services) {
        let (Some(gone), Some(came)) = change else {
            return None;
        };
        if !is_attached_alike(gone, came) {
            return None;
        }
        touched.insert(came.id.to_name());
    }
    let is_delegate = |name: &Name| {
        let object = now.virtual_services.get(name);
        object.is_some_and(|object| object.spec.is_delegate())
    };
    if !touched.iter().any(is_delegate) {
        return Some(touched);
    }
    let delegates = |object: &&Arc<Object<VirtualService>>| {
        let mut rules = object.spec.http.iter();
        rules.any(|rule| match &rule.action {
            HttpAction::Delegate(delegate) => touched.contains(&delegate.name),
            _ => false,
        })
    };
    let roots = now.virtual_services.values().filter(delegates);
    let roots: Vec<Name> = roots.map(|root| root.id.to_name()).collect();
    touched.extend(roots);
    Some(touched)
}

/// The VirtualServices that send requests to hosts that came, went or have other ports; none if that may be any.
fn naming(now: &ResourceSet, identity: &Identity, services: &Touched) -> Option<BTreeSet<Name>> {
    let mut reshaped = HostIndex::new();
    for host in &services.reshaped {
        // short names and aliases of hosts depend on which of these there are
        if host.ends_with(hostname::CLUSTER_SET) {
            return None;
        }
        reshaped.insert(Arc::clone(host), ());
    }
    if reshaped.is_empty() {
        return Some(BTreeSet::new());
    }
    if services.has_aliases {
        return None;
    }
    let names_one = |object: &&Arc<Object<VirtualService>>| {
        let namespace = &object.id.namespace;
        let is_one = |destination: &Destination| {
            let host = hostname::complete(&destination.host, namespace, &identity.domain);
            reshaped.find(&host).is_some()
        };
        object.spec.http.iter().any(|rule| {
            let routes = match &rule.action {
                HttpAction::Route(routes) => &routes[..],
                _ => &[],
            };
            let mut routes = routes.iter().map(|route| &route.destination);
            let mut mirrors = rule.mirrors.iter().map(|mirror| &mirror.destination);
            routes.any(is_one) || mirrors.any(is_one) || rule.mirror.iter().any(|to| is_one(to))
        })
    };
    let objects = now.virtual_services.values().filter(names_one);
    Some(objects.map(|object| object.id.to_name()).collect())
}

/// Whether two versions of a VirtualService have the same virtual hosts, in the same order among others.
fn is_attached_alike(gone: &Object<VirtualService>, came: &Object<VirtualService>) -> bool {
    let hosts = |object: &Object<VirtualService>| -> Vec<Arc<str>> {
        let hosts = object.spec.hosts.iter();
        hosts.map(|host| Arc::clone(&host.value)).collect()
    };
    let mut gateways = gone.spec.gateways.iter().zip(&came.spec.gateways);
    gone.age() == came.age()
        && gone.spec.export_to == came.spec.export_to
        && hosts(gone) == hosts(came)
        && gone.spec.gateways.len() == came.spec.gateways.len()
        && gateways.all(|(gone, came)| gone.value == came.value)
}
