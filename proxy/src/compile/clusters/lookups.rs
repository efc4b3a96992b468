//! What rules and listeners ask about services.

use std::borrow::Cow;
use std::sync::Arc;

use crate::compile::clusters::{Clusters, name};
use crate::compile::service::Shift;
use crate::compile::services::Vips;
use crate::upstream::Tunnel;

/// Maximum number of hosts that are suggested to a client that named an unknown host.
const FEDERATED_MAX: usize = 20;

impl Clusters<'_> {
    /// Returns the full host of a destination in an object of `namespace`.
    pub(in crate::compile) fn destination<'h>(
        &self,
        host: &'h str,
        namespace: &str,
    ) -> Cow<'h, str> {
        self.services.destination(self.view, host, namespace)
    }

    /// Returns the target host of an alias, or the host itself if it is not an alias.
    pub(in crate::compile) fn behind_alias<'h>(&self, host: &'h str) -> Cow<'h, str> {
        match self.services.behind_alias(self.view, host) {
            Some(behind) => Cow::Owned(behind),
            None => Cow::Borrowed(host),
        }
    }

    /// Returns the service port that a destination resolves to.
    pub(in crate::compile) fn port(
        &self,
        host: &str,
        named: Option<u16>,
        listener_port: u16,
    ) -> u16 {
        match self.services.find_shape(self.view, host) {
            Some(service) => service.port(named, listener_port),
            None => named.unwrap_or(listener_port),
        }
    }

    /// Returns the traffic shift policies of a host; none on a listener with a route source for every host, which
    /// routes the requests of this host as well.
    pub(in crate::compile) fn shifts(&self, host: &str) -> &[Arc<Shift>] {
        let service = self.services.find_shape(self.view, host);
        let service = service.filter(|_| !self.routes_every_host);
        service.map_or(&[], |service| &service.shifts)
    }

    /// Returns the hosts by which other clusters know the `is_wanted` services of the local cluster, sorted; at most
    /// [`FEDERATED_MAX`].
    pub(in crate::compile) fn federated(
        &self,
        is_wanted: impl Fn(&str, &str) -> bool,
    ) -> Vec<Arc<str>> {
        let own = &self.services.members(self.view).own;
        let services = self.services.iter(self.view).filter(|service| {
            let stands_for = service.stands_for.as_ref();
            stands_for.is_some_and(|member| member.key == own.key)
                && is_wanted(&service.host, &service.namespace)
        });
        let mut hosts: Vec<_> = services.map(|service| Arc::clone(&service.host)).collect();
        hosts.sort_unstable();
        hosts.truncate(FEDERATED_MAX);
        hosts
    }

    /// Returns the cluster names of every mesh service whose host and namespace `is_wanted`: one for each port and
    /// subset, sorted. Hosts that represent other clusters are excluded.
    pub(in crate::compile) fn names_of_mesh(
        &self,
        is_wanted: impl Fn(&str, &str) -> bool,
    ) -> Vec<String> {
        let own = &self.services.members(self.view).own;
        let mut names = Vec::new();
        let services = self.services.iter(self.view).filter(|service| {
            let host = &*service.host;
            let stands_for = service.stands_for.as_ref();
            !service.external
                && !host.starts_with('*')
                && self.services.behind_alias(self.view, host).is_none()
                && stands_for.is_none_or(|member| member.key == own.key)
                && is_wanted(host, &service.namespace)
        });
        for service in services {
            let subsets = self.policies.subsets(&service.host, service);
            for port in &service.ports {
                let all = std::iter::once("").chain(subsets.iter().copied());
                names.extend(all.map(|subset| name(port.number, subset, &service.host)));
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns the other hosts by which requests for a service of the local domain may arrive.
    pub(in crate::compile) fn aliases(&self, host: &str) -> Vec<String> {
        self.services
            .aliases(self.view, host, &self.identity.domain)
    }

    /// Returns the virtual addresses of services.
    pub(in crate::compile) fn vips(&self) -> &Vips {
        self.services.vips(self.view)
    }

    /// Whether a service has this port and its endpoints belong to the local cluster.
    pub(in crate::compile) fn exports(&self, host: &str, port: u16) -> bool {
        let service = self.services.find_shape(self.view, host);
        service.is_some_and(|service| service.is_exportable && service.find_port(port).is_some())
    }

    /// Returns the tunnel for connections to a cluster, if its DestinationRule has one; `whole` ignores the subset.
    pub(in crate::compile) fn tunnel(&self, name: &str, whole: bool) -> Option<Tunnel> {
        let mut parts = name.splitn(4, '|').skip(1);
        let port: u16 = parts.next()?.parse().ok()?;
        let (subset, host) = (parts.next()?, parts.next()?);
        let subset = if whole { "" } else { subset };
        let service = self.services.find(self.view, host)?;
        self.policies.tunnel(host, service, port, subset)
    }
}
