//! Services of type ExternalName, which are aliases of other hosts.

use super::finding::warning;
use crate::catalog::{Services, hostname};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::references::{X327, X328};
use crate::resource::ResourceSet;

/// Warns of alias chains without an end, and of rules for an alias instead of its target.
pub(super) fn check(
    set: &ResourceSet,
    domain: &str,
    services: &Services,
    found: &mut Vec<Diagnostic>,
) {
    check_rules(set, domain, services, found);
    for object in set.services.values() {
        let Some(external) = object.spec.external_name() else {
            continue;
        };
        let (name, namespace) = (&object.id.name, &object.id.namespace);
        let host = hostname::of_service(name, namespace, domain);
        if !services.is_endless_alias(&host, namespace) {
            continue;
        }
        let field = "spec.externalName".to_owned();
        let names = services.aliases(&host, namespace);
        let message = match names.contains(&host) {
            true => format!(
                "`{}` is an alias of this Service: the name leads nowhere",
                external.host
            ),
            false => {
                format!("more than 8 aliases in a row begin at `{host}`: the name leads nowhere")
            }
        };
        let mut diagnostic = warning(object, X327, external.line, field, message);
        diagnostic.help("name the Service or the host that serves the requests");
        found.push(diagnostic);
    }
}

/// Warns of rules for an alias: requests for it follow the rules of its target.
fn check_rules(set: &ResourceSet, domain: &str, services: &Services, found: &mut Vec<Diagnostic>) {
    for object in set.destination_rules.values() {
        let host = object.full_host(domain);
        let Some(target) = services.behind_alias(&host, &object.id.namespace) else {
            continue;
        };
        let message = format!(
            "`{}` is an alias of `{target}`, whose DestinationRule counts: this rule has no effect",
            object.spec.host
        );
        let field = "spec.host".to_owned();
        let mut diagnostic = warning(object, X328, object.spec.host_line, field, message);
        diagnostic.help(format!("write `host: {target}`"));
        found.push(diagnostic);
    }
}
