//! Hosts that the egress hosts of Sidecars can match.

use std::collections::BTreeMap;

use crate::catalog::{Services, Source, hostname};
use crate::resource::istio::{EgressHost, EgressListener, EgressNamespace, GatewayRef, Sidecar};
use crate::resource::{ExportTo, Object, ResourceSet};

/// Index of the hosts of services and VirtualServices, by name and wildcard.
pub(super) struct Reach<'a> {
    services: &'a Services,
    root_namespace: &'a str,
    /// Service hosts with their characters reversed, so that hosts with a common suffix are adjacent.
    reversed: BTreeMap<String, &'a str>,
    /// Hosts of VirtualServices.
    routed: Vec<Routed<'a>>,
}

/// Host of a VirtualService of the mesh.
struct Routed<'a> {
    namespace: &'a str,
    host: String,
    export_to: &'a ExportTo,
}

impl<'a> Reach<'a> {
    pub(super) fn new(
        set: &'a ResourceSet,
        services: &'a Services,
        root_namespace: &'a str,
        domain: &str,
    ) -> Self {
        let hosts = services.iter().map(|(host, _)| &**host);
        let of_mesh = set.virtual_services.values().filter(|object| {
            let mut gateways = object.spec.gateways.iter();
            gateways.any(|gateway| gateway.value == GatewayRef::Mesh)
        });
        let routed = of_mesh.flat_map(|object| {
            object.spec.hosts.iter().map(|host| Routed {
                namespace: &object.id.namespace,
                host: hostname::complete(&host.value, &object.id.namespace, domain).into_owned(),
                export_to: &object.spec.export_to,
            })
        });
        Self {
            services,
            root_namespace,
            reversed: hosts
                .map(|host| (host.chars().rev().collect(), host))
                .collect(),
            routed: routed.collect(),
        }
    }

    /// Whether there are no hosts.
    pub(super) fn is_empty(&self) -> bool {
        self.reversed.is_empty() && self.routed.is_empty()
    }

    /// Whether an egress host matches a known host, or is so general that it need not.
    pub(super) fn has_match(&self, sidecar: &Object<Sidecar>, host: &EgressHost) -> bool {
        let own = &*sidecar.id.namespace;
        if self.is_general(own, host) {
            return true;
        }
        let name = host.host.to_ascii_lowercase();
        let is_meant = |namespace: &str| self.is_meant(own, &host.namespace, namespace);
        let is_of_mesh = self.is_default_of_mesh(sidecar);
        let is_seen = |source: &Source| is_of_mesh || source.is_seen_from(own);
        let mut sources = self.sources(&name);
        sources.any(|(_, source)| is_meant(&source.id().namespace) && is_seen(source))
            || self.routed.iter().any(|routed| {
                is_meant(routed.namespace)
                    && (is_of_mesh || routed.export_to.includes(own))
                    && hostname::intersection(&routed.host, &name).is_some()
            })
    }

    /// Whether a listener selects services, and none of them has its port.
    pub(super) fn lacks_port(
        &self,
        sidecar: &Object<Sidecar>,
        listener: &EgressListener,
        port: u16,
    ) -> bool {
        let own = &*sidecar.id.namespace;
        if self.is_default_of_mesh(sidecar) {
            return false;
        }
        let mut has_service = false;
        for host in &listener.hosts {
            let name = host.host.to_ascii_lowercase();
            for (host, source) in self.sources(&name) {
                if !source.is_seen_from(own) || !listener.reaches(&source.id().namespace, host, own)
                {
                    continue;
                }
                // a service whose ports are not known may have it
                let ports = source.ports();
                if ports.is_empty() || ports.iter().any(|(number, _)| *number == port) {
                    return false;
                }
                has_service = true;
            }
        }
        let mut routed = self.routed.iter();
        has_service && !routed.any(|routed| listener.overlaps(routed.namespace, &routed.host, own))
    }

    /// Returns the namespace that has the host, for an entry with another namespace.
    pub(super) fn elsewhere(&self, host: &EgressHost, own: &str) -> Option<String> {
        let name = host.host.to_ascii_lowercase();
        if name == "*" || host.namespace == EgressNamespace::Any {
            return None;
        }
        let mut sources = self.sources(&name).map(|(_, source)| source);
        let seen = sources.find(|source| source.is_seen_from(own));
        seen.map(|source| source.id().namespace.to_string())
    }

    /// Whether an entry selects a whole namespace, which may be empty.
    fn is_general(&self, own: &str, host: &EgressHost) -> bool {
        let is_all = &*host.host == "*";
        match &host.namespace {
            EgressNamespace::NoNamespace => true,
            EgressNamespace::Any | EgressNamespace::Own => is_all,
            EgressNamespace::Only(namespace) | EgressNamespace::Without(namespace) => {
                is_all && (**namespace == *own || **namespace == *self.root_namespace)
            }
        }
    }

    fn is_meant(&self, own: &str, wanted: &EgressNamespace, namespace: &str) -> bool {
        match wanted {
            EgressNamespace::Any => true,
            // in the root namespace it is that of each workload
            EgressNamespace::Own => own == namespace || own == self.root_namespace,
            EgressNamespace::Only(only) | EgressNamespace::Without(only) => **only == *namespace,
            EgressNamespace::NoNamespace => false,
        }
    }

    /// Whether a Sidecar applies to workloads of namespaces that are unknown here.
    fn is_default_of_mesh(&self, sidecar: &Object<Sidecar>) -> bool {
        sidecar.spec.workload_selector.is_none() && *sidecar.id.namespace == *self.root_namespace
    }

    /// Returns the resources that describe the hosts of a name or wildcard.
    fn sources<'s>(&'s self, name: &'s str) -> impl Iterator<Item = (&'s str, &'s Source)> {
        let ending = name.strip_prefix('*');
        let exact = match ending {
            None => self.services.get(name).map(|entry| (name, entry)),
            Some(_) => None,
        };
        let reversed: String = ending.unwrap_or_default().chars().rev().collect();
        let covered = ending
            .is_some()
            .then(|| self.reversed.range(reversed.clone()..));
        let covered = covered.into_iter().flatten();
        let covered = covered
            .take_while(move |(letters, _)| letters.starts_with(&reversed))
            .filter_map(|(_, host)| Some((*host, self.services.get(host)?)));
        let entries = exact.into_iter().chain(covered);
        entries.flat_map(|(host, entry)| entry.sources().iter().map(move |source| (host, source)))
    }
}
