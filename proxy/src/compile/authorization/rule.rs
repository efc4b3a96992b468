//! Rules of an AuthorizationPolicy in the form that traffic asks.

use std::sync::Arc;

use config_loader::Kind;
use config_loader::resource::Object;
use config_loader::resource::istio::AuthorizationPolicy;
use config_loader::resource::istio::authorization_policy::{Alternative, PolicyMode};

use super::principals;
use crate::compile::provenance::provenance_of;
use crate::identity::Identity;
use crate::telemetry::PolicyTally;
use traffic::authz::{Attribute, Condition, Policy, Rule, Values};

/// Returns the rules of a policy.
pub(super) fn rules(
    object: &Object<AuthorizationPolicy>,
    matches: Arc<PolicyTally>,
    identity: &Identity,
) -> Vec<Arc<Rule>> {
    let policy = Arc::new(Policy {
        namespace: Arc::clone(&object.id.namespace),
        name: Arc::clone(&object.id.name),
        provenance: provenance_of(object, 0),
        matches,
    });
    let is_invalid = object.spec.mode == PolicyMode::Denying;
    let rules = object.spec.rules.iter().enumerate();
    let rules = rules.map(|(number, rule)| {
        // access policies of Gloo name trust domains of clusters, which have no other names
        let conditions = |all: &[Condition]| match object.id.kind {
            Kind::AuthorizationPolicy => conditions(all, identity),
            _ => all.into(),
        };
        let group = |group: &[Alternative]| {
            let alternatives = group.iter().map(|one| conditions(one));
            alternatives.collect()
        };
        let (namespace, name) = (&policy.namespace, &policy.name);
        Arc::new(Rule {
            name: match is_invalid {
                true => format!("ns[{namespace}]-policy[{name}]-invalid"),
                false => format!("ns[{namespace}]-policy[{name}]-rule[{number}]"),
            }
            .into(),
            policy: Arc::clone(&policy),
            line: object.line_of(rule.line),
            from: group(&rule.from),
            to: group(&rule.to),
            when: conditions(&rule.when),
        })
    });
    rules.collect()
}

/// Returns a rule for connections without requests, which cannot be compared with conditions on requests: an ALLOW rule
/// with such a condition is left out, and another rule loses it.
///
/// Source: Istio, "TCP" in the reference of AuthorizationPolicy.
pub(super) fn for_connections(rule: &Arc<Rule>, is_allow: bool) -> Option<Arc<Rule>> {
    let of_requests = |condition: &Condition| condition.attribute.is_of_requests();
    let groups = [&rule.from, &rule.to];
    let mut conditions = groups.into_iter().flatten().flatten().chain(&rule.when);
    if !conditions.any(of_requests) {
        return Some(Arc::clone(rule));
    }
    if is_allow {
        return None;
    }
    let rest = |conditions: &[Condition]| -> Box<[Condition]> {
        let rest = conditions.iter().filter(|one| !of_requests(one));
        rest.cloned().collect()
    };
    let group = |group: &[Box<[Condition]>]| -> Box<[Box<[Condition]>]> {
        let rest: Box<[Box<[Condition]>]> = group.iter().map(|one| rest(one)).collect();
        // an alternative without conditions takes in everything
        match rest.iter().any(|one| one.is_empty()) {
            true => Box::default(),
            false => rest,
        }
    };
    Some(Arc::new(Rule {
        from: group(&rule.from),
        to: group(&rule.to),
        when: rest(&rule.when),
        ..Rule::clone(rule)
    }))
}

/// Returns conditions with the trust domains and settings of this proxy.
fn conditions(conditions: &[Condition], identity: &Identity) -> Box<[Condition]> {
    let conditions = conditions.iter().cloned().map(|mut condition| {
        if let Attribute::Host { is_bare } = &mut condition.attribute {
            *is_bare &= !identity.mesh.exact_policy_hosts;
        }
        let Condition {
            attribute,
            values,
            not_values,
        } = &mut condition;
        for values in [values, not_values] {
            if let Some(Values::Texts(patterns)) = values {
                principals::expand(attribute, patterns, &identity.workload);
            }
        }
        condition
    });
    conditions.collect()
}
