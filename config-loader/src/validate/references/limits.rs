//! BackendTrafficPolicies without an effect: targets that do not exist, or that an older policy has; limits that clients
//! can avoid.

use std::sync::Arc;

use super::finding::{location, warning};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::limits::{RL102, RL103, RL105, RL106, RL107};
use crate::kind::Name;
use crate::resource::envoy_gateway::BackendTrafficPolicy;
use crate::resource::envoy_gateway::backend_traffic_policy::{
    LimitRule, Selector, Target, TargetKind, ValueMatch,
};
use crate::resource::istio::{HttpAction, HttpRule};
use crate::resource::{Object, ResourceSet};

type Policy = Object<BackendTrafficPolicy>;

pub(super) fn check(set: &ResourceSet, found: &mut Vec<Diagnostic>) {
    let mut policies: Vec<&Arc<Policy>> = set.backend_traffic_policies.values().collect();
    policies.sort_by(|a, b| a.age().cmp(&b.age()));
    for (index, policy) in policies.iter().enumerate() {
        for (number, target) in policy.spec.targets.iter().enumerate() {
            let field = format!("spec.targetRefs[{number}]");
            let older = policies[..index].iter().find(|older| {
                let mut targets = older.spec.targets.iter();
                older.id.namespace == policy.id.namespace && targets.any(|one| is_same(one, target))
            });
            if let Some(older) = older {
                let message = format!("{} is older, and has the same target", older.id);
                let mut diagnostic = warning(policy, RL103, target.line, field, message);
                diagnostic.help("write all limits of a target in one policy");
                diagnostic.related(location(older, target.line), "this one counts");
                found.push(diagnostic);
                continue;
            }
            check_target(set, policy, target, &field, found);
        }
        let rules = policy.spec.local.iter().chain(&policy.spec.global);
        for rule in rules {
            found.extend(chosen_by_clients(set, policy, rule));
        }
    }
}

fn is_same(one: &Target, other: &Target) -> bool {
    (one.kind, &one.name, &one.section) == (other.kind, &other.name, &other.section)
}

/// Reports a target that does not exist, or whose requests no limit counts.
fn check_target(
    set: &ResourceSet,
    policy: &Policy,
    target: &Target,
    field: &str,
    found: &mut Vec<Diagnostic>,
) {
    let name = Name {
        namespace: Arc::clone(&policy.id.namespace),
        name: Arc::clone(&target.name),
    };
    let mut report = |code, message, help: &str| {
        let mut diagnostic = warning(policy, code, target.line, field.to_owned(), message);
        diagnostic.help(help);
        found.push(diagnostic);
    };
    let (kind, exists) = match target.kind {
        TargetKind::Unread => return,
        TargetKind::Gateway => ("Gateway", set.gateways.contains_key(&name)),
        TargetKind::Service => ("Service", set.services.contains_key(&name)),
        TargetKind::VirtualService => ("VirtualService", set.virtual_services.contains_key(&name)),
    };
    if !exists {
        let message = format!("no {kind} has the name `{name}`: the limits apply to nothing");
        return report(RL102, message, "targets are in the namespace of the policy");
    }
    if let Some(service) = set.services.get(&name).filter(|_| kind == "Service") {
        let is_grpc = |protocol: &Arc<str>| protocol.to_ascii_lowercase().starts_with("grpc");
        let mut ports = service.spec.ports.iter();
        let has_grpc = ports.any(|port| is_grpc(port.app_protocol.as_ref().unwrap_or(&port.name)));
        if has_grpc && policy.spec.body_max.is_some() {
            let message = "bodies of gRPC requests are not limited".to_owned();
            report(RL107, message, "limit messages in the workload");
        }
    }
    if let Some(routes) = set
        .virtual_services
        .get(&name)
        .filter(|_| kind == "VirtualService")
    {
        let is_meant = |rule: &&Arc<HttpRule>| {
            let section = target.section.as_ref();
            section.is_none_or(|section| *section == rule.name)
        };
        let mut rules = routes.spec.http.iter().filter(is_meant).peekable();
        if rules.peek().is_none() {
            let section = target.section.as_deref().unwrap_or_default();
            let message = format!("no http rule of {} has the name `{section}`", routes.id);
            return report(
                RL102,
                message,
                "write the `name` of a rule as `sectionName`",
            );
        }
        let ends = |rule: &Arc<HttpRule>| {
            matches!(
                rule.action,
                HttpAction::DirectResponse(_) | HttpAction::Redirect(_)
            )
        };
        if rules.all(ends) {
            let message = "redirects and direct responses are not limited".to_owned();
            report(RL105, message, "name a rule with `route`");
        }
    }
}

/// Returns the diagnostic about a rule that tells clients apart only by a value that they choose.
fn chosen_by_clients(set: &ResourceSet, policy: &Policy, rule: &LimitRule) -> Option<Diagnostic> {
    let mut chosen = None;
    for selector in &rule.selectors {
        match selector {
            Selector::Source(_, true) => return None,
            Selector::Header(name, ValueMatch::Distinct) if is_of_tokens(set, name) => return None,
            Selector::Header(name, ValueMatch::Distinct) => chosen = Some(("header", name)),
            Selector::QueryParam(name, ValueMatch::Distinct) => {
                chosen = Some(("query parameter", name));
            }
            _ => {}
        }
    }
    let (what, name) = chosen?;
    let message = format!("a client that changes the {what} `{name}` has a limit of its own again");
    let field = "spec.rateLimit".to_owned();
    let mut diagnostic = warning(policy, RL106, rule.line, field, message);
    diagnostic.help("let a RequestAuthentication set the header, or add a rule by address");
    Some(diagnostic)
}

/// Whether a header has a claim of verified tokens, so that clients cannot choose it.
fn is_of_tokens(set: &ResourceSet, header: &str) -> bool {
    let policies = set.request_authentications.values();
    let mut rules = policies.flat_map(|policy| &policy.spec.rules);
    rules.any(|rule| rule.claim_headers.iter().any(|(name, _)| **name == *header))
}

#[cfg(test)]
mod tests;
