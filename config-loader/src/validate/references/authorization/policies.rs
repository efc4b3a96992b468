//! Policies that are compared with each other and with workloads, and the parts of their rules.

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};

use traffic::authz::{Attribute, Condition, Pattern, Values};

use crate::diagnostic::{Code, Diagnostic};
use crate::resource::istio::authorization_policy::{PolicyMode, Rule};
use crate::resource::istio::{
    AuthorizationPolicy, PolicyScope, RequestAuthentication, StringMatch, VirtualService,
};
use crate::resource::{Object, ResourceSet};
use crate::span::Line;
use crate::validate::references::finding::warning;
use crate::validate::references::workloads::Workloads;

pub(super) type Policy = Object<AuthorizationPolicy>;
pub(super) type Labels = BTreeMap<String, String>;

/// Policies, and what they are checked against.
pub(super) struct Policies<'a> {
    pub(super) set: &'a ResourceSet,
    pub(super) root_namespace: &'a str,
    workloads: OnceCell<Workloads<'a>>,
    /// Prefixes of paths in routes, without their last slash.
    prefixes: OnceCell<HashMap<&'a str, (&'a Object<VirtualService>, Line)>>,
    /// Policies in effect that are selected by namespace and labels, oldest first.
    pub(super) all: Vec<&'a Policy>,
    pub(super) tokens: Vec<&'a Object<RequestAuthentication>>,
}

/// Workloads of a policy: of a namespace, or of all; with these labels.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) namespace: Option<&'a str>,
    pub(super) selector: &'a Labels,
}

impl Scope<'_> {
    /// Whether this scope has all workloads of the other one.
    pub(super) fn includes(self, other: Scope<'_>) -> bool {
        let is_namespace = self.namespace.is_none() || self.namespace == other.namespace;
        is_namespace && has(other.selector, self.selector)
    }

    /// Whether a workload may be in both.
    pub(super) fn may_meet(self, other: Scope<'_>) -> bool {
        let is_namespace = self.namespace.is_none()
            || other.namespace.is_none()
            || self.namespace == other.namespace;
        let mut labels = self.selector.iter();
        is_namespace
            && labels.all(|(key, value)| other.selector.get(key).is_none_or(|one| one == value))
    }
}

impl<'a> Policies<'a> {
    pub(super) fn new(set: &'a ResourceSet, root_namespace: &'a str) -> Self {
        let policies = set.authorization_policies.values().map(AsRef::as_ref);
        let mut all: Vec<&Policy> = policies
            .filter(|policy| policy.spec.mode == PolicyMode::Enforced)
            .filter(|policy| policy.spec.scope.targets.is_empty())
            .collect();
        all.sort_by(|a, b| a.age().cmp(&b.age()));
        let tokens = set.request_authentications.values().map(AsRef::as_ref);
        Self {
            set,
            root_namespace,
            workloads: OnceCell::new(),
            prefixes: OnceCell::new(),
            all,
            tokens: tokens.filter(|policy| !policy.spec.is_denying).collect(),
        }
    }

    pub(super) fn workloads(&self) -> &Workloads<'a> {
        self.workloads.get_or_init(|| Workloads::new(self.set))
    }

    /// Returns a route by exactly this prefix, with or without a slash at its end.
    pub(super) fn route_by(&self, path: &str) -> Option<(&'a Object<VirtualService>, Line)> {
        let prefixes = self.prefixes.get_or_init(|| {
            let mut prefixes = HashMap::new();
            for object in self.set.virtual_services.values() {
                let matches = object.spec.http.iter().flat_map(|rule| &rule.matches);
                for one in matches {
                    if let Some(StringMatch::Prefix(prefix)) = &one.uri {
                        let prefix = prefix.trim_end_matches('/');
                        prefixes.entry(prefix).or_insert((&**object, one.line));
                    }
                }
            }
            prefixes
        });
        prefixes.get(path).copied()
    }

    pub(super) fn scope<'p, T>(
        &'p self,
        object: &'p Object<T>,
        scope: &'p PolicyScope,
    ) -> Scope<'p> {
        let namespace = &*object.id.namespace;
        Scope {
            namespace: (namespace != self.root_namespace).then_some(namespace),
            selector: &scope.selector,
        }
    }

    pub(super) fn of<'p>(&'p self, policy: &'p Policy) -> Scope<'p> {
        self.scope(policy, &policy.spec.scope)
    }
}

/// Whether labels have all those of a selector.
pub(super) fn has(labels: &Labels, selector: &Labels) -> bool {
    let mut selector = selector.iter();
    selector.all(|(key, value)| labels.get(key) == Some(value))
}

pub(super) fn pairs(labels: &Labels) -> String {
    let pairs = labels.iter().map(|(key, value)| format!("{key}={value}"));
    pairs.collect::<Vec<_>>().join(",")
}

/// Rule of a policy.
#[derive(Clone, Copy)]
pub(super) struct RuleOf<'a> {
    pub(super) policy: &'a Policy,
    pub(super) index: usize,
    pub(super) rule: &'a Rule,
}

/// Returns a finding about a rule.
pub(super) fn about(
    policy: &Policy,
    index: usize,
    rule: &Rule,
    code: Code,
    message: &str,
) -> Diagnostic {
    let field = format!("spec.rules[{index}]");
    warning(policy, code, rule.line, field, message.to_owned())
}

pub(super) fn conditions(rule: &Rule) -> impl Iterator<Item = &Condition> {
    let groups = rule.from.iter().chain(&rule.to);
    groups.flatten().chain(&rule.when)
}

pub(super) fn has_requests(rule: &Rule) -> bool {
    conditions(rule).any(|one| one.attribute.is_of_requests())
}

pub(super) fn has_ports(rule: &Rule) -> bool {
    let is_port = |one: &Condition| one.attribute == Attribute::DestinationPort;
    needs(rule, &is_port)
}

/// Whether each request that matches a rule meets one of these conditions.
pub(super) fn needs(rule: &Rule, wanted: &dyn Fn(&Condition) -> bool) -> bool {
    let group =
        |all: &[Vec<Condition>]| !all.is_empty() && all.iter().all(|one| one.iter().any(wanted));
    rule.when.iter().any(wanted) || group(&rule.from) || group(&rule.to)
}

/// Whether a condition holds only for clients with a certain identity.
pub(super) fn names_identity(one: &Condition) -> bool {
    let is_identity = matches!(
        one.attribute,
        Attribute::Principal
            | Attribute::Namespace
            | Attribute::ServiceAccount
            | Attribute::TrustDomain
    );
    is_identity && one.values.is_some()
}

pub(super) fn path_patterns(rule: &Rule) -> impl Iterator<Item = &Pattern> {
    let paths = conditions(rule).filter(|one| one.attribute == Attribute::Path);
    paths.flat_map(|one| match &one.values {
        Some(Values::Texts(patterns)) => &**patterns,
        _ => &[],
    })
}
