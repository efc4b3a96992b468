//! Merged DestinationRules of one host. A setting in several rules is taken from the oldest.

use std::collections::HashMap;

use super::finding::{location, warning};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::references::X324;
use crate::resource::istio::DestinationRule;
use crate::resource::{Object, ResourceSet};
use crate::span::Line;

type Rule = Object<DestinationRule>;

/// Warns of settings that the merge of DestinationRules drops.
pub(super) fn check(set: &ResourceSet, domain: &str, found: &mut Vec<Diagnostic>) {
    let mut by_host: HashMap<(&str, String), Vec<&Rule>> = HashMap::new();
    for object in set.destination_rules.values() {
        let host = (&*object.id.namespace, object.full_host(domain));
        by_host.entry(host).or_default().push(object);
    }
    let mut several: Vec<Vec<&Rule>> = by_host
        .into_values()
        .filter(|rules| rules.len() > 1)
        .collect();
    several.sort_by_cached_key(|rules| rules.iter().map(|rule| rule.id.clone()).min());
    for rules in &mut several {
        rules.sort_by(|a, b| a.age().cmp(&b.age()));
        for (number, rule) in rules.iter().enumerate() {
            let older = rules[..number].iter().copied();
            let merged: Vec<&Rule> = older.filter(|older| older.is_merged_with(rule)).collect();
            check_rule(rule, &merged, found);
        }
    }
}

fn check_rule(rule: &Rule, older: &[&Rule], found: &mut Vec<Diagnostic>) {
    let mut dropped = |line: Line, field: String, what: String, (owner, at): (&Rule, Line)| {
        let message = format!("{what} is not used: {} is older and has one", owner.id);
        let mut diagnostic = warning(rule, X324, line, field, message);
        diagnostic.help(
            "rules for one host are merged, the oldest first: write each setting in one of them",
        );
        diagnostic.related(location(owner, at), "this one counts");
        found.push(diagnostic);
    };
    let has_policy = |rule: &&&Rule| rule.spec.traffic_policy.is_written();
    if rule.spec.traffic_policy.is_written()
        && let Some(owner) = older.iter().find(has_policy)
    {
        let field = "spec.trafficPolicy".to_owned();
        dropped(Line(0), field, "trafficPolicy".to_owned(), (owner, Line(0)));
    }
    for (index, subset) in rule.spec.subsets.iter().enumerate() {
        let mut owners = older.iter();
        let owner = owners.find_map(|owner| Some((*owner, owner.spec.subset(&subset.name)?.line)));
        if let Some(owner) = owner {
            let what = format!("subset `{}`", subset.name);
            dropped(
                subset.line,
                format!("spec.subsets[{index}].name"),
                what,
                owner,
            );
        }
    }
}
