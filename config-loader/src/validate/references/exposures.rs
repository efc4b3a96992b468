//! MultiClusterServices that name unknown clusters or ports.
//!
//! The local cluster may be unknown. In that case, one otherwise unknown name is accepted as the local cluster.

use std::collections::BTreeSet;

use super::clusters::Clusters;
use super::finding::warning;
use crate::diagnostic::codes::references::{X309, X310};
use crate::diagnostic::{Diagnostic, suggest};
use crate::kind::Name;
use crate::resource::gloo::Backing;
use crate::resource::karmada::MultiClusterService;
use crate::resource::{Object, ResourceSet};

type Exposed = Object<MultiClusterService>;

pub(super) fn check(set: &ResourceSet, clusters: &Clusters<'_>, found: &mut Vec<Diagnostic>) {
    let all = || set.multi_cluster_services.values();
    let named = all().flat_map(|object| object.spec.providers.iter().chain(&object.spec.consumers));
    let unknown: BTreeSet<&str> = named
        .map(|named| &*named.name)
        .filter(|name| !clusters.has(name))
        .collect();
    let names = clusters.names();
    let may_be_own = clusters.own.is_none() && unknown.len() == 1;
    for object in all() {
        for named in object.spec.providers.iter().chain(&object.spec.consumers) {
            let name = &*named.name;
            if unknown.contains(name) && !may_be_own {
                let at = (named.field.to_string(), named.line);
                let message = format!("unknown cluster `{name}`; this entry matches nothing");
                let mut diagnostic = warning(object, X309, at.1, at.0, message);
                diagnostic.help(help(name, &names));
                found.push(diagnostic);
            }
        }
    }
    for (name, object) in &set.multi_cluster_services {
        check_ports(set, name, object, found);
    }
}

fn help(name: &str, names: &BTreeSet<&str>) -> String {
    match suggest::nearest(name, names.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "name it in the file of --clusters, by --cluster, or by a Cluster".to_owned(),
    }
}

/// Checks that an exposed port is a port of the service, in any resource that describes it.
fn check_ports(set: &ResourceSet, name: &Name, object: &Exposed, found: &mut Vec<Diagnostic>) {
    let known = ports(set, name);
    if known.is_empty() {
        return; // nothing is known of the service
    }
    let text = |(number, name): &(u16, &str)| match name.is_empty() {
        true => number.to_string(),
        false => format!("{number} {name}"),
    };
    for (index, port) in object.spec.ports.iter().enumerate() {
        let fits = |(number, name): &(u16, &str)| {
            *number == port.port && port.name.as_deref().is_none_or(|wanted| wanted == *name)
        };
        if known.iter().any(fits) {
            continue;
        }
        let asked = text(&(port.port, port.name.as_deref().unwrap_or_default()));
        let message = format!("`{}` has no port {asked}: this exposes nothing", name.name);
        let field = format!("spec.ports[{index}]");
        let mut diagnostic = warning(object, X310, port.line, field, message);
        let known: Vec<String> = known.iter().map(text).collect();
        diagnostic.help(format!("its ports are {}", known.join(", ")));
        found.push(diagnostic);
    }
}

/// Returns the ports of a service by number and name, from the Service, the import and Destinations.
fn ports<'a>(set: &'a ResourceSet, name: &Name) -> BTreeSet<(u16, &'a str)> {
    let service = set.services.get(name).into_iter();
    let service = service.flat_map(|service| &service.spec.ports);
    let mut ports: BTreeSet<_> = service.map(|port| (port.port, &*port.name)).collect();
    let imports = &set.service_imports;
    let imports = imports
        .get(name)
        .into_iter()
        .chain(imports.in_other_groups(name));
    let imports = imports.flat_map(|import| &import.spec.ports);
    ports.extend(imports.map(|port| (port.port, &*port.name)));
    for object in set.destinations.values() {
        if let Backing::Kube(kube) = &object.spec.backing
            && (&kube.service.name, &kube.service.namespace) == (&name.name, &name.namespace)
        {
            ports.extend(kube.ports.iter().map(|port| (port.port, &*port.name)));
        }
    }
    ports
}

#[cfg(test)]
mod tests;
