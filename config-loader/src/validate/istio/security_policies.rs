//! Scope of security policies: validation.

use super::{Check, shared};
use crate::diagnostic::codes::istio::{AZ020, AZ021, AZ102};
use crate::diagnostic::{Code, Diagnostic};
use crate::raw::istio::{LabelSelector, PolicyTargetReference};
use crate::raw::{Field, Map};
use crate::resource::istio::{PolicyScope, PolicyTarget};
use crate::span::Span;
use crate::validate::scalar;

/// Maximum number of targets of a policy.
const TARGETS_MAX: usize = 16;

/// Codes of findings about a scope.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScopeCodes {
    /// Several of the fields, or too many targets: an error.
    pub fields: Code,
    /// Kind that cannot be a target.
    pub target: Code,
    /// Whether such a target is only a warning.
    pub passes_target: bool,
    /// Target without a proxy here: a warning.
    pub unserved: Code,
}

/// Codes of security policies.
pub(super) const OF_POLICIES: ScopeCodes = ScopeCodes {
    fields: AZ020,
    target: AZ021,
    passes_target: false,
    unserved: AZ102,
};

/// Returns the scope of a resource that selects workloads. One that cannot be read in full is that of the whole namespace, for what
/// applies instead of a rejected policy.
pub(super) fn scope(
    selector: &Field<LabelSelector>,
    target: &Field<PolicyTargetReference>,
    targets: &Field<Vec<Field<PolicyTargetReference>>>,
    codes: ScopeCodes,
    check: &mut Check<'_>,
) -> PolicyScope {
    let set = [
        ("selector", shared::block(selector)),
        ("targetRef", shared::block(target)),
        ("targetRefs", shared::list(targets)),
    ];
    let help = "keep the one that is meant";
    let conflicts = [
        shared::exclude([set[0], set[1]], codes.fields, help, check),
        shared::exclude([set[0], set[2]], codes.fields, help, check),
        shared::exclude([set[1], set[2]], codes.fields, help, check),
    ];
    let labels = selector
        .get()
        .map(|labels| shared::selector(&labels.match_labels, selector.span(), check));
    let labels = labels.unwrap_or_default();
    let all = scalar::items(targets, check);
    if all.len() > TARGETS_MAX {
        let message = format!("{} targets are more than {TARGETS_MAX}", all.len());
        check
            .error(codes.fields, targets.span(), message)
            .help("write several resources");
    }
    let all = target
        .get()
        .map(|only| (target.span(), only))
        .into_iter()
        .chain(
            all.into_iter()
                .map(|(field, target)| (field.span(), target)),
        );
    let written = targets.get().map_or(0, Vec::len) + usize::from(target.get().is_some());
    let all: Vec<_> = all
        .filter_map(|(span, raw)| policy_target(raw, span, codes, check))
        .collect();
    let is_label = |(key, value): (&String, &String)| {
        scalar::is_label_key(key) && scalar::is_label_value(value)
    };
    let pairs = selector.get().map(|selector| &selector.match_labels);
    let has_wrong_type = pairs.is_some_and(|labels| {
        let mut values = labels.get().into_iter().flat_map(Map::iter);
        labels.is_invalid() || values.any(|(.., value)| value.is_invalid())
    });
    let is_read = labels.iter().all(is_label)
        && !has_wrong_type
        && !conflicts.contains(&true)
        && !selector.is_invalid()
        && !target.is_invalid()
        && !targets.is_invalid()
        && all.len() == written
        && !(labels.is_empty() && all.is_empty() && check.is_misread());
    match is_read {
        true => PolicyScope {
            selector: labels,
            targets: all,
            is_unread: false,
        },
        false => PolicyScope {
            is_unread: true,
            ..PolicyScope::default()
        },
    }
}

/// Returns a target; `None` if it cannot be read.
fn policy_target(
    raw: &PolicyTargetReference,
    span: Span,
    codes: ScopeCodes,
    check: &mut Check<'_>,
) -> Option<PolicyTarget> {
    let (kind, name) = (shared::text(&raw.kind), shared::text(&raw.name));
    let (Some(kind), Some(name)) = (kind, name) else {
        let found = wrong(
            codes,
            span,
            "a target needs a kind and a name".to_owned(),
            check,
        );
        found.help("write `{group: gateway.networking.k8s.io, kind: Gateway, name: NAME}`");
        return codes.passes_target.then_some(PolicyTarget::Other);
    };
    let group = shared::text(&raw.group).unwrap_or_default();
    let is_known = matches!(
        (group, kind),
        ("gateway.networking.k8s.io", "Gateway" | "GatewayClass")
            | ("" | "core", "Service")
            | ("networking.istio.io", "ServiceEntry")
    );
    if !is_known {
        let message = format!("`{kind}` of `{group}` cannot be a target");
        let found = wrong(codes, span, message, check);
        found.help(
            "write a Gateway of gateway.networking.k8s.io, or select workloads by `selector`",
        );
        return codes.passes_target.then_some(PolicyTarget::Other);
    }
    let elsewhere =
        shared::text(&raw.namespace).filter(|namespace| *namespace != check.namespace());
    if let Some(namespace) = elsewhere {
        let message = format!("a target in another namespace, `{namespace}`, is never selected");
        let found = check.warning(codes.unserved, span, message);
        found.help("write the resource in the namespace of the target");
        return Some(PolicyTarget::Other);
    }
    match kind {
        "Gateway" => return Some(PolicyTarget::Gateway(name.into())),
        "GatewayClass" => return Some(PolicyTarget::GatewayClass(name.into())),
        _ => {}
    }
    let message = format!("a {kind} has no proxy of its own: the resource applies to nothing");
    let found = check.warning(codes.unserved, span, message);
    found.help("select the workloads of the service by `selector`");
    Some(PolicyTarget::Other)
}

/// Reports a target that is none.
fn wrong<'c>(
    codes: ScopeCodes,
    span: Span,
    message: String,
    check: &'c mut Check<'_>,
) -> &'c mut Diagnostic {
    match codes.passes_target {
        true => check.warning(codes.target, span, message),
        false => check.error(codes.target, span, message),
    }
}

#[cfg(test)]
mod tests {
    use crate::resource::istio::PolicyTarget;
    use crate::validate::istio::testing::load;

    fn document(kind: &str, spec: &str) -> String {
        format!(
            "apiVersion: security.istio.io/v1\nkind: {kind}\nmetadata: {{name: own, namespace: ns}}\nspec: {spec}\n"
        )
    }

    #[test]
    fn rejected_policy_with_an_unreadable_target_is_of_the_whole_namespace() {
        for (target, is_unread) in [
            (
                "{group: gateway.networking.k8s.io, kind: Gateway, name: g}",
                false,
            ),
            (
                "{group: gateway.networking.k8s.io, kind: Gatway, name: g}",
                true,
            ),
            (
                "{group: gateway.networking.k8s, kind: Gateway, name: g}",
                true,
            ),
            ("{kind: Gateway, name: g}", true),
            (
                "{group: gateway.networking.k8s.io, kind: Gateway, nme: g}",
                true,
            ),
            ("{group: gateway.networking.k8s.io, kind: Gateway}", true),
            ("null", true),
        ] {
            let spec = format!("{{action: DENY, targetRefs: [{target}], rules: [{{form: []}}]}}");
            let (set, _) = load(&document("AuthorizationPolicy", &spec));
            let mut policies = set.authorization_policies.values();
            let policy = policies.next().expect("a policy that denies");
            assert_eq!(policy.spec.scope.is_unread, is_unread, "{target}");
        }
    }

    #[test]
    fn scope_of_a_policy_is_read() {
        let (set, _) = load(&document(
            "AuthorizationPolicy",
            "{selector: {matchLabels: {app: a}}, rules: [{}]}",
        ));
        let policy = set
            .authorization_policies
            .values()
            .next()
            .expect("it is good");
        assert_eq!(policy.spec.scope.selector["app"], "a");
        assert_eq!(policy.spec.scope.targets, []);
        let targets = "{targetRefs: [{kind: Gateway, group: gateway.networking.k8s.io, name: a}]}";
        let (set, _) = load(&document("RequestAuthentication", targets));
        let policy = set
            .request_authentications
            .values()
            .next()
            .expect("it is good");
        assert_eq!(
            policy.spec.scope.targets,
            [PolicyTarget::Gateway("a".into())]
        );
    }
}
