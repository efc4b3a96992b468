//! Route sources that apply to a proxy, kept from one compile to the next.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use config_loader::ResourceSet;
use config_loader::catalog::{Changes, HostIndex, View, hostname};

use crate::compile::applies::{is_visible, visible};
use crate::compile::route_source::RouteSource;
use crate::compile::services::reads::ATTACHED;
use crate::identity::Identity;

/// Maximum number of changes that are applied one by one; after more, all sources are collected again.
const FOLLOWED_MAX: usize = 256;

/// Route sources that apply to a proxy.
#[derive(Debug)]
pub(in crate::compile) struct VisibleRoutes {
    /// Sources in the order of their precedence.
    in_order: Vec<RouteSource>,
    /// Sources by their full hosts, in no order.
    by_host: HostIndex<Vec<RouteSource>>,
}

impl VisibleRoutes {
    pub(in crate::compile) fn collect(resources: &ResourceSet, identity: &Identity) -> Self {
        let mut routes = Self {
            in_order: visible(RouteSource::all(resources), identity),
            by_host: HostIndex::new(),
        };
        for source in &routes.in_order {
            index(&mut routes.by_host, source, identity);
        }
        routes
    }

    /// Follows a change of the resources, and adds to `changes` that a visible source is attached elsewhere.
    pub(in crate::compile) fn follow(
        mut self,
        before: &ResourceSet,
        now: &ResourceSet,
        identity: &Identity,
        changes: &mut Changes,
    ) -> Self {
        let visible = |source: Option<RouteSource>| source.filter(|one| is_visible(one, identity));
        let differences = RouteSource::differences(before, now);
        let differences = differences.map(|(gone, came)| (visible(gone), visible(came)));
        let differences: Vec<_> = differences.collect();
        for (gone, came) in &differences {
            let moved = match (gone, came) {
                (Some(gone), Some(came)) => !gone.is_attached_as(came),
                _ => true,
            };
            if let Some(source) = came.as_ref().or(gone.as_ref()).filter(|_| moved) {
                changes.add(ATTACHED, &source.id().to_string().into());
            }
        }
        if differences.len() > FOLLOWED_MAX {
            return Self::collect(now, identity);
        }
        for (gone, came) in differences {
            if let Some(gone) = gone {
                self.remove(&gone, identity);
            }
            if let Some(came) = came {
                let at = self
                    .in_order
                    .partition_point(|one| one.precedence() < came.precedence());
                index(&mut self.by_host, &came, identity);
                self.in_order.insert(at, came);
            }
        }
        self
    }

    fn remove(&mut self, gone: &RouteSource, identity: &Identity) {
        let from = self
            .in_order
            .partition_point(|one| one.precedence() < gone.precedence());
        let rest = self.in_order.get(from..).unwrap_or_default();
        if let Some(at) = rest.iter().position(|one| one == gone) {
            self.in_order.remove(from + at);
        }
        for host in full_hosts(gone, identity) {
            let Some(sources) = self.by_host.get_mut(&host) else {
                continue;
            };
            sources.retain(|one| one != gone);
            if sources.is_empty() {
                self.by_host.remove(&host);
            }
        }
    }

    /// Returns all sources, in the order of their precedence.
    pub(in crate::compile) fn all(&self, view: View<'_>) -> &[RouteSource] {
        view.read(ATTACHED, || 0);
        &self.in_order
    }

    /// Returns the sources for exactly this host, in no order.
    pub(in crate::compile) fn of_host(&self, view: View<'_>, host: &str) -> &[RouteSource] {
        view.read(ATTACHED, || 0);
        self.by_host.get(host).map_or(&[], Vec::as_slice)
    }

    /// Returns the sources with a host that intersects one of these names, in the order of their precedence.
    pub(in crate::compile) fn sharing(
        &self,
        view: View<'_>,
        names: &BTreeSet<Arc<str>>,
    ) -> Vec<&RouteSource> {
        view.read(ATTACHED, || 0);
        let mut sharing: Vec<&RouteSource> = Vec::new();
        for name in names {
            sharing.extend(self.by_host.covering(name).flatten());
            if name.starts_with('*') {
                let hosts = self.by_host.iter();
                let within = hosts.filter(|(host, _)| hostname::is_subset(host, name));
                sharing.extend(within.flat_map(|(_, sources)| sources));
            }
        }
        sharing.sort_by(|a, b| a.precedence().cmp(&b.precedence()));
        sharing.dedup();
        sharing
    }
}

fn index(by_host: &mut HostIndex<Vec<RouteSource>>, source: &RouteSource, identity: &Identity) {
    for host in full_hosts(source, identity) {
        by_host.entry(&host).push(source.clone());
    }
}

/// Returns the full hosts of a source, each once.
fn full_hosts<'a>(source: &'a RouteSource, identity: &Identity) -> BTreeSet<Cow<'a, str>> {
    source.hosts(&identity.domain).collect()
}

#[cfg(test)]
mod tests;
