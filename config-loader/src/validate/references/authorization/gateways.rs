//! Policies at gateways: identities that no client can have there, and CORS preflights that no rule admits.

use std::sync::Arc;

use traffic::authz::{Attribute, Condition, Pattern, RequestPrincipal, Values};

use super::policies::{Policies, Policy, about, conditions, has, names_identity, needs};
use super::{clients, tokens};
use crate::diagnostic::codes::istio::{AZ102, AZ109, AZ118};
use crate::diagnostic::{Diagnostic, suggest};
use crate::kind::Name;
use crate::resource::istio::authorization_policy::{Action, Rule};
use crate::resource::istio::{Gateway, GatewayRef, PolicyTarget, ServerTlsMode, VirtualService};
use crate::resource::{Object, ResourceSet};
use crate::span::Line;
use crate::validate::references::finding::{location, warning};

pub(super) fn check(policies: &Policies<'_>, policy: &Policy, found: &mut Vec<Diagnostic>) {
    let selector = &policy.spec.scope.selector;
    let gateways = policies.set.gateways.values().map(AsRef::as_ref);
    let gateways: Vec<&Object<Gateway>> = gateways
        .filter(|gateway| !selector.is_empty() && has(&gateway.spec.selector, selector))
        .collect();
    if gateways.is_empty() {
        return;
    }
    check_identities(policy, &gateways, found);
    check_preflights(policies, policy, &gateways, found);
    clients::check_headers(policies, policy, found);
}

/// Warns of targets that do not exist.
pub(super) fn check_targets(set: &ResourceSet, found: &mut Vec<Diagnostic>) {
    let known = &set.kubernetes_gateways;
    for policy in set.authorization_policies.values() {
        let namespace = &policy.id.namespace;
        let targets = policy.spec.scope.targets.iter();
        let named = targets.filter_map(|target| match target {
            PolicyTarget::Gateway(name) => Some(name),
            _ => None,
        });
        for name in named {
            if known.contains_key(&Name::new(Arc::clone(namespace), Arc::clone(name))) {
                continue;
            }
            let message = format!(
                "Gateway {namespace}/{name} does not exist: the policy decides nothing for it"
            );
            let field = "spec.targetRefs".to_owned();
            let mut diagnostic = warning(policy, AZ102, Line(0), field, message);
            let here = known.keys().filter(|one| one.namespace == *namespace);
            let near = suggest::nearest(name, here.map(|one| &*one.name));
            let near = near.map(|near| format!("did you mean `{near}`?"));
            diagnostic.help(near.unwrap_or_else(|| {
                "write the name of a Gateway of gateway.networking.k8s.io in this namespace"
                    .to_owned()
            }));
            found.push(diagnostic);
        }
    }
}

/// Warns of rules for identities at gateways that ask no client for a certificate.
fn check_identities(policy: &Policy, gateways: &[&Object<Gateway>], found: &mut Vec<Diagnostic>) {
    let mut servers = gateways.iter().flat_map(|gateway| &gateway.spec.servers);
    let takes_certificates = servers.any(|server| {
        server.tls.as_ref().is_some_and(|tls| {
            let none = [ServerTlsMode::Simple, ServerTlsMode::Passthrough];
            !none.contains(&tls.mode)
        })
    });
    if takes_certificates || policy.spec.action != Action::Allow {
        return;
    }
    for (index, rule) in policy.spec.rules.iter().enumerate() {
        if needs(rule, &|one| names_identity(one)) {
            let message =
                "no client has an identity here: no server of the gateway asks for a certificate";
            let mut diagnostic = about(policy, index, rule, AZ109, message);
            diagnostic.help("write `tls.mode: MUTUAL` or `ISTIO_MUTUAL` at a server, or decide by `requestPrincipals` or addresses");
            let gateway = gateways[0];
            diagnostic.related(location(gateway, Line(0)), "this Gateway");
            found.push(diagnostic);
        }
    }
}

/// Warns of policies that admit no preflight, which has no token, where a route answers them.
fn check_preflights(
    policies: &Policies<'_>,
    policy: &Policy,
    gateways: &[&Object<Gateway>],
    found: &mut Vec<Diagnostic>,
) {
    let denies = match policy.spec.action {
        Action::Deny => policy.spec.rules.iter().any(denies_preflights),
        Action::Allow if !policy.spec.rules.is_empty() => {
            let scope = policies.of(policy);
            let mut others = policies.all.iter().filter(|other| {
                other.spec.action == Action::Allow && policies.of(other).may_meet(scope)
            });
            let needs_token = |rule: &Rule| needs(rule, &tokens::needs_token);
            let has_tokens = policy.spec.rules.iter().any(needs_token);
            has_tokens
                && others.all(|other| {
                    other
                        .spec
                        .rules
                        .iter()
                        .all(|rule| needs_token(rule) || !takes_options(rule))
                })
        }
        _ => false,
    };
    if !denies {
        return;
    }
    let Some((route, line)) = cors_route(policies, gateways) else {
        return;
    };
    let message =
        "preflights of browsers have no token, so that they are denied before CORS answers them";
    let field = "spec.rules".to_owned();
    let mut diagnostic = warning(policy, AZ118, Line(0), field, message.to_owned());
    diagnostic.help("admit `methods: [OPTIONS]` without a token");
    diagnostic.related(location(route, line), "this rule has a corsPolicy");
    found.push(diagnostic);
}

/// Returns a rule with a CORS policy at one of the gateways.
fn cors_route<'a>(
    policies: &Policies<'a>,
    gateways: &[&Object<Gateway>],
) -> Option<(&'a Object<VirtualService>, Line)> {
    policies.set.virtual_services.values().find_map(|object| {
        let mut named = object.spec.gateways.iter();
        let is_here = named.any(|one| match &one.value {
            GatewayRef::Named(name) => gateways.iter().any(|gateway| gateway.id.to_name() == *name),
            GatewayRef::Mesh => false,
        });
        let mut rules = object.spec.http.iter().filter(|_| is_here);
        let rule = rules.find(|rule| rule.cors.is_some())?;
        Some((&**object, rule.line))
    })
}

/// Whether a rule matches every request without a token, preflights included.
fn denies_preflights(rule: &Rule) -> bool {
    let is_absent = |one: &Condition| {
        one.attribute == Attribute::RequestPrincipal
            && one.values.is_none()
            && matches!(&one.not_values, Some(Values::Principals(all)) if all.contains(&RequestPrincipal::of("*")))
    };
    conditions(rule).any(is_absent) && rule.to.is_empty() && conditions(rule).all(is_absent)
}

/// Whether a preflight may match the methods of a rule.
fn takes_options(rule: &Rule) -> bool {
    let excludes = |one: &Condition| {
        let has = |values: &Option<Values>| match values {
            Some(Values::Texts(all)) => Some(
                all.iter()
                    .any(|one: &Pattern| one.matches(b"OPTIONS", false)),
            ),
            _ => None,
        };
        one.attribute == Attribute::Method
            && (has(&one.values) == Some(false) || has(&one.not_values) == Some(true))
    };
    !needs(rule, &excludes)
}
