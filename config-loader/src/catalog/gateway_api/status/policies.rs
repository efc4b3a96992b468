//! Status of BackendTLSPolicies: whether they apply, for each Gateway whose routes reach their targets.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::routes::Tally;
use super::{Condition, ObjectStatus, ParentStatus, World, reference_reason};
use crate::catalog::gateway_api::{JudgedPolicy, PolicyProblem, judge};
use crate::kind::ObjectRef;
use crate::resource::gateway_api::{BackendTLSPolicy, GROUP, ObjectReference, ParentRef};
use crate::span::Line;

/// Maximum number of Gateways in the status of a policy (BackendTLSPolicy `status.ancestors`).
const ANCESTORS_MAX: usize = 16;

impl World<'_, '_> {
    /// Adds the status of each policy whose targets are reached.
    pub(super) fn policies(&self, tally: &Tally<'_>, all: &mut BTreeMap<ObjectRef, ObjectStatus>) {
        for policy in self.view.all::<BackendTLSPolicy>().values() {
            let is_reached = |gateway: &ObjectRef| {
                let mut targets = policy.spec.targets.iter();
                targets.any(|target| tally.reaches(gateway, &target.object))
            };
            let gateways = self.gateways.iter().map(|gateway| &gateway.object.id);
            let gateways = gateways.filter(|id| is_reached(id)).take(ANCESTORS_MAX);
            let conditions = conditions(&judge(self.view, policy));
            let ancestors = gateways.map(|gateway| ParentStatus {
                parent: ParentRef {
                    object: ObjectReference {
                        group: GROUP.into(),
                        kind: "Gateway".into(),
                        namespace: Arc::clone(&gateway.namespace),
                        name: Arc::clone(&gateway.name),
                        line: Line(0),
                    },
                    has_namespace: true,
                    section: None,
                    port: None,
                },
                conditions: conditions.clone(),
            });
            let ancestors: Vec<ParentStatus> = ancestors.collect();
            if !ancestors.is_empty() {
                all.insert(policy.id.clone(), ObjectStatus::Policy(ancestors));
            }
        }
    }
}

fn conditions(judged: &JudgedPolicy<'_>) -> Vec<Condition> {
    let refused = |reason| Condition::new("Accepted", false, reason);
    let accepted = match &judged.problem {
        None => Condition::new("Accepted", true, "Accepted"),
        Some(PolicyProblem::Conflicted(older)) => {
            refused("Conflicted").because(format!("{older} is older, and has the target"))
        }
        Some(PolicyProblem::NoValidCaCertificate) => refused("NoValidCACertificate").because(
            "no reference to CA certificates holds: requests get a response with status 500",
        ),
        Some(PolicyProblem::Invalid) => {
            refused("Invalid").because("its targets are no Services and no ServiceImports")
        }
        Some(PolicyProblem::TargetNotFound(what)) => refused("TargetNotFound").because(&**what),
    };
    let resolved = match judged.reference_problems.first() {
        None => Condition::new("ResolvedRefs", true, "ResolvedRefs"),
        Some((target, problem)) => {
            let reason = reference_reason(problem, "InvalidCACertificateRef", "InvalidKind");
            let (kind, name) = (&target.kind, &target.name);
            Condition::new("ResolvedRefs", false, reason)
                .because(format!("{kind} {name}: {problem}"))
        }
    };
    vec![accepted, resolved]
}
