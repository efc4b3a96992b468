//! Sidecar that applies to a workload, and the services that it makes reachable.

use std::sync::Arc;

use super::{Workload, hostname};
use crate::resource::istio::{EgressHost, EgressListener, EgressNamespace, Sidecar};
use crate::resource::{Object, ResourceSet};

/// Returns the Sidecar that applies to a workload: in its namespace the oldest that selects it, otherwise the oldest
/// without a selector; otherwise the oldest without a selector in the root namespace.
pub fn sidecar_of<'a>(
    set: &'a ResourceSet,
    workload: Workload<'_>,
) -> Option<&'a Arc<Object<Sidecar>>> {
    let rank = |object: &Arc<Object<Sidecar>>| {
        let namespace = &*object.id.namespace;
        match &object.spec.workload_selector {
            Some(selector) if namespace == workload.namespace => {
                workload.is_selected_by(selector).then_some(0)
            }
            None if namespace == workload.namespace => Some(1),
            None if namespace == workload.root_namespace => Some(2),
            _ => None,
        }
    };
    let ranked = set.sidecars.values();
    let ranked = ranked.filter_map(|object| Some(((rank(object)?, object.age()), object)));
    let first = ranked.min_by(|(a, _), (b, _)| a.cmp(b))?;
    Some(first.1)
}

impl EgressListener {
    /// Whether a workload of namespace `own` can reach a service of this namespace and host.
    pub fn reaches(&self, namespace: &str, host: &str, own: &str) -> bool {
        self.covers(namespace, own, |wanted| hostname::is_subset(host, wanted))
    }

    /// Whether a VirtualService of this namespace and host (or wildcard) applies to a workload of namespace `own`.
    pub fn overlaps(&self, namespace: &str, host: &str, own: &str) -> bool {
        self.covers(namespace, own, |wanted| {
            hostname::intersection(host, wanted).is_some()
        })
    }

    fn covers(&self, namespace: &str, own: &str, fits: impl Fn(&str) -> bool) -> bool {
        let is_for = |one: &EgressHost| fits(&one.host.to_ascii_lowercase());
        let is_taken_away = self.hosts.iter().any(|one| {
            matches!(&one.namespace, EgressNamespace::Without(other) if **other == *namespace)
                && is_for(one)
        });
        let is_named = |one: &EgressHost| match &one.namespace {
            EgressNamespace::Any => true,
            EgressNamespace::NoNamespace | EgressNamespace::Without(_) => false,
            EgressNamespace::Only(only) => **only == *namespace,
            EgressNamespace::Own => own == namespace,
        };
        !is_taken_away && self.hosts.iter().any(|one| is_named(one) && is_for(one))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::Line;

    fn listener(hosts: &[&str]) -> EgressListener {
        let hosts = hosts.iter().map(|text| {
            let (namespace, host) = text.split_once('/').expect("namespace/host");
            EgressHost {
                namespace: match namespace {
                    "*" => EgressNamespace::Any,
                    "." => EgressNamespace::Own,
                    "~" => EgressNamespace::NoNamespace,
                    other => match other.strip_prefix('~') {
                        Some(other) => EgressNamespace::Without(other.into()),
                        None => EgressNamespace::Only(other.into()),
                    },
                },
                host: host.into(),
                line: Line(1),
            }
        });
        EgressListener {
            port: None,
            bind: Default::default(),
            capture: Default::default(),
            hosts: hosts.collect(),
            line: Line(1),
        }
    }

    #[test]
    fn egress_hosts_limit_what_can_be_reached() {
        for (hosts, namespace, host, expected) in [
            (&["*/*"][..], "any", "a.example", true),
            (&["./*"], "own", "a.example", true),
            (&["./*"], "other", "a.example", false),
            (&["~/*"], "own", "a.example", false),
            (&["prod/*.example"], "prod", "a.example", true),
            (&["prod/*.example"], "prod", "a.test", false),
            (&["prod/a.example", "./*"], "prod", "A.example", true),
            (&["*/*", "~prod/*"], "prod", "a.example", false),
            (&["*/*", "~prod/*"], "own", "a.example", true),
            (&["*/*", "~prod/b.example"], "prod", "a.example", true),
        ] {
            let host = host.to_ascii_lowercase();
            let listener = listener(hosts);
            assert_eq!(
                listener.reaches(namespace, &host, "own"),
                expected,
                "{hosts:?} {namespace}/{host}"
            );
        }
    }

    #[test]
    fn virtual_service_counts_if_its_host_overlaps_in_either_direction() {
        let narrow = listener(&["*/a.example"]);
        assert!(narrow.overlaps("x", "*.example", "own"));
        assert!(!narrow.reaches("x", "b.example", "own"));
        let wide = listener(&["*/*.example"]);
        assert!(wide.overlaps("x", "a.example", "own"));
        assert!(!wide.overlaps("x", "a.test", "own"));
    }
}
