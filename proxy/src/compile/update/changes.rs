//! VirtualServices whose virtual hosts a change touches: an update costs what changed, not what there is.
//!
//! A VirtualService that keeps its hosts and gateways touches the virtual hosts that it is attached to, and a service that comes,
//! goes or gets other ports the VirtualServices that send requests there. After any other change all virtual hosts are looked at;
//! those with the same inputs are kept nevertheless.

use std::collections::BTreeSet;
use std::sync::Arc;

use config_loader::catalog::{Changes, HostIndex, Read, differences, hostname};
use config_loader::resource::Object;
use config_loader::resource::istio::{Destination, HttpAction, VirtualService};
use config_loader::{Kind, Name, ResourceSet};

use crate::compile::services::Services;
use crate::compile::services::reads::{SHAPE, VIPS};
use crate::identity::Identity;

/// The VirtualServices whose virtual hosts are compiled again; none if any virtual host may have come, gone or changed.
#[derive(Debug, Default)]
pub(in crate::compile) struct TouchedRoutes(Option<BTreeSet<Name>>);

/// Services that came, went, or have other ports.
#[derive(Debug, Default)]
struct Touched {
    reshaped: Vec<Arc<str>>,
    /// Whether these may be behind aliases.
    has_aliases: bool,
}

impl TouchedRoutes {
    /// The difference between two sets of resources, and what follows for services.
    pub(in crate::compile) fn between(
        before: &ResourceSet,
        now: &ResourceSet,
        identity: &Identity,
        (services, changes): (&Services, &Changes),
    ) -> Self {
        let attached_by = [Read::All(Kind::Gateway), Read::All(Kind::Sidecar), VIPS];
        if attached_by.into_iter().any(|read| changes.has(read)) {
            return Self(None);
        }
        let reshaped: Vec<_> = changes.hosts_of(SHAPE).cloned().collect();
        let mut all = services.iter(now.into());
        let touched = Touched {
            has_aliases: !reshaped.is_empty() && all.any(|service| service.alias_of.is_some()),
            reshaped,
        };
        Self(routes(before, now, identity, &touched))
    }

    /// The VirtualServices; none if all virtual hosts are looked at.
    pub(in crate::compile) fn names(&self) -> Option<&BTreeSet<Name>> {
        self.0.as_ref()
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
