//! Policies of both configurations, and requests that their rules name.

use std::sync::Arc;

use super::names::OTHER;
use super::points::{Part, Point};
use super::report::Report;
use crate::snapshot::{Listener, ListenerPolicies, Snapshot};
use traffic::authz::{Attribute, Condition, Pattern, Policies, Rule, Values};

/// Maximum number of values of a condition that are tried.
const VALUES_MAX: usize = 3;

/// Request of a rule of a policy: its parts, and the identity of the client.
pub(super) type PolicyRequest = (Point, Option<String>);

/// Reports whether the policies of a listener differ. Returns requests that their rules name; none if they are the same.
pub(super) fn requests(
    snapshots: [&Snapshot; 2],
    listeners: [&Arc<Listener>; 2],
    report: &mut Report,
) -> Vec<PolicyRequest> {
    let of = |number: usize| {
        let own = listeners[number].policies.as_deref();
        own.unwrap_or(&snapshots[number].policies)
    };
    let key = &listeners[0].key;
    let [before, after] = [of(0), of(1)];
    let tokens = |one: &ListenerPolicies| format!("{:?}", one.authentication);
    if tokens(before) != tokens(after) {
        report.note(format!("accepted tokens of {key} differ"), false);
    }
    let texts = [before, after].map(|one| {
        let texts = rules(one).map(|(stage, rule)| text(stage, rule));
        // an ALLOW policy without rules denies everything
        let authorization = one.authorization.as_deref();
        let allows = authorization.map(|one| (one.http.allow.is_some(), one.tcp.allow.is_some()));
        (allows, texts.collect::<Vec<String>>())
    });
    if texts[0] == texts[1] {
        return Vec::new();
    }
    let text = "differ: requests that only they tell apart were sampled";
    report.note(format!("authorization policies of {key} {text}"), false);
    let all = rules(before).chain(rules(after));
    let mut found: Vec<PolicyRequest> = all.flat_map(|(_, rule)| points(rule)).collect();
    found.push((Point::default(), None));
    found
}

fn rules(policies: &ListenerPolicies) -> impl Iterator<Item = (&'static str, &Rule)> {
    let both = policies.authorization.iter();
    let sets = both.flat_map(|one| [&one.http, &one.tcp]);
    let sets = sets.flat_map(Policies::sets);
    sets.flat_map(|(stage, set)| set.rules().iter().map(move |rule| (stage, &**rule)))
}

/// Returns all conditions of a rule, without its place.
fn text(stage: &str, rule: &Rule) -> String {
    let Rule { from, to, when, .. } = rule;
    format!("{stage} {} {from:?} {to:?} {when:?}", rule.policy.name)
}

fn points(rule: &Rule) -> Vec<PolicyRequest> {
    let nothing: Box<[Condition]> = Box::default();
    let operations = if rule.to.is_empty() {
        std::slice::from_ref(&nothing)
    } else {
        &rule.to
    };
    let sources = if rule.from.is_empty() {
        std::slice::from_ref(&nothing)
    } else {
        &rule.from
    };
    let mut found = Vec::new();
    for operation in operations {
        let paths = values(operation, &Attribute::Path, "/");
        let methods = values(operation, &Attribute::Method, "");
        for source in sources {
            for identity in values(source, &Attribute::Principal, "") {
                for path in &paths {
                    for method in &methods {
                        let mut point = Point::default();
                        for (part, value) in [(Part::Path, path), (Part::Method, method)] {
                            if let Some(value) = value {
                                point = point.with(part, Some(value.clone()));
                            }
                        }
                        found.push((point, identity.clone()));
                    }
                }
            }
        }
    }
    found
}

/// Returns texts that an attribute must have, or must not have; `None` for any.
fn values(conditions: &[Condition], wanted: &Attribute, start: &str) -> Vec<Option<String>> {
    let of_attribute = conditions.iter().filter(|one| one.attribute == *wanted);
    let patterns = of_attribute.flat_map(|one| [&one.values, &one.not_values]);
    let texts = patterns.flatten().flat_map(|values| match values {
        Values::Texts(patterns) => patterns.iter().map(|one| sample(one, start)).collect(),
        _ => Vec::new(),
    });
    let texts: Vec<Option<String>> = texts.take(VALUES_MAX).map(Some).collect();
    if texts.is_empty() { vec![None] } else { texts }
}

fn sample(pattern: &Pattern, start: &str) -> String {
    match pattern {
        Pattern::Exact(text) => text.to_string(),
        Pattern::Prefix(text) => format!("{text}{OTHER}"),
        Pattern::Suffix(text) => format!("{start}{OTHER}{text}"),
        Pattern::Any | Pattern::Present => format!("{start}{OTHER}"),
        Pattern::Glob(text) => text.replace('*', OTHER),
        Pattern::Template(text) => text.replace("{**}", OTHER).replace("{*}", OTHER),
    }
}
