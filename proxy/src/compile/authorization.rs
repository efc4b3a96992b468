//! AuthorizationPolicies that apply to this proxy, and access policies of Gloo, as rules of `authz`.
//!
//! Rules of a policy are kept from one compile to the next while the policy stays the same object.

mod access_policies;
mod principals;
mod rule;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use config_loader::resource::Object;
use config_loader::resource::istio::AuthorizationPolicy;
use config_loader::resource::istio::authorization_policy::{Action, PolicyMode};

use access_policies::KeptAccessPolicies;

use crate::compile::Inputs;
use crate::compile::applies::ByPolicies;
use crate::compile::members::Members;
use crate::identity::Identity;
use crate::telemetry::{PolicyLabels, StatsRegistry};
use traffic::authz::{Authorization, DryRun, Policies, Rule, RuleSet};

/// Largest number of policies with a metric of their own.
const POLICY_LABELS_MAX: usize = 1_000;

/// Rules of the last compile, and of the present one.
#[derive(Default)]
pub(in crate::compile) struct KeptRules {
    access_policies: KeptAccessPolicies,
    /// Access policies of this compile.
    of_gloo: Vec<Arc<Object<AuthorizationPolicy>>>,
    combined: ByPolicies<AuthorizationPolicy, Combined>,
}

/// Rules of policies that apply to the same traffic.
struct Combined {
    policies: Vec<Arc<PolicyRules>>,
    authorization: Arc<Authorization>,
}

/// Rules of one policy.
struct PolicyRules {
    object: Arc<Object<AuthorizationPolicy>>,
    http: Vec<Arc<Rule>>,
    tcp: Vec<Arc<Rule>>,
}

impl KeptRules {
    /// Begins a compile.
    pub(in crate::compile) fn start(&mut self, inputs: &Inputs<'_>, members: &Members) {
        let of_gloo = self.access_policies.follow(inputs, members);
        self.of_gloo = of_gloo.cloned().collect();
        self.combined.start();
    }

    /// Ends a compile.
    pub(in crate::compile) fn finish(&mut self) {
        self.combined.finish();
    }

    /// Returns these policies, with the access policies of Gloo; `None` without any.
    pub(in crate::compile) fn combine(
        &mut self,
        selected: Vec<&Arc<Object<AuthorizationPolicy>>>,
        inputs: &Inputs<'_>,
    ) -> Option<Arc<Authorization>> {
        let identity = inputs.identity;
        let mut selected: Vec<&Arc<_>> = selected;
        selected.sort_by_key(|policy| {
            (
                *policy.id.namespace != *identity.root_namespace,
                policy.age(),
            )
        });
        selected.extend(&self.of_gloo);
        if selected.is_empty() {
            return None;
        }
        if let Some(known) = self.combined.find(&selected) {
            return Some(Arc::clone(&known.authorization));
        }
        let kept = self.combined.all().flat_map(|one| &one.policies);
        let kept: HashMap<_, _> = kept
            .map(|rules| (Arc::as_ptr(&rules.object), rules))
            .collect();
        let others = self.distinct().len();
        let rules = selected.iter().enumerate().map(|(number, policy)| {
            let kept = kept.get(&Arc::as_ptr(policy)).copied().cloned();
            let number = others + number;
            kept.unwrap_or_else(|| {
                Arc::new(PolicyRules::of(policy, number, identity, inputs.stats))
            })
        });
        let policies: Vec<Arc<PolicyRules>> = rules.collect();
        let authorization = Arc::new(Authorization {
            http: self::policies(&policies, |rules| &rules.http),
            tcp: self::policies(&policies, |rules| &rules.tcp),
        });
        let combined = Combined {
            policies,
            authorization: Arc::clone(&authorization),
        };
        self.combined.add(&selected, combined);
        Some(authorization)
    }

    /// Returns the combinations of this compile.
    pub(in crate::compile) fn all(&self) -> impl Iterator<Item = &Authorization> {
        self.combined.now().map(|one| &*one.authorization)
    }

    /// Returns the number of policies of this compile: enforced, in dry run, denying.
    pub(in crate::compile) fn counts(&self) -> [u64; 3] {
        let modes = [
            PolicyMode::Enforced,
            PolicyMode::DryRun,
            PolicyMode::Denying,
        ];
        let all = self.distinct();
        modes.map(|mode| all.values().filter(|policy| policy.mode == mode).count() as u64)
    }

    fn distinct(&self) -> HashMap<*const Object<AuthorizationPolicy>, &AuthorizationPolicy> {
        let all = self.combined.now().flat_map(|one| &one.policies);
        all.map(|rules| (Arc::as_ptr(&rules.object), &*rules.object.spec))
            .collect()
    }
}

impl PolicyRules {
    fn of(
        object: &Arc<Object<AuthorizationPolicy>>,
        number: usize,
        identity: &Identity,
        stats: &StatsRegistry,
    ) -> Self {
        let policy = &object.spec;
        let is_other = number >= POLICY_LABELS_MAX;
        let labels = PolicyLabels {
            namespace: match is_other {
                true => "other".into(),
                false => Arc::clone(&object.id.namespace),
            },
            name: match is_other {
                true => "other".into(),
                false => Arc::clone(&object.id.name),
            },
            action: action_name(&policy.action),
            is_dry_run: policy.mode == PolicyMode::DryRun,
        };
        let http = rule::rules(object, stats.policy_tally(&labels), identity);
        let is_allow = policy.action == Action::Allow;
        let tcp = http
            .iter()
            .filter_map(|rule| rule::for_connections(rule, is_allow));
        Self {
            object: Arc::clone(object),
            tcp: tcp.collect(),
            http,
        }
    }
}

fn action_name(action: &Action) -> &'static str {
    match action {
        Action::Allow => "ALLOW",
        Action::Deny => "DENY",
        Action::Audit => "AUDIT",
        Action::Custom(_) => "CUSTOM",
    }
}

/// Combines the rules of policies by their actions.
fn policies(all: &[Arc<PolicyRules>], rules_of: fn(&PolicyRules) -> &Vec<Arc<Rule>>) -> Policies {
    let of = |action: &Action, is_dry_run: bool| {
        let mut chosen = all.iter().filter(|rules| {
            let policy = &rules.object.spec;
            policy.action == *action && (policy.mode == PolicyMode::DryRun) == is_dry_run
        });
        let mut rules = None;
        for policy in chosen.by_ref() {
            let rules = rules.get_or_insert_with(Vec::new);
            rules.extend(rules_of(policy).iter().cloned());
        }
        rules.map(RuleSet::new)
    };
    let providers = |is_dry_run: bool| {
        let mut providers: Vec<&Action> = all
            .iter()
            .map(|rules| &rules.object.spec)
            .filter(|policy| (policy.mode == PolicyMode::DryRun) == is_dry_run)
            .map(|policy| &policy.action)
            .filter(|action| matches!(action, Action::Custom(_)))
            .collect();
        providers.sort_by_key(|action| provider(action));
        providers.dedup();
        providers
    };
    let custom = providers(false)
        .into_iter()
        .filter_map(|action| Some((provider(action)?.clone(), of(action, false)?)));
    let custom_in_dry_run = providers(true)
        .into_iter()
        .filter_map(|action| of(action, true));
    let custom_in_dry_run: Vec<Arc<Rule>> = custom_in_dry_run
        .flat_map(|set| set.rules().to_vec())
        .collect();
    let dry_run = DryRun {
        deny: of(&Action::Deny, true).unwrap_or_default(),
        allow: of(&Action::Allow, true),
        custom: RuleSet::new(custom_in_dry_run),
    };
    let has_dry_run =
        !dry_run.deny.is_empty() || dry_run.allow.is_some() || !dry_run.custom.is_empty();
    Policies {
        custom: custom.collect(),
        reads_added: all
            .iter()
            .flat_map(|rules| rules_of(rules))
            .any(|rule| rule.reads_added()),
        audit: of(&Action::Audit, false).unwrap_or_default(),
        deny: of(&Action::Deny, false).unwrap_or_default(),
        allow: of(&Action::Allow, false),
        dry_run: has_dry_run.then(|| Box::new(dry_run)),
    }
}

fn provider(action: &Action) -> Option<&Arc<str>> {
    match action {
        Action::Custom(name) => Some(name),
        _ => None,
    }
}
