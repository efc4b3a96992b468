//! Hosts that two kinds of resource describe: the Service is used, and the other is not.

use super::names::{DOMAIN, complete};
use super::{place, warning};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::references::X301;
use crate::kind::Name;
use crate::resource::gloo::Backing;
use crate::resource::{Object, ResourceSet};
use crate::span::Line;

pub(super) fn check(set: &ResourceSet, found: &mut Vec<Diagnostic>) {
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
