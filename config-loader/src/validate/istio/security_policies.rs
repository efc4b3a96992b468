//! AuthorizationPolicy and RequestAuthentication: validation. The table of unsupported kinds states that they are not
//! enforced.

use serde::de::IgnoredAny;

use super::{Check, shared};
use crate::raw::{self, Field};
use crate::resource::istio::{AuthorizationPolicy, PolicyScope, RequestAuthentication};

/// Checks an AuthorizationPolicy.
pub fn authorization_policy(
    raw: &raw::istio::AuthorizationPolicy,
    check: &mut Check<'_>,
) -> AuthorizationPolicy {
    AuthorizationPolicy {
        scope: scope(&raw.selector, [&raw.target_ref, &raw.target_refs], check),
    }
}

/// Checks a RequestAuthentication.
pub fn request_authentication(
    raw: &raw::istio::RequestAuthentication,
    check: &mut Check<'_>,
) -> RequestAuthentication {
    RequestAuthentication {
        scope: scope(&raw.selector, [&raw.target_ref, &raw.target_refs], check),
    }
}

fn scope(
    selector: &Field<raw::istio::LabelSelector>,
    targets: [&Field<IgnoredAny>; 2],
    check: &mut Check<'_>,
) -> PolicyScope {
    let labels = selector
        .get()
        .map(|labels| shared::selector(&labels.match_labels, selector.span(), check));
    PolicyScope {
        selector: labels.unwrap_or_default(),
        has_targets: targets.iter().any(|target| target.get().is_some()),
    }
}

#[cfg(test)]
mod tests {
    use crate::validate::istio::testing::{check_of, load};

    fn document(kind: &str, spec: &str) -> String {
        format!(
            "apiVersion: security.istio.io/v1\nkind: {kind}\nmetadata: {{name: own, namespace: ns}}\nspec: {spec}\n"
        )
    }

    #[test]
    fn policies_are_warnings_whatever_their_rules_say() {
        let rules =
            "{action: DENY, rules: [{to: [{operation: {paths: [/admin]}}], when: [{later: [1]}]}]}";
        let tokens = "{jwtRules: [{issuer: a, fromHeaders: [{name: x}]}]}";
        for (kind, spec, expected) in [
            ("AuthorizationPolicy", "{}", vec!["W CM036 2"]),
            ("AuthorizationPolicy", rules, vec!["W CM036 2"]),
            (
                "AuthorizationPolicy",
                "{rulez: []}",
                vec!["W CM036 2", "E CM021 4"],
            ),
            ("RequestAuthentication", tokens, vec!["W CM036 2"]),
            (
                "RequestAuthentication",
                "{selector: {matchLabels: {app: '*'}}}",
                vec!["W CM036 2", "E CM012 4"],
            ),
        ] {
            check_of(&document(kind, spec), &expected);
        }
    }

    #[test]
    fn scope_of_a_policy_is_read() {
        let (set, _) = load(&document(
            "AuthorizationPolicy",
            "{selector: {matchLabels: {app: a}}, action: ALLOW}",
        ));
        let policy = set
            .authorization_policies
            .values()
            .next()
            .expect("it is good");
        assert_eq!(policy.spec.scope.selector["app"], "a");
        assert!(!policy.spec.scope.has_targets);
        let targets = "{targetRefs: [{kind: Gateway, group: gateway.networking.k8s.io, name: a}]}";
        let (set, _) = load(&document("RequestAuthentication", targets));
        let policy = set
            .request_authentications
            .values()
            .next()
            .expect("it is good");
        assert!(policy.spec.scope.has_targets);
    }
}
