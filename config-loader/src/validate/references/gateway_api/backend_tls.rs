//! Gateway API: BackendTLSPolicies that do not decide what they are for.

use crate::catalog::gateway_api::{PolicyProblem, judge, rule_with_tls};
use crate::catalog::{View, hostname};
use crate::diagnostic::codes::gateway_api::{GA005, GA030, GA060, GA062};
use crate::diagnostic::{Diagnostic, Severity};
use crate::kind::Name;
use crate::resource::Object;
use crate::resource::core::Service;
use crate::resource::gateway_api::{BackendTLSPolicy, PolicyService};
use crate::span::Line;
use crate::validate::references::finding::{location, warning};

/// Checks all BackendTLSPolicies.
pub(super) fn check(view: View<'_>, domain: &str, found: &mut Vec<Diagnostic>) {
    for policy in view.all::<BackendTLSPolicy>().values() {
        let judged = judge(view, policy);
        let targets = policy.spec.targets.iter().zip(&judged.targets);
        for (index, (target, state)) in targets.enumerate() {
            let field = format!("spec.targetRefs[{index}]");
            match state {
                Ok(()) => found.extend(overruled(view, policy, target, domain)),
                Err(problem) => found.extend(lost(view, policy, target, field, problem)),
            }
        }
        for (target, problem) in &judged.reference_problems {
            let field = "spec.validation.caCertificateRefs".to_owned();
            let message = problem.describe(target);
            let mut diagnostic = warning(policy, GA030, target.line, field, message);
            diagnostic.help(
                "write a ConfigMap or Secret of this namespace with `ca.crt`; with none, requests for the backends get a \
                 response with status 500",
            );
            found.push(diagnostic);
        }
    }
}

/// Reports a target that a policy does not decide.
fn lost(
    view: View<'_>,
    policy: &Object<BackendTLSPolicy>,
    target: &PolicyService,
    field: String,
    problem: &PolicyProblem,
) -> Option<Diagnostic> {
    let line = target.object.line;
    let at = |code, message| warning(policy, code, line, field, message);
    Some(match problem {
        PolicyProblem::Conflicted(owner) => {
            let message = format!("{owner} is older, and has the same target");
            let mut diagnostic = at(GA062, message);
            diagnostic
                .help("keep one policy for a Service, or name different ports by `sectionName`");
            if let Some(owner) = view.get::<BackendTLSPolicy>(&owner.to_name()) {
                diagnostic.related(location(owner, Line(0)), "this one counts");
            }
            diagnostic
        }
        PolicyProblem::Invalid | PolicyProblem::TargetNotFound(_) => {
            let message = match problem {
                PolicyProblem::TargetNotFound(what) => format!("{what}: the target has no effect"),
                _ => format!("{} cannot be a target", target.object.kind),
            };
            let mut diagnostic = at(GA005, message);
            diagnostic.severity = Severity::Note;
            diagnostic.help("write a Service of this namespace, and the name of one of its ports");
            diagnostic
        }
        PolicyProblem::NoValidCaCertificate => return None,
    })
}

/// Reports a DestinationRule whose TLS settings a policy replaces for routes of the Gateway API.
fn overruled(
    view: View<'_>,
    policy: &Object<BackendTLSPolicy>,
    target: &PolicyService,
    domain: &str,
) -> Option<Diagnostic> {
    let object = &target.object;
    let name = Name::new(object.namespace.clone(), object.name.clone());
    let host = hostname::of_service(&object.name, &object.namespace, domain);
    let mut ports = view.get::<Service>(&name)?.spec.ports.iter();
    let (rule, port) = ports.find_map(|port| {
        let is_target = target
            .section
            .as_ref()
            .is_none_or(|name| *name == port.name);
        let rule = is_target.then(|| rule_with_tls(view, &host, port.port, domain))??;
        Some((rule, port.port))
    })?;
    let message = format!(
        "routes of the Gateway API send to port {port} by this policy, not by `tls` of {}",
        rule.id
    );
    let field = "spec.targetRefs".to_owned();
    let mut diagnostic = warning(policy, GA060, object.line, field, message);
    diagnostic.help("remove one of them, or make sure that both are meant");
    diagnostic.related(location(rule, Line(0)), "this one counts for other clients");
    Some(diagnostic)
}
