//! Merged VirtualServices: delegates under their roots, and several for one host of a Gateway. Diagnostics about a rule
//! that is lost in a merge have both locations.

use std::borrow::Cow;
use std::collections::HashMap;

use super::finding::{location, warning};
use crate::catalog::{delegate as delegate_of, hostname};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::references::{X287, X288};
use crate::kind::Name;
use crate::resource::istio::{
    GatewayRef, HttpAction, HttpMatch, HttpRule, VirtualService, conflict,
};
use crate::resource::{ExportTo, Object, ResourceSet};
use crate::span::Line;
use crate::validate::istio::{Earlier, Hidden};

type Vs = Object<VirtualService>;

/// Largest number of diagnostics of this module about one object. More would only repeat the same message.
const FOUND_MAX: usize = 100;

pub(super) fn check(set: &ResourceSet, domain: &str, found: &mut Vec<Diagnostic>) {
    for root in set.virtual_services.values() {
        let before = found.len();
        for rule in &root.spec.http {
            if let HttpAction::Delegate(delegate) = &rule.action
                && let Ok(target) = delegate_of(set, &delegate.name, &root.id.namespace)
            {
                check_delegate(root, rule, target, found);
            }
            if found.len() - before >= FOUND_MAX {
                break;
            }
        }
    }
    for objects in shared_hosts(set, domain) {
        check_shared(&objects, found);
    }
}

/// Warns of a delegate rule that is dropped, because one of its blocks conflicts with every block of the root rule.
fn check_delegate(root: &Vs, rule: &HttpRule, target: &Vs, found: &mut Vec<Diagnostic>) {
    if rule.matches.is_empty() {
        return;
    }
    for (index, inner) in target.spec.http.iter().enumerate() {
        let mut blocks = inner.matches.iter().enumerate();
        let misfit = blocks.find_map(|(at, block)| Some((at, block, misfit(rule, block)?)));
        let Some((at, block, (outer, field))) = misfit else {
            continue;
        };
        let message = format!(
            "rule {index} is dropped where {} delegates to it: `{field}` of match {at} conflicts with the root's",
            root.id
        );
        let path = format!("spec.http[{index}].match[{at}].{field}");
        let mut diagnostic = warning(target, X287, block.line, path, message);
        diagnostic.help(
            "each match of a delegate must fit one of the root rule: a uri under its prefix, the same port and namespace",
        );
        diagnostic.related(location(root, outer.line), "the root rule matches this");
        found.push(diagnostic);
    }
}

/// Returns the first block of the root rule and the conflicting field, if all blocks conflict.
fn misfit<'a>(rule: &'a HttpRule, block: &HttpMatch) -> Option<(&'a HttpMatch, &'static str)> {
    let mut first = None;
    for outer in &rule.matches {
        let field = conflict(outer, block)?;
        first.get_or_insert((outer, field));
    }
    first
}

/// Returns the VirtualServices for one host of one Gateway, oldest first, if several are visible to every namespace.
fn shared_hosts<'a>(set: &'a ResourceSet, domain: &str) -> Vec<Vec<&'a Vs>> {
    let mut claims: HashMap<(&Name, Cow<'_, str>), Vec<&'a Vs>> = HashMap::new();
    for object in set.virtual_services.values() {
        if object.spec.export_to != ExportTo::All || object.spec.http.is_empty() {
            continue;
        }
        for gateway in &object.spec.gateways {
            let GatewayRef::Named(gateway) = &gateway.value else {
                continue;
            };
            for host in &object.spec.hosts {
                let host = hostname::complete(&host.value, &object.id.namespace, domain);
                claims.entry((gateway, host)).or_default().push(object);
            }
        }
    }
    let several = claims.into_values().filter(|objects| objects.len() > 1);
    let mut several: Vec<Vec<&'a Vs>> = several.collect();
    for objects in &mut several {
        objects.sort_by(|a, b| a.age().cmp(&b.age()));
    }
    // two objects that share several hosts, or hosts of several gateways, conflict once
    several
        .sort_by_cached_key(|objects| objects.iter().map(|one| one.id.clone()).collect::<Vec<_>>());
    several.dedup_by(|a, b| {
        a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| std::ptr::eq(*a, *b))
    });
    several
}

/// Warns of blocks of a newer VirtualService that an older one also has. Their routes are appended, so the newer block
/// is never reached.
fn check_shared(objects: &[&Vs], found: &mut Vec<Diagnostic>) {
    let rules: Vec<(&Vs, &HttpRule)> = objects
        .iter()
        .flat_map(|object| object.spec.http.iter().map(|rule| (*object, &**rule)))
        .collect();
    let mut earlier = Earlier::default();
    let mut start = 0;
    for object in objects {
        let own = rules[start..]
            .iter()
            .take_while(|(owner, _)| std::ptr::eq(*owner, *object));
        let end = start + own.count();
        let before = found.len();
        for (index, (_, rule)) in rules[start..end].iter().enumerate() {
            for (at, hidden) in earlier.hidden(rule) {
                if found.len() - before < FOUND_MAX {
                    let (path, line) = match at {
                        None => (format!("spec.http[{index}]"), rule.line),
                        Some(at) => (
                            format!("spec.http[{index}].match[{at}]"),
                            rule.matches[at].line,
                        ),
                    };
                    found.push(repeated(object, path, line, &hidden, &rules));
                }
            }
        }
        for (index, (_, rule)) in rules[start..end].iter().enumerate() {
            earlier.add(start + index, rule);
        }
        start = end;
    }
}

fn repeated(
    object: &Vs,
    path: String,
    line: Line,
    hidden: &Hidden,
    rules: &[(&Vs, &HttpRule)],
) -> Diagnostic {
    let (owner, by) = rules[hidden.rule];
    let message = format!(
        "never reached at the gateway: {} is older and takes these requests of the same host",
        owner.id
    );
    let mut diagnostic = warning(object, X288, line, path, message);
    diagnostic.help(
        "rules of several VirtualServices for one host follow each other by age, the oldest first",
    );
    let line = hidden.block.map_or(by.line, |block| by.matches[block].line);
    diagnostic.related(location(owner, line), "they are matched here");
    diagnostic
}
