//! BackendTLSPolicies: the policy of a backend, and whether a policy is accepted.

use std::sync::Arc;

use super::references::{self, ReferenceProblem};
use super::{Referrer, seniority};
use crate::catalog::{View, hostname};
use crate::kind::{Name, ObjectRef};
use crate::resource::Object;
use crate::resource::core::Service;
use crate::resource::flomesh::ServiceImport;
use crate::resource::gateway_api::{
    Authorities, BackendTLSPolicy, BackendVerification, ObjectReference, PolicyService,
};
use crate::resource::istio::{ClientTlsMode, DestinationRule};

type Policy = Arc<Object<BackendTLSPolicy>>;

/// Reason that a policy, or one of its targets, is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyProblem {
    /// This older policy has the target.
    Conflicted(ObjectRef),
    /// No reference to CA certificates holds: requests for the backends get a response with status 500.
    NoValidCaCertificate,
    /// The policy was rejected, or the target is no Service and no ServiceImport.
    Invalid,
    /// The target or its port does not exist.
    TargetNotFound(String),
}

/// BackendTLSPolicy, judged.
#[derive(Debug)]
pub struct JudgedPolicy<'a> {
    /// Policy.
    pub object: &'a Policy,
    /// Targets, in the order of the policy: those without a problem are the ones that the policy decides.
    pub targets: Vec<Result<(), PolicyProblem>>,
    /// References to CA certificates that do not hold.
    pub reference_problems: Vec<(&'a ObjectReference, ReferenceProblem)>,
    /// Reason that the policy is not accepted.
    pub problem: Option<PolicyProblem>,
}

/// CA certificates that verify a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustedAuthorities<'a> {
    /// ConfigMaps and Secrets. Never empty.
    Objects(Vec<&'a ObjectReference>),
    /// CA certificates of the system.
    System,
}

/// Judges a policy.
pub fn judge<'a>(view: View<'a>, object: &'a Policy) -> JudgedPolicy<'a> {
    let targets = object.spec.targets.iter();
    let targets: Vec<_> = targets.map(|one| judge_target(view, object, one)).collect();
    let references = references_of(object).iter();
    let references = references.map(|target| (target, authority(view, object, target)));
    let reference_problems = references.filter_map(|(target, one)| Some((target, one.err()?)));
    let untrusted =
        || (trusted(view, object).is_none()).then_some(PolicyProblem::NoValidCaCertificate);
    let conflicted = |one: &PolicyProblem| matches!(one, PolicyProblem::Conflicted(_));
    let mut lost = targets.iter().filter_map(|one| one.as_ref().err());
    let problem = if object.spec.is_stand_in() {
        Some(PolicyProblem::Invalid)
    } else if targets.iter().any(Result::is_ok) {
        untrusted()
    } else {
        let conflict = lost.clone().find(|one| conflicted(one)).cloned();
        conflict.or_else(untrusted).or_else(|| lost.next().cloned())
    };
    JudgedPolicy {
        object,
        reference_problems: reference_problems.collect(),
        problem,
        targets,
    }
}

fn judge_target(
    view: View<'_>,
    policy: &Policy,
    target: &PolicyService,
) -> Result<(), PolicyProblem> {
    let object = &target.object;
    if !object.is_service() && !object.is_service_import() {
        return Err(PolicyProblem::Invalid);
    }
    let is_section = |name: &Arc<str>| target.section.as_ref().is_none_or(|own| own == name);
    let name = Name::new(Arc::clone(&object.namespace), Arc::clone(&object.name));
    let (exists, has_section) = if object.is_service() {
        let service = view.get::<Service>(&name);
        let mut ports = service.into_iter().flat_map(|one| &one.spec.ports);
        (service.is_some(), ports.any(|port| is_section(&port.name)))
    } else {
        let import = view.get::<ServiceImport>(&name);
        let mut ports = import.into_iter().flat_map(|one| &one.spec.ports);
        (import.is_some(), ports.any(|port| is_section(&port.name)))
    };
    let missing = match &target.section {
        _ if !exists => Some(format!("{} {name} does not exist", object.kind)),
        Some(section) if !has_section => {
            let kind = &object.kind;
            Some(format!(
                "{kind} {name} has no port with the name `{section}`"
            ))
        }
        _ => None,
    };
    if let Some(missing) = missing {
        return Err(PolicyProblem::TargetNotFound(missing));
    }
    let same = |one: &PolicyService| one.section == target.section && is_same(&one.object, object);
    match oldest(view, &object.namespace, same) {
        Some(owner) if owner.id != policy.id => Err(PolicyProblem::Conflicted(owner.id.clone())),
        _ => Ok(()),
    }
}

/// Returns the policy of a port of a backend: that of its name before that of the whole object, the oldest of each.
pub(super) fn policy_of<'a>(
    view: View<'a>,
    object: &ObjectReference,
    port_name: &str,
) -> Option<&'a Policy> {
    let namespace = &object.namespace;
    let mut policies = view.in_namespace::<BackendTLSPolicy>(namespace);
    // a rejected policy whose targets cannot be read may be one for this backend
    if let Some(unreadable) = policies.find(|policy| policy.spec.targets.is_empty()) {
        return Some(unreadable);
    }
    let of = |section: Option<&str>| {
        let is_wanted = |target: &PolicyService| {
            target.section.as_deref() == section && is_same(&target.object, object)
        };
        oldest(view, namespace, is_wanted)
    };
    of(Some(port_name)).or_else(|| of(None))
}

/// Returns the oldest policy of a namespace with such a target.
fn oldest<'a>(
    view: View<'a>,
    namespace: &str,
    is_wanted: impl Fn(&PolicyService) -> bool,
) -> Option<&'a Policy> {
    let policies = view.in_namespace::<BackendTLSPolicy>(namespace);
    let wanted = policies.filter(|policy| policy.spec.targets.iter().any(&is_wanted));
    wanted.min_by_key(|policy| seniority(policy))
}

/// Whether two references name the same backend. A ServiceImport has the same name in all of its groups.
fn is_same(one: &ObjectReference, other: &ObjectReference) -> bool {
    let are_both = |of: fn(&ObjectReference) -> bool| of(one) && of(other);
    one.name == other.name
        && (are_both(ObjectReference::is_service) || are_both(ObjectReference::is_service_import))
}

/// Returns the CA certificates of a policy; `None` if its backends cannot be verified.
pub fn trusted<'a>(
    view: View<'_>,
    policy: &'a Object<BackendTLSPolicy>,
) -> Option<TrustedAuthorities<'a>> {
    match &policy.spec.verification {
        BackendVerification::Denied => None,
        BackendVerification::Tls { authorities, .. } => match authorities {
            Authorities::System => Some(TrustedAuthorities::System),
            Authorities::Objects(all) => {
                let holds = |one: &&ObjectReference| authority(view, policy, one).is_ok();
                let all: Vec<_> = all.iter().filter(holds).collect();
                (!all.is_empty()).then_some(TrustedAuthorities::Objects(all))
            }
        },
    }
}

fn references_of(policy: &Object<BackendTLSPolicy>) -> &[ObjectReference] {
    match &policy.spec.verification {
        BackendVerification::Tls {
            authorities: Authorities::Objects(all),
            ..
        } => all,
        _ => &[],
    }
}

fn authority(
    view: View<'_>,
    policy: &Object<BackendTLSPolicy>,
    target: &ObjectReference,
) -> Result<(), ReferenceProblem> {
    let referrer = Referrer {
        kind: "BackendTLSPolicy",
        namespace: &policy.id.namespace,
    };
    references::authorities(view, referrer, target).map(|_| ())
}

/// Returns a DestinationRule with TLS settings for a port of a host.
pub fn rule_with_tls<'a>(
    view: View<'a>,
    host: &str,
    port: u16,
    domain: &str,
) -> Option<&'a Arc<Object<DestinationRule>>> {
    let mut rules = view.all::<DestinationRule>().values();
    rules.find(|rule| {
        let policy = &rule.spec.traffic_policy;
        let of_port = policy.port(port).map(|port| &port.tls);
        let tls = of_port.unwrap_or(&policy.tls).as_deref();
        tls.is_some_and(|tls| tls.mode != ClientTlsMode::Disable)
            && hostname::is_subset(host, &rule.full_host(domain))
    })
}

#[cfg(test)]
mod tests;
