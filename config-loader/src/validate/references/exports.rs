//! ServiceExports that a gateway cannot serve, or that no other cluster can reach.

use std::collections::HashMap;

use super::finding::{location, warning};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::references::{X298, X299, X300};
use crate::resource::core::{Protocol, Service};
use crate::resource::flomesh::{PathType, ServiceExport};
use crate::resource::{Object, ResourceSet};
use crate::span::Line;

type Export = Object<ServiceExport>;

pub(super) fn check(set: &ResourceSet, found: &mut Vec<Diagnostic>) {
    for (name, export) in &set.service_exports {
        check_service(export, set.services.get(name).map(|one| &**one), found);
        check_exact(export, found);
    }
    check_paths(set, found);
}

/// Warns of an exact path, which no import can reach: an import adds its prefix before the path of a request, which
/// begins with a slash, so that the result never equals the exported path.
fn check_exact(export: &Export, found: &mut Vec<Diagnostic>) {
    for (index, rule) in export.spec.rules.iter().enumerate() {
        if rule.path_type != PathType::Exact {
            continue;
        }
        let field = format!("spec.rules[{index}].pathType");
        let message = "ExactNotImportable: Exact cannot be reached through an import".to_owned();
        let mut diagnostic = warning(export, X298, rule.line, field, message);
        diagnostic.help("an import adds its path to the whole path of a request: write Prefix");
        found.push(diagnostic);
    }
}

/// Warns of an export without a Service. Only a Service has endpoints that a gateway can serve, on its own ports.
fn check_service(export: &Export, service: Option<&Object<Service>>, found: &mut Vec<Diagnostic>) {
    let name = &export.id.name;
    let Some(service) = service else {
        let message = format!("Valid=False: there is no Service `{name}`: nothing is exported");
        let field = "metadata.name".to_owned();
        let mut diagnostic = warning(export, X299, Line(0), field, message);
        diagnostic.help("an export has the name and the namespace of its Service");
        found.push(diagnostic);
        return;
    };
    if service.spec.external_name().is_some() {
        let message =
            format!("Valid=False: Service `{name}` is an ExternalName: nothing is exported");
        let field = "metadata.name".to_owned();
        let mut diagnostic = warning(export, X299, Line(0), field, message);
        diagnostic.help("export a Service that has endpoints of its own");
        diagnostic.related(location(service, Line(0)), "the Service");
        found.push(diagnostic);
        return;
    }
    let ports = service.spec.ports.iter();
    let ports: Vec<u16> = ports
        .filter(|port| port.protocol == Protocol::Tcp)
        .map(|port| port.port)
        .collect();
    for (index, rule) in export.spec.rules.iter().enumerate() {
        if ports.contains(&rule.port) {
            continue;
        }
        let message = format!("Service `{name}` has no port {}", rule.port);
        let field = format!("spec.rules[{index}].portNumber");
        let mut diagnostic = warning(export, X299, rule.line, field, message);
        let known: Vec<String> = ports.iter().map(u16::to_string).collect();
        diagnostic.help(format!("its ports are {}", known.join(", ")));
        diagnostic.related(location(service, Line(0)), "the Service");
        found.push(diagnostic);
    }
}

/// Warns of a path that an older export has. The newer export as a whole has no effect.
fn check_paths(set: &ResourceSet, found: &mut Vec<Diagnostic>) {
    let mut exports: Vec<&Export> = set.service_exports.values().map(|one| &**one).collect();
    exports.sort_by(|a, b| a.age().cmp(&b.age()));
    let mut taken: HashMap<(&str, PathType), (&Export, Line)> = HashMap::new();
    for export in exports {
        let rules = &export.spec.rules;
        let mut clashes = rules.iter().enumerate().filter_map(|(index, rule)| {
            let (owner, line) = taken.get(&(&*rule.path, rule.path_type))?;
            Some((index, rule, *owner, *line))
        });
        if let Some((index, rule, owner, line)) = clashes.next() {
            let message = format!(
                "Valid=False: {} `{}` is exported by {} already: this export is not served",
                rule.path_type.as_str(),
                rule.path,
                owner.id
            );
            let field = format!("spec.rules[{index}].path");
            let mut diagnostic = warning(export, X300, rule.line, field, message);
            diagnostic.help("give each export a path of its own, such as /CLUSTER/SERVICE");
            diagnostic.related(location(owner, line), "the older one");
            found.push(diagnostic);
            continue;
        }
        for rule in rules {
            taken.insert((&*rule.path, rule.path_type), (export, rule.line));
        }
    }
}
