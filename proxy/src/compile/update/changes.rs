//! Route sources whose virtual hosts a change touches: an update costs what changed, not what there is.
//!
//! A changed source whose hosts and gateways are the same touches the virtual hosts that it is attached to. A service
//! that is added or removed, or whose ports change, touches the sources that send requests to it. After any other
//! change all virtual hosts are checked; those with the same inputs are still kept.

use std::collections::BTreeSet;
use std::sync::Arc;

use config_loader::catalog::{Changes, HostIndex, Read, hostname};
use config_loader::resource::istio::Destination;
use config_loader::{Kind, Name, ResourceSet};

use crate::compile::applies::visible;
use crate::compile::route_source::RouteSource;
use crate::compile::services::Services;
use crate::compile::services::reads::{SHAPE, VIPS};
use crate::identity::Identity;

/// Visible route sources whose virtual hosts are compiled again, in the order of their precedence; `None` if any
/// virtual host may have been added, removed or changed.
#[derive(Debug, Default)]
pub(in crate::compile) struct TouchedRoutes(Option<Vec<RouteSource>>);

/// Services that were added or removed, or whose ports changed.
#[derive(Debug, Default)]
struct Touched {
    reshaped: Vec<Arc<str>>,
    /// Whether one of these services may be the target of an alias.
    has_aliases: bool,
}

impl TouchedRoutes {
    /// Returns the sources touched by the difference between two sets of resources and by its effects on services.
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
        let touched = routes(before, now, identity, &touched);
        Self(touched.map(|touched| visible(touched.into_iter(), identity)))
    }

    /// Returns the sources; `None` if all virtual hosts are looked at.
    pub(in crate::compile) fn sources(&self) -> Option<&[RouteSource]> {
        self.0.as_deref()
    }
}

/// Returns the sources that changed, with the roots that delegate to them; `None` if a source was added or removed, or
/// its hosts, gateways or namespaces changed.
fn routes(
    before: &ResourceSet,
    now: &ResourceSet,
    identity: &Identity,
    services: &Touched,
) -> Option<Vec<RouteSource>> {
    let mut touched = naming(now, identity, services)?;
    for change in RouteSource::differences(before, now) {
        let (Some(gone), Some(came)) = change else {
            return None;
        };
        if !is_attached_alike(&gone, &came) {
            return None;
        }
        touched.push(came);
    }
    let lent = touched.iter().filter(|source| source.is_delegate());
    let lent: BTreeSet<Name> = lent.map(|source| source.id().to_name()).collect();
    if !lent.is_empty() {
        let has_lent = |root: &RouteSource| root.delegates().any(|(_, name)| lent.contains(name));
        touched.extend(RouteSource::all(now).filter(has_lent));
    }
    Some(touched)
}

/// Returns the sources that send requests to hosts that were added or removed or whose ports changed; `None` if any
/// source may.
fn naming(now: &ResourceSet, identity: &Identity, services: &Touched) -> Option<Vec<RouteSource>> {
    let mut reshaped = HostIndex::new();
    for host in &services.reshaped {
        // short names and aliases depend on the existing cluster set hosts
        if host.ends_with(hostname::CLUSTER_SET) {
            return None;
        }
        reshaped.insert(Arc::clone(host), ());
    }
    if reshaped.is_empty() {
        return Some(Vec::new());
    }
    if services.has_aliases {
        return None;
    }
    let names_one = |source: &RouteSource| {
        let namespace = &source.id().namespace;
        let is_one = |destination: &Destination| {
            let host = hostname::complete(&destination.host, namespace, &identity.domain);
            reshaped.find(&host).is_some()
        };
        let mut rules = source.http().iter();
        rules.any(|rule| rule.destinations().any(is_one))
    };
    Some(RouteSource::all(now).filter(names_one).collect())
}

/// Whether two versions of a source belong to the same virtual hosts and have the same precedence.
fn is_attached_alike(gone: &RouteSource, came: &RouteSource) -> bool {
    gone.precedence() == came.precedence()
        && gone.export_to() == came.export_to()
        && gone.written_hosts().eq(came.written_hosts())
        && gone.gateways().eq(came.gateways())
}
