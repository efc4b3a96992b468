//! Delegate VirtualServices that no rule refers to.

use std::collections::HashSet;

use super::finding::warning;
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::references::X323;
use crate::kind::Name;
use crate::resource::ResourceSet;
use crate::resource::istio::HttpAction;
use crate::span::Line;

/// Warns of unused delegates. A VirtualService without hosts is only used as a delegate.
pub(super) fn check(set: &ResourceSet, found: &mut Vec<Diagnostic>) {
    let rules = set
        .virtual_services
        .values()
        .flat_map(|object| &object.spec.http);
    let named = rules.filter_map(|rule| match &rule.action {
        HttpAction::Delegate(delegate) => Some(&delegate.name),
        _ => None,
    });
    let named: HashSet<&Name> = named.collect();
    for (name, object) in &set.virtual_services {
        if object.spec.is_delegate() && !named.contains(name) {
            let message =
                "the VirtualService has no hosts, and no rule delegates to it: it has no effect";
            let field = "spec.hosts".to_owned();
            let mut diagnostic = warning(object, X323, Line(0), field, message.to_owned());
            diagnostic.help("write `hosts`, or name it as the `delegate` of a rule");
            found.push(diagnostic);
        }
    }
}
