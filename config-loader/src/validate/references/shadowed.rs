//! Hosts that resources of two kinds describe. The service of a Kubernetes cluster takes precedence.

use std::collections::HashMap;

use super::clusters::Clusters;
use super::destinations;
use super::finding::{WrittenName, location, warning};
use crate::catalog::hostname;
use crate::diagnostic::codes::references::X301;
use crate::diagnostic::{Diagnostic, Location};
use crate::kind::{Name, ObjectRef};
use crate::resource::gloo::{Backing, Destination};
use crate::resource::{Object, ResourceSet};
use crate::span::Line;

pub(super) fn check(set: &ResourceSet, clusters: &Clusters<'_>, found: &mut Vec<Diagnostic>) {
    let known = ClusterHosts {
        set,
        domain: clusters.domain,
        by_destinations: destinations::owners(set, clusters),
    };
    for object in set.service_entries.values() {
        for (index, host) in object.spec.hosts.iter().enumerate() {
            let field = format!("spec.hosts[{index}]");
            let named = WrittenName {
                name: &host.value,
                field,
                line: host.line,
            };
            known.check_host(object, named, found);
        }
    }
    for object in set.destinations.values() {
        if let Backing::External(service) = &object.spec.backing {
            for (index, host) in service.hosts.iter().enumerate() {
                let field = format!("spec.externalService.hosts[{index}]");
                let named = WrittenName {
                    name: host,
                    field,
                    line: service.line,
                };
                known.check_host(object, named, found);
            }
        }
    }
}

/// Hosts of Kubernetes services.
struct ClusterHosts<'a> {
    set: &'a ResourceSet,
    domain: &'a str,
    by_destinations: HashMap<String, &'a Object<Destination>>,
}

impl ClusterHosts<'_> {
    fn check_host<T>(
        &self,
        object: &Object<T>,
        named: WrittenName<'_>,
        found: &mut Vec<Diagnostic>,
    ) {
        let host = named.name;
        let Some((owner, at)) = self.owner(&hostname::canonical(host)) else {
            return;
        };
        let message = format!("HostShadowed: `{host}` is not used: {owner} has that host");
        let mut diagnostic = warning(object, X301, named.line, named.field, message);
        diagnostic.help(format!("remove the host here, or the {}", owner.kind));
        diagnostic.related(at, "this one serves the host");
        found.push(diagnostic);
    }

    /// Returns the object whose service has a host. A Service takes precedence over an import, and an import over a
    /// Destination.
    fn owner(&self, host: &str) -> Option<(&ObjectRef, Location)> {
        let service = |name: &Name| {
            let service = self.set.services.get(name)?;
            Some((&service.id, location(service, Line(0))))
        };
        let import = |name: &Name| {
            let import = self.set.service_imports.get(name)?;
            Some((&import.id, location(import, Line(0))))
        };
        let name = |(name, namespace): (&str, &str)| Name::new(namespace, name);
        let of_cluster = hostname::service_of(host, self.domain).map(name);
        let of_cluster = of_cluster.and_then(|name| service(&name).or_else(|| import(&name)));
        let together = || import(&hostname::service_of_cluster_set(host).map(name)?);
        let by_destination = || {
            let object = self.by_destinations.get(host)?;
            Some((&object.id, location(object, Line(0))))
        };
        of_cluster.or_else(together).or_else(by_destination)
    }
}
