//! Rules, virtual hosts, subsets and policies that no test has reached.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::{Value, json};

use super::runner::{AskedProxies, AskedProxy, Outcome};
use crate::explain::Explanation;
use crate::explain::answer::Source;
use crate::snapshot::Listener;
use traffic::provenance::Provenance;

/// Part of the configuration: what it is, and where.
type Part = (&'static str, String, u32, String);

/// Parts of the configuration, each with whether a test has reached it.
#[derive(Debug, Default)]
pub(super) struct Coverage(BTreeMap<Part, bool>);

impl Coverage {
    /// Collects the parts that proxies use, and marks the ones that tests have reached.
    pub(super) fn of<'o>(
        proxies: impl Iterator<Item = &'o AskedProxies>,
        outcomes: impl Iterator<Item = &'o Outcome>,
    ) -> Self {
        let mut parts = BTreeMap::new();
        for proxy in proxies.flat_map(BTreeMap::values) {
            for part in parts_of(proxy) {
                parts.insert(part, false);
            }
        }
        let answers = outcomes.flat_map(|one| &one.answers);
        let reached: BTreeSet<Part> = answers.flat_map(reached).collect();
        for (part, is_reached) in &mut parts {
            *is_reached = reached.contains(part);
        }
        Self(parts)
    }

    /// Percentage of parts that tests have reached; 100 if there is none.
    pub(super) fn percent(&self) -> f64 {
        let reached = self.0.values().filter(|is_reached| **is_reached).count();
        match self.0.len() {
            0 => 100.0,
            all => reached as f64 * 100.0 / all as f64,
        }
    }

    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        for ((what, file, line, name), _) in self.0.iter().filter(|(_, reached)| !**reached) {
            _ = writeln!(out, "untested {what} {name}  {file}:{line}");
        }
        _ = writeln!(out, "coverage {:.1} %", self.percent());
        out
    }

    pub(super) fn json(&self) -> Value {
        let missing = self.0.iter().filter(|(_, reached)| !**reached);
        let missing: Vec<Value> = missing
            .map(|((what, file, line, name), _)| {
                json!({"kind": what, "name": name, "file": file, "line": line})
            })
            .collect();
        json!({"percent": self.percent(), "untested": missing})
    }
}

fn part(what: &'static str, at: &Source, name: &str) -> Part {
    let name = match name {
        "" => at.object.clone(),
        name => format!("{name} of {}", at.object),
    };
    (what, at.file.clone(), at.line, name)
}

/// Parts that a proxy uses. What every service has without a resource of its own is none.
fn parts_of(proxy: &AskedProxy) -> Vec<Part> {
    let mut parts = Vec::new();
    for listener in proxy.snapshot.listeners.values() {
        of_listener(listener, &mut parts);
    }
    let policies = proxy.snapshot.policies.authorization.iter();
    let attached = proxy.snapshot.listeners.values();
    let attached = attached.filter_map(|one| one.policies.as_deref()?.authorization.as_ref());
    let sides = policies
        .chain(attached)
        .flat_map(|one| [&one.http, &one.tcp]);
    for rule in sides
        .flat_map(|one| one.sets())
        .flat_map(|(_, set)| set.rules())
    {
        let at = Source {
            line: rule.line,
            ..Source::from(&rule.policy.provenance)
        };
        parts.push(part("policy rule", &at, ""));
    }
    parts
}

fn of_listener(listener: &Listener, parts: &mut Vec<Part>) {
    for routes in listener.all_opaque() {
        for rule in routes.table.rules().iter() {
            parts.push(part("rule", &Source::from(&rule.provenance), ""));
        }
    }
    let is_generated = |at: &Provenance| at.object.starts_with("Service/");
    for host in listener.all_http().flat_map(|hosts| hosts.all()) {
        for (rule, route) in host.table.rules().iter().zip(host.routes.iter()) {
            if is_generated(&rule.provenance) {
                continue;
            }
            parts.push(part("rule", &Source::from(&rule.provenance), &rule.name));
            for (_, destination) in route.split.iter().flat_map(|split| split.entries()) {
                let (_, _, subset) = crate::explain::parts(&destination.name);
                if !subset.is_empty() {
                    parts.push(part(
                        "subset",
                        &Source::from(&destination.provenance),
                        &subset,
                    ));
                }
            }
        }
    }
}

/// Parts that an answer has reached.
fn reached(answer: &Explanation) -> Vec<Part> {
    let rules = answer.rules.iter().filter(|rule| rule.matched);
    let mut parts: Vec<Part> = rules
        .map(|rule| part("rule", &rule.source, &rule.name))
        .collect();
    let subsets = super::compare::used(answer).filter(|one| !one.subset.is_empty());
    parts.extend(subsets.map(|one| part("subset", &one.source, &one.subset)));
    let policies = answer.authorization.iter().flat_map(|one| &one.rules);
    let policies = policies.filter(|rule| rule.failed.is_none());
    parts.extend(policies.map(|rule| part("policy rule", &rule.source, "")));
    parts
}
