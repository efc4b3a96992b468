//! Rules of an AuthorizationPolicy in the form that traffic asks.

use std::sync::Arc;

use config_loader::resource::Object;
use config_loader::resource::istio::AuthorizationPolicy;
use config_loader::resource::istio::authorization_policy as checked;
use config_loader::resource::istio::authorization_policy::{Action, PolicyMode};

use super::principals;
use crate::compile::provenance::provenance_of;
use crate::identity::Identity;
use crate::telemetry::PolicyTally;
use traffic::authz::{Attribute, Condition, Pattern, Policy, RequestPrincipal, Rule, Values};
use traffic::route::HeaderKey;

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
    let compiler = Compiler {
        object,
        identity,
        is_denying: matches!(object.spec.action, Action::Deny | Action::Custom(_)),
    };
    let is_invalid = object.spec.mode == PolicyMode::Denying;
    let rules = object.spec.rules.iter().enumerate();
    let rules = rules.map(|(number, rule)| {
        let group = |group: &[checked::Alternative]| {
            let alternatives = group.iter().map(|one| compiler.conditions(one));
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
            when: compiler.conditions(&rule.when),
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

struct Compiler<'a> {
    object: &'a Object<AuthorizationPolicy>,
    identity: &'a Identity,
    /// Whether a match of the policy denies, or may deny.
    is_denying: bool,
}

impl Compiler<'_> {
    fn conditions(&self, conditions: &[checked::Condition]) -> Box<[Condition]> {
        let conditions = conditions.iter().map(|condition| Condition {
            attribute: self.attribute(&condition.attribute),
            values: condition
                .values
                .as_ref()
                .map(|values| self.values(&condition.attribute, values)),
            not_values: condition
                .not_values
                .as_ref()
                .map(|values| self.values(&condition.attribute, values)),
            line: self.object.line_of(condition.line),
        });
        conditions.collect()
    }

    fn attribute(&self, attribute: &checked::Attribute) -> Attribute {
        use checked::Attribute as From;
        let claim = |name: &str| Attribute::Claim([Box::from(name)].into());
        match attribute {
            From::Principal => Attribute::Principal,
            From::Namespace => Attribute::Namespace,
            From::ServiceAccount => Attribute::ServiceAccount,
            From::TrustDomain => Attribute::TrustDomain,
            From::RequestPrincipal => Attribute::RequestPrincipal,
            From::SourceIp => Attribute::SourceIp,
            From::RemoteIp => Attribute::RemoteIp,
            From::Host => Attribute::Host {
                is_bare: self.is_denying && !self.identity.mesh.exact_policy_hosts,
            },
            From::Method => Attribute::Method,
            From::Path => Attribute::Path,
            From::DestinationPort => Attribute::DestinationPort,
            From::DestinationIp => Attribute::DestinationIp,
            From::Sni => Attribute::Sni,
            From::Header(name) => {
                HeaderKey::parse(name).map_or(Attribute::Absent, Attribute::Header)
            }
            From::Claim(path) => {
                Attribute::Claim(path.iter().map(|name| Box::from(&**name)).collect())
            }
            From::Audiences => claim("aud"),
            From::Presenter => claim("azp"),
            From::FilterMetadata => Attribute::Absent,
        }
    }

    fn values(&self, attribute: &checked::Attribute, values: &checked::Values) -> Values {
        match values {
            checked::Values::Networks(networks) => Values::Networks(networks.as_slice().into()),
            checked::Values::Ports(ports) => Values::Ports(ports.as_slice().into()),
            checked::Values::Texts(texts) => self.texts(attribute, texts),
        }
    }

    fn texts(&self, attribute: &checked::Attribute, texts: &[Arc<str>]) -> Values {
        use checked::Attribute as From;
        let workload = &self.identity.workload;
        let patterns: Vec<Pattern> = match attribute {
            From::RequestPrincipal => {
                let principals = texts.iter().map(|text| RequestPrincipal::of(text));
                return Values::Principals(principals.collect());
            }
            From::Principal => {
                let all = texts
                    .iter()
                    .flat_map(|text| principals::equal(text, workload));
                all.map(|text| Pattern::of(&text)).collect()
            }
            From::TrustDomain => {
                let all = texts
                    .iter()
                    .flat_map(|text| principals::equal_domains(text, workload));
                all.map(Pattern::of).collect()
            }
            From::Namespace => texts
                .iter()
                .map(|text| Pattern::Glob((&**text).into()))
                .collect(),
            From::ServiceAccount => {
                let accounts = texts.iter().filter_map(|text| text.split_once('/'));
                let accounts =
                    accounts.map(|(namespace, name)| format!("ns/{namespace}/sa/{name}"));
                accounts
                    .map(|account| Pattern::Exact(account.into()))
                    .collect()
            }
            From::Path => texts.iter().map(|text| Pattern::of_path(text)).collect(),
            From::Host => texts
                .iter()
                .map(|text| Pattern::of(&text.to_ascii_lowercase()))
                .collect(),
            From::Header(_) => {
                let patterns = texts.iter().map(|text| match Pattern::of(text) {
                    Pattern::Any => Pattern::Present,
                    pattern => pattern,
                });
                patterns.collect()
            }
            _ => texts.iter().map(|text| Pattern::of(text)).collect(),
        };
        Values::Texts(patterns.into())
    }
}
