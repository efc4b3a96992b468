//! Hosts that two kinds of resource describe, of which the Service is used, and addresses that two imports claim, of which
//! the older one has it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::IpAddr;

use super::names::{DOMAIN, complete};
use super::{place, warning};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::references::{X301, X302};
use crate::kind::Name;
use crate::resource::flomesh::{ImportType, ServiceImport};
use crate::resource::gloo::Backing;
use crate::resource::{Object, ResourceSet};
use crate::span::Line;

pub(super) fn check(set: &ResourceSet, found: &mut Vec<Diagnostic>) {
    check_vips(set, found);
    if set.services.is_empty() {
        return;
    }
    for object in set.service_entries.values() {
        for (index, host) in object.spec.hosts.iter().enumerate() {
            let field = format!("spec.hosts[{index}]");
            check_host(set, object, (&host.value, host.line, field), found);
        }
    }
    for object in set.destinations.values() {
        if let Backing::External(service) = &object.spec.backing {
            for (index, host) in service.hosts.iter().enumerate() {
                let field = format!("spec.externalService.hosts[{index}]");
                check_host(set, object, (host, service.line, field), found);
            }
        }
    }
}

fn check_host<T>(
    set: &ResourceSet,
    object: &Object<T>,
    (host, line, field): (&str, Line, String),
    found: &mut Vec<Diagnostic>,
) {
    let full = complete(host, &object.id.namespace);
    let Some((name, namespace)) = full
        .strip_suffix(DOMAIN)
        .and_then(|rest| rest.strip_suffix(".svc."))
        .and_then(|rest| rest.split_once('.'))
    else {
        return;
    };
    let Some(service) = set.services.get(&Name::new(namespace, name)) else {
        return;
    };
    let message = format!("`{host}` is not used: {} has that host", service.id);
    let mut diagnostic = warning(object, X301, line, field, message);
    diagnostic.help("remove the host here, or the Service");
    diagnostic.related(place(service, Line(0)), "this one serves the host");
    found.push(diagnostic);
}

fn check_vips(set: &ResourceSet, found: &mut Vec<Diagnostic>) {
    let mut imports: Vec<_> = set.service_imports.values().collect();
    imports.retain(|import| import.spec.import_type == ImportType::ClusterSetIp);
    imports.sort_by(|a, b| a.age().cmp(&b.age()));
    let mut owners: BTreeMap<IpAddr, &Object<ServiceImport>> = BTreeMap::new();
    for import in imports {
        let Some(vip) = import.spec.vip else { continue };
        match owners.entry(vip) {
            Entry::Vacant(free) => {
                free.insert(import);
            }
            Entry::Occupied(owner) => {
                let owner = owner.get();
                let message = format!("{vip} is not used: it is the address of {}", owner.id);
                let field = "spec.ips[0]".to_owned();
                let mut diagnostic = warning(import, X302, Line(0), field, message);
                diagnostic.help("give each service an address of its own");
                diagnostic.related(place(owner, Line(0)), "this one is older and has it");
                found.push(diagnostic);
            }
        }
    }
}
