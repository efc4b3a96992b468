//! AuthorizationPolicy: validation of the whole policy. [`rule`] checks its rules.

mod attribute;
mod path;
mod rule;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub(in crate::validate) use attribute::list as policy_values;

use super::{Check, shared};
use rule::RULES_MAX;

use crate::diagnostic::codes::istio::{AZ002, AZ003, AZ004, AZ005, AZ105, AZ121};
use crate::raw;
use crate::resource::istio::PolicyScope;
use crate::resource::istio::authorization_policy::{
    Action, AuthorizationPolicy, DRY_RUN, PolicyMode, boolean,
};
use crate::validate::istio::security_policies::{OF_POLICIES, scope};
use crate::validate::scalar;

/// Actions by name.
const ACTIONS: [(&str, Named); 4] = [
    ("ALLOW", Named::Allow),
    ("DENY", Named::Deny),
    ("AUDIT", Named::Audit),
    ("CUSTOM", Named::Custom),
];

/// Action as named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    Allow,
    Deny,
    Audit,
    Custom,
}

/// Checks an AuthorizationPolicy.
pub fn authorization_policy(
    raw: &raw::istio::AuthorizationPolicy,
    check: &mut Check<'_>,
) -> AuthorizationPolicy {
    let scope = policy_scope(raw, check);
    let action = action(raw, check);
    let span = raw.rules.span();
    let entries = scalar::items(&raw.rules, check);
    if entries.len() > RULES_MAX {
        let message = format!("{} rules are more than {RULES_MAX}", entries.len());
        let found = check.error(AZ003, span, message);
        found.help("write several policies of the same action: together they mean the same");
    }
    match action {
        _ if !raw.rules.get().is_none_or(Vec::is_empty) => {}
        Action::Deny | Action::Custom(_) => {
            let found = check.error(AZ002, span, "a policy of this action has no rules");
            found.help(
                "a policy without rules matches nothing; for all requests write `rules: [{}]`",
            );
        }
        Action::Allow if !says_so(check.name()) => {
            let found = check.warning(
                AZ105,
                span,
                "an ALLOW policy without rules denies everything",
            );
            found.help("if that is meant, name the policy `allow-nothing` or `deny-all`; to allow everything write `rules: [{}]`");
        }
        Action::Allow | Action::Audit => {}
    }
    let rules = entries
        .into_iter()
        .map(|(field, rule)| rule::rule(rule, field.span(), &action, check));
    let rules = rules.collect();
    if let Some(field) = check.annotations().get(DRY_RUN)
        && let Some(value) = field.get()
        && boolean(value).is_none()
    {
        let message = format!("`{DRY_RUN}: {value}` is no boolean, so that the policy is enforced");
        let found = check.warning(AZ121, field.span(), message);
        found.help("write `\"true\"` or `\"false\"`");
    }
    AuthorizationPolicy {
        scope,
        action,
        rules,
        mode: PolicyMode::Enforced,
    }
}

/// Whether the name of a policy says that it denies everything.
fn says_so(name: &str) -> bool {
    [
        "allow-nothing",
        "deny-all",
        "default-deny",
        "deny-by-default",
    ]
    .iter()
    .any(|known| name.contains(known))
}

fn policy_scope(raw: &raw::istio::AuthorizationPolicy, check: &mut Check<'_>) -> PolicyScope {
    scope(
        &raw.selector,
        &raw.target_ref,
        &raw.target_refs,
        OF_POLICIES,
        check,
    )
}

/// Returns the action; `Deny` if it is unknown.
fn action(raw: &raw::istio::AuthorizationPolicy, check: &mut Check<'_>) -> Action {
    let named = match shared::text(&raw.action) {
        None if raw.action.is_invalid() => Named::Deny,
        None => Named::Allow,
        Some(_) => scalar::enum_of(&raw.action, &ACTIONS, check).unwrap_or(Named::Deny),
    };
    let provider = raw
        .provider
        .get()
        .and_then(|provider| shared::text(&provider.name));
    match (named, provider) {
        (Named::Custom, Some(name)) => return Action::Custom(Arc::from(name)),
        (Named::Custom, None) => {
            let span = shared::location(&raw.provider, raw.action.span());
            let found = check.error(AZ004, span, "action CUSTOM needs a provider");
            found.help("write `provider: {name: NAME}` with a name from `extensionProviders` of the mesh configuration");
            return Action::Custom(Arc::default());
        }
        (_, _) if raw.provider.is_set() => {
            let found = check.error(AZ005, raw.provider.span(), "a provider needs action CUSTOM");
            found.help("write `action: CUSTOM`, or remove `provider`");
        }
        (_, _) => {}
    }
    match named {
        Named::Allow => Action::Allow,
        Named::Audit => Action::Audit,
        Named::Deny | Named::Custom => Action::Deny,
    }
}
