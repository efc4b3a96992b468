//! Policies whose effect follows from the workloads that they select, and rules whose effect follows from other rules.

use std::sync::Arc;

use traffic::authz::Pattern;

use super::covers;
use super::policies::{
    Policies, Policy, RuleOf, Scope, about, has, has_ports, has_requests, names_identity, needs,
    pairs, path_patterns,
};
use crate::catalog::{PeerPolicy, View, Workload};
use crate::diagnostic::codes::istio::{AZ101, AZ103, AZ104, AZ106, AZ107, AZ109, AZ111, AZ133};
use crate::diagnostic::{Diagnostic, Severity, suggest};
use crate::resource::core::{Protocol, Service};
use crate::resource::istio::MutualTls;
use crate::resource::istio::authorization_policy::Action;
use crate::resource::{Object, port_protocol};
use crate::span::Line;
use crate::validate::references::finding::{location, warning};

/// Largest number of rules of a mesh that are compared with each other.
const COMPARED_MAX: usize = 500;

impl<'a> Policies<'a> {
    /// Warns of labels that no known workload has.
    pub(super) fn check_selector(&self, policy: &Policy, found: &mut Vec<Diagnostic>) {
        let selector = &policy.spec.scope.selector;
        let namespace = &*policy.id.namespace;
        let is_root = namespace == self.root_namespace;
        let mut gateways = self.set.gateways.values();
        let is_known = selector.is_empty()
            || is_root
            || !self.workloads().has_any(namespace)
            || self.workloads().may_select(namespace, selector)
            || gateways.any(|gateway| has(&gateway.spec.selector, selector));
        if is_known {
            return;
        }
        let near = selector.iter().find_map(|(key, value)| {
            let near = suggest::nearest(value, self.workloads().values(namespace, key))?;
            (near != value).then(|| format!("did you mean `{key}: {near}`?"))
        });
        let message = format!(
            "no Service or WorkloadEntry of namespace `{namespace}` has a workload with `{}`",
            pairs(selector)
        );
        let field = "spec.selector.matchLabels".to_owned();
        let mut diagnostic = warning(policy, AZ101, Line(0), field, message);
        if near.is_none() {
            // a pod need not belong to a Service
            diagnostic.severity = Severity::Note;
        }
        diagnostic.help(near.unwrap_or_else(|| {
            "nothing to do if its pods belong to no Service; else write labels of its pods"
                .to_owned()
        }));
        found.push(diagnostic);
    }

    /// Warns of rules that match nothing, and of rules that others make superfluous.
    pub(super) fn check_rules(&self, found: &mut Vec<Diagnostic>) {
        let rules = self.all.iter().flat_map(|policy| {
            let rules = policy.spec.rules.iter().enumerate();
            rules.map(move |(index, rule)| RuleOf {
                policy,
                index,
                rule,
            })
        });
        let rules: Vec<RuleOf<'_>> = rules.collect();
        for at in &rules {
            if covers::is_impossible(at.rule) {
                let message = "no request matches this rule: its conditions exclude each other";
                let mut diagnostic = about(at.policy, at.index, at.rule, AZ103, message);
                diagnostic.help(
                    "remove a condition; alternatives are further entries of `from`, `to` or `rules`",
                );
                found.push(diagnostic);
            }
        }
        if rules.len() > COMPARED_MAX {
            return;
        }
        for (place, inner) in rules.iter().enumerate() {
            let mut others = rules.iter().enumerate();
            let outer = others.find(|(other, outer)| {
                // of two equal rules, the later one is superfluous
                *other != place
                    && self.hides(outer, inner)
                    && (*other < place || !self.hides(inner, outer))
            });
            let Some((_, outer)) = outer else {
                continue;
            };
            let hiding = outer.policy;
            let what = match hiding.spec.action == inner.policy.spec.action {
                true => "already matches what this rule matches",
                false => "denies what this rule allows",
            };
            let message = format!("rule {} of {} {what}", outer.index, hiding.id);
            let mut diagnostic = about(inner.policy, inner.index, inner.rule, AZ104, &message);
            diagnostic.help("remove this rule, or narrow the other one");
            diagnostic.related(location(hiding, outer.rule.line), "the other rule");
            found.push(diagnostic);
        }
    }

    /// Whether a rule makes another one superfluous: it has the same action or denies, and takes all of its requests.
    fn hides(&self, outer: &RuleOf<'a>, inner: &RuleOf<'a>) -> bool {
        let (outer_action, action) = (&outer.policy.spec.action, &inner.policy.spec.action);
        let is_denied = *outer_action == Action::Deny && *action == Action::Allow;
        (outer_action == action || is_denied)
            && self.of(outer.policy).includes(self.of(inner.policy))
            && covers::covers(outer.rule, inner.rule)
    }

    /// Warns of rules for requests that have another effect on ports without requests.
    pub(super) fn check_raw_ports(&self, policy: &'a Policy, found: &mut Vec<Diagnostic>) {
        let raw = self.raw_ports(policy);
        if raw.is_empty() {
            return;
        }
        let ports = raw
            .iter()
            .map(|(port, _)| &**port)
            .take(4)
            .collect::<Vec<_>>()
            .join(", ");
        match policy.spec.action {
            Action::Deny => {
                let mut rules = policy.spec.rules.iter().enumerate();
                let wide = rules.find(|(_, rule)| has_requests(rule) && !has_ports(rule));
                let Some((index, rule)) = wide else {
                    return;
                };
                let message = format!(
                    "this rule also denies connections to ports without requests, where paths, methods and the like are not \
                     compared: {ports}"
                );
                let mut diagnostic = about(policy, index, rule, AZ106, &message);
                diagnostic.help("write `ports` of the workload beside these fields");
                found.push(diagnostic);
            }
            Action::Allow if !policy.spec.rules.is_empty() => {
                let admits = |other: &Policy| !other.spec.rules.iter().all(has_requests);
                let is_admitted = |scope: Scope<'_>| {
                    let mut others = self.all.iter();
                    others.any(|other| {
                        other.spec.action == Action::Allow
                            && self.of(other).may_meet(scope)
                            && admits(other)
                    })
                };
                if raw.iter().any(|(_, scope)| is_admitted(*scope)) {
                    return;
                }
                let message = format!(
                    "all rules compare fields of requests, so that each connection to ports without requests is denied: {ports}"
                );
                let field = "spec.rules".to_owned();
                let mut diagnostic =
                    warning(policy, AZ107, policy.spec.rules[0].line, field, message);
                diagnostic.help(
                    "add a rule with `ports` of the workload, and without fields of requests",
                );
                found.push(diagnostic);
            }
            _ => {}
        }
    }

    /// Warns of policies about requests at ports without a declared protocol, where clients may send none.
    pub(super) fn check_detected_ports(&self, found: &mut Vec<Diagnostic>) {
        let mut report = |object: &dyn Fn(String) -> Diagnostic, scope: Scope<'_>, effect: &str| {
            let ports = self.ports(scope, |word| word.is_empty());
            if let Some((port, _)) = ports.first() {
                let message = format!(
                    "clients of {port}, whose protocol is not declared, may send other bytes than requests: {effect}"
                );
                let mut diagnostic = object(message);
                diagnostic.help(
                    "write `appProtocol: http` at the port if it only takes requests, else `tcp`",
                );
                found.push(diagnostic);
            }
        };
        let custom = |policy: &&&Policy| matches!(policy.spec.action, Action::Custom(_));
        for policy in self.all.iter().filter(custom) {
            let about = |message| warning(*policy, AZ133, Line(0), "spec".to_owned(), message);
            let effect = "a provider over HTTP denies them";
            report(&about, self.of(policy), effect);
        }
        for tokens in self
            .tokens
            .iter()
            .filter(|one| one.spec.scope.targets.is_empty())
        {
            let about = |message| warning(*tokens, AZ133, Line(0), "spec".to_owned(), message);
            let effect = "no token is verified, and headers stay as the client sends them";
            report(&about, self.scope(*tokens, &tokens.spec.scope), effect);
        }
    }

    /// Returns the ports without requests of services whose workloads a policy certainly selects, each with the workloads.
    fn raw_ports(&self, policy: &'a Policy) -> Vec<(String, Scope<'a>)> {
        self.ports(self.of(policy), |word| !port_protocol::has_paths(word))
    }

    /// Returns the ports with such a protocol of services whose workloads are certainly in a scope, each with the workloads.
    fn ports(&self, scope: Scope<'_>, is_wanted: fn(&str) -> bool) -> Vec<(String, Scope<'a>)> {
        let services: Vec<&'a Arc<Object<Service>>> = match scope.namespace {
            Some(namespace) => View::from(self.set).in_namespace(namespace).collect(),
            None => self.set.services.values().collect(),
        };
        let services = services.into_iter().filter_map(|service| {
            let own = Scope {
                namespace: Some(&service.id.namespace),
                selector: &service.spec.selector,
            };
            (!own.selector.is_empty() && scope.includes(own)).then_some((service, own))
        });
        let ports = services.flat_map(|(service, own)| {
            let ports = service.spec.ports.iter().filter(|port| {
                let word = port_protocol::named(port.app_protocol.as_deref(), &port.name, "");
                port.protocol == Protocol::Tcp && is_wanted(word)
            });
            let name = &service.id.name;
            ports.map(move |port| (format!("`{}` of Service {name}", port.name), own))
        });
        ports.collect()
    }

    /// Warns of identities where clients without a certificate are accepted, so that a DENY rule is easy to get around.
    pub(super) fn check_plain_text(&self, policy: &Policy, found: &mut Vec<Diagnostic>) {
        let is_root = *policy.id.namespace == *self.root_namespace;
        let selector = &policy.spec.scope.selector;
        let mut gateways = self.set.gateways.values();
        if self.set.peer_authentications.is_empty()
            || is_root
            || policy.spec.action != Action::Deny
            || gateways.any(|gateway| has(&gateway.spec.selector, selector))
        {
            return;
        }
        let mut rules = policy.spec.rules.iter().enumerate();
        let by_identity = rules.find(|(_, rule)| needs(rule, &|one| names_identity(one)));
        let Some((index, rule)) = by_identity else {
            return;
        };
        let workload = Workload {
            namespace: &policy.id.namespace,
            labels: selector,
            root_namespace: self.root_namespace,
        };
        let accepted = PeerPolicy::of(self.set, workload).whole().clone();
        if accepted.mode == MutualTls::Strict {
            return;
        }
        let by = accepted
            .by
            .map_or("the default of the mesh".to_owned(), |by| by.to_string());
        let message = format!(
            "a client in plain text has no identity, and is not denied: the workloads accept it ({by})"
        );
        let mut diagnostic = about(policy, index, rule, AZ109, &message);
        diagnostic.help(
            "require mutual TLS by a PeerAuthentication with mode STRICT, or write an ALLOW policy",
        );
        found.push(diagnostic);
    }

    /// Warns of denied paths below which a route takes more.
    pub(super) fn check_longer_paths(&self, policy: &Policy, found: &mut Vec<Diagnostic>) {
        if policy.spec.action != Action::Deny {
            return;
        }
        let rules = &policy.spec.rules;
        let is_denied = |path: &str| {
            let mut all = rules.iter().flat_map(path_patterns);
            all.any(|one| one.matches(path.as_bytes(), false))
        };
        for (index, rule) in rules.iter().enumerate() {
            let open = path_patterns(rule).find_map(|pattern| match pattern {
                Pattern::Exact(path) if !path.ends_with('/') => {
                    let (route, line) = self.route_by(path)?;
                    (!is_denied(&format!("{path}/"))).then_some((path, route, line))
                }
                _ => None,
            });
            let Some((path, route, line)) = open else {
                continue;
            };
            let message =
                format!("`{path}` is denied, and paths below it are not, which a route takes");
            let mut diagnostic = about(policy, index, rule, AZ111, &message);
            diagnostic.help(format!("write `{path}/*` beside it, or `{path}*`"));
            diagnostic.related(location(route, line), "this route");
            found.push(diagnostic);
        }
    }
}
