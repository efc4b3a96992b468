//! The VirtualServices that count for a proxy, kept from one compile to the next.

use std::collections::BTreeSet;
use std::sync::Arc;

use config_loader::catalog::{HostIndex, differences, hostname};
use config_loader::resource::Object;
use config_loader::resource::istio::VirtualService;
use config_loader::{Name, ResourceSet};

use crate::compile::applies::{is_visible, visible};
use crate::identity::Identity;

type Vs = Arc<Object<VirtualService>>;

/// More changes than these are not followed one by one.
const FOLLOWED_MAX: usize = 256;

/// The VirtualServices with hosts that count for a proxy.
#[derive(Debug)]
pub(in crate::compile) struct VisibleRoutes {
    /// In the order of their precedence.
    in_order: Vec<Vs>,
    /// By their full hosts, in no order.
    by_host: HostIndex<Vec<Vs>>,
}

impl VisibleRoutes {
    pub(in crate::compile) fn collect(resources: &ResourceSet, identity: &Identity) -> Self {
        let mut routes = Self {
            in_order: visible(resources, identity).into_iter().cloned().collect(),
            by_host: HostIndex::new(),
        };
        for object in &routes.in_order {
            index(&mut routes.by_host, object, identity);
        }
        routes
    }

    /// Follows a change of the resources.
    pub(in crate::compile) fn follow(
        mut self,
        before: &ResourceSet,
        now: &ResourceSet,
        identity: &Identity,
    ) -> Self {
        let changes: Vec<_> = differences(&before.virtual_services, &now.virtual_services)
            .take(FOLLOWED_MAX + 1)
            .collect();
        if changes.len() > FOLLOWED_MAX {
            return Self::collect(now, identity);
        }
        for (gone, came) in changes {
            if let Some(gone) = gone.filter(|gone| is_visible(gone, identity)) {
                self.remove(gone, identity);
            }
            if let Some(came) = came.filter(|came| is_visible(came, identity)) {
                let at = self
                    .in_order
                    .partition_point(|one| one.precedence() < came.precedence());
                self.in_order.insert(at, Arc::clone(came));
                index(&mut self.by_host, came, identity);
            }
        }
        self
    }

    fn remove(&mut self, gone: &Vs, identity: &Identity) {
        let from = self
            .in_order
            .partition_point(|one| one.precedence() < gone.precedence());
        let rest = self.in_order.get(from..).unwrap_or_default();
        if let Some(at) = rest.iter().position(|one| Arc::ptr_eq(one, gone)) {
            self.in_order.remove(from + at);
        }
        for host in full_hosts(gone, identity) {
            let Some(objects) = self.by_host.get_mut(&host) else {
                continue;
            };
            objects.retain(|one| !Arc::ptr_eq(one, gone));
            if objects.is_empty() {
                self.by_host.remove(&host);
            }
        }
    }

    /// All of them, in the order of their precedence.
    pub(in crate::compile) fn all(&self) -> Vec<&Vs> {
        self.in_order.iter().collect()
    }

    /// VirtualServices of these names, in the order of their precedence.
    pub(in crate::compile) fn named<'a>(
        &self,
        names: &BTreeSet<Name>,
        resources: &'a ResourceSet,
        identity: &Identity,
    ) -> Vec<&'a Vs> {
        let objects = names.iter();
        let objects = objects.filter_map(|name| resources.virtual_services.get(name));
        sorted(
            objects
                .filter(|object| is_visible(object, identity))
                .collect(),
        )
    }

    /// Those for this very host, in no order.
    pub(in crate::compile) fn of_host(&self, host: &str) -> &[Vs] {
        self.by_host.get(host).map_or(&[], Vec::as_slice)
    }

    /// VirtualServices with a host that has requests in common with one of these names, in the order of their precedence.
    pub(in crate::compile) fn sharing(&self, names: &BTreeSet<Arc<str>>) -> Vec<&Vs> {
        let mut sharing: Vec<&Vs> = Vec::new();
        for name in names {
            sharing.extend(self.by_host.covering(name).flatten());
            if name.starts_with('*') {
                let hosts = self.by_host.iter();
                let within = hosts.filter(|(host, _)| hostname::is_subset(host, name));
                sharing.extend(within.flat_map(|(_, objects)| objects));
            }
        }
        let mut sharing = sorted(sharing);
        sharing.dedup_by(|a, b| Arc::ptr_eq(a, b));
        sharing
    }
}

fn sorted(mut objects: Vec<&Vs>) -> Vec<&Vs> {
    objects.sort_by(|a, b| a.precedence().cmp(&b.precedence()));
    objects
}

fn index(by_host: &mut HostIndex<Vec<Vs>>, object: &Vs, identity: &Identity) {
    for host in full_hosts(object, identity) {
        by_host.entry(&host).push(Arc::clone(object));
    }
}

/// The full hosts of a VirtualService, each once.
fn full_hosts(object: &Vs, identity: &Identity) -> BTreeSet<String> {
    let hosts = object.spec.hosts.iter().map(|host| {
        hostname::complete(&host.value, &object.id.namespace, &identity.domain).into_owned()
    });
    hosts.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use config_loader::{Diagnostics, load_bytes};

    fn set(objects: &[(&str, &str)]) -> ResourceSet {
        let text: String = objects
            .iter()
            .map(|(name, hosts)| {
                format!(
                    "---\napiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: {name}}}\n\
                     spec: {{hosts: [{hosts}], gateways: [edge], http: [{{directResponse: {{status: 200}}}}]}}\n"
                )
            })
            .collect();
        let set = load_bytes("a.yaml", text.as_bytes(), &mut Diagnostics::default());
        assert_eq!(set.virtual_services.len(), objects.len());
        set
    }

    fn sharing(routes: &VisibleRoutes, name: &str) -> Vec<String> {
        let names = BTreeSet::from([Arc::from(name)]);
        let sharing = routes.sharing(&names).into_iter();
        sharing.map(|object| object.id.name.to_string()).collect()
    }

    #[test]
    fn virtual_services_share_a_name_if_their_hosts_intersect() {
        let identity = Identity::default();
        let first = set(&[
            ("a", "x.test"),
            ("b", "'*.test', x.org"),
            ("c", "y.test"),
            ("d", "'*'"),
        ]);
        let routes = VisibleRoutes::collect(&first, &identity);
        assert_eq!(sharing(&routes, "x.test"), ["a", "b", "d"]);
        assert_eq!(sharing(&routes, "*.test"), ["a", "b", "c", "d"]);
        assert_eq!(sharing(&routes, "z.org"), ["d"]);
        let second = set(&[("a", "y.test"), ("b", "'*.test'"), ("e", "x.test")]);
        let followed = routes.follow(&first, &second, &identity);
        for name in ["x.test", "y.test", "*.test", "*", "z.org"] {
            let fresh = VisibleRoutes::collect(&second, &identity);
            assert_eq!(sharing(&followed, name), sharing(&fresh, name), "{name}");
        }
        assert_eq!(sharing(&followed, "x.test"), ["b", "e"]);
        let names = |routes: &VisibleRoutes| -> Vec<_> {
            routes.all().iter().map(|one| one.id.to_name()).collect()
        };
        let fresh = VisibleRoutes::collect(&second, &identity);
        assert_eq!(names(&followed), names(&fresh));
    }
}
