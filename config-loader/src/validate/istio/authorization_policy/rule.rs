//! Rules of an AuthorizationPolicy: sources, operations and conditions.

use traffic::authz::{Attribute, Condition};

use super::attribute::{self, list};
use crate::diagnostic::codes::istio::{AZ001, AZ003, AZ006, AZ007, AZ008};
use crate::raw::Field;
use crate::raw::istio::authorization_policy as raw;
use crate::resource::istio::authorization_policy::{Action, Alternative, Rule};
use crate::span::Span;
use crate::validate::Check;
use crate::validate::istio::shared;
use crate::validate::scalar;

type Texts = Field<Vec<Field<String>>>;

/// Maximum number of rules of a policy, and of sources of a rule.
pub(super) const RULES_MAX: usize = 512;

/// Maximum number of service accounts of a field.
const ACCOUNTS_MAX: usize = 16;

/// Checks a rule.
pub(super) fn rule(raw: &raw::Rule, span: Span, action: &Action, check: &mut Check<'_>) -> Rule {
    let mut rule = Rule {
        line: check.line(span),
        ..Rule::default()
    };
    if not_empty(&raw.from, "`from`", check) {
        let sources = scalar::items(&raw.from, check);
        if sources.len() > RULES_MAX {
            let message = format!("{} sources are more than {RULES_MAX}", sources.len());
            let found = check.error(AZ003, raw.from.span(), message);
            found.help("write several rules");
        }
        for (entry, from) in sources {
            let fields = from
                .source
                .get()
                .map(|source| fields_of_source(source, action, check));
            rule.from
                .extend(alternative(fields, entry.span(), "source", check));
        }
    }
    if not_empty(&raw.to, "`to`", check) {
        for (entry, to) in scalar::items(&raw.to, check) {
            let fields = to
                .operation
                .get()
                .map(|operation| fields_of_operation(operation, action, check));
            rule.to
                .extend(alternative(fields, entry.span(), "operation", check));
        }
    }
    for (entry, raw) in scalar::items(&raw.when, check) {
        rule.when
            .extend(condition(raw, entry.span(), action, check));
    }
    rule
}

/// Returns the conditions of a source or an operation, which has at least one field.
fn alternative(
    fields: Option<Vec<Condition>>,
    span: Span,
    what: &str,
    check: &mut Check<'_>,
) -> Option<Alternative> {
    let fields = fields.unwrap_or_default();
    if fields.is_empty() {
        empty(span, &format!("`{what}`"), check);
        return None;
    }
    Some(fields)
}

fn fields_of_source(raw: &raw::Source, action: &Action, check: &mut Check<'_>) -> Vec<Condition> {
    accounts_alone(raw, check);
    let fields: [(Attribute, &str, &Texts, &Texts); 7] = [
        (
            Attribute::Principal,
            "principals",
            &raw.principals,
            &raw.not_principals,
        ),
        (
            Attribute::RequestPrincipal,
            "requestPrincipals",
            &raw.request_principals,
            &raw.not_request_principals,
        ),
        (
            Attribute::Namespace,
            "namespaces",
            &raw.namespaces,
            &raw.not_namespaces,
        ),
        (
            Attribute::ServiceAccount,
            "serviceAccounts",
            &raw.service_accounts,
            &raw.not_service_accounts,
        ),
        (
            Attribute::TrustDomain,
            "trustDomains",
            &raw.trust_domains,
            &raw.not_trust_domains,
        ),
        (
            Attribute::SourceIp,
            "ipBlocks",
            &raw.ip_blocks,
            &raw.not_ip_blocks,
        ),
        (
            Attribute::RemoteIp,
            "remoteIpBlocks",
            &raw.remote_ip_blocks,
            &raw.not_remote_ip_blocks,
        ),
    ];
    let mut conditions = Vec::new();
    for (attribute, name, values, not_values) in fields {
        refuse_for_custom(&attribute, name, [values, not_values], action, check);
        conditions.extend(both(attribute, values, not_values, check));
    }
    conditions
}

fn fields_of_operation(
    raw: &raw::Operation,
    action: &Action,
    check: &mut Check<'_>,
) -> Vec<Condition> {
    let is_bare = matches!(action, Action::Deny | Action::Custom(_));
    let fields: [(Attribute, &Texts, &Texts); 4] = [
        (Attribute::Host { is_bare }, &raw.hosts, &raw.not_hosts),
        (Attribute::DestinationPort, &raw.ports, &raw.not_ports),
        (Attribute::Method, &raw.methods, &raw.not_methods),
        (Attribute::Path, &raw.paths, &raw.not_paths),
    ];
    let conditions = fields
        .into_iter()
        .filter_map(|(attribute, values, not_values)| both(attribute, values, not_values, check));
    conditions.collect()
}

/// Returns the condition of a field and its negated form; `None` if both are empty.
fn both(
    attribute: Attribute,
    values: &Texts,
    not_values: &Texts,
    check: &mut Check<'_>,
) -> Option<Condition> {
    let values = list(&attribute, values, check);
    let not_values = list(&attribute, not_values, check);
    if values.is_none() && not_values.is_none() {
        return None;
    }
    Some(Condition {
        attribute,
        values,
        not_values,
    })
}

/// Reports service accounts that are too many, or beside other fields of the identity.
fn accounts_alone(raw: &raw::Source, check: &mut Check<'_>) {
    let accounts = [&raw.service_accounts, &raw.not_service_accounts];
    let others = [
        ("principals", &raw.principals),
        ("notPrincipals", &raw.not_principals),
        ("namespaces", &raw.namespaces),
        ("notNamespaces", &raw.not_namespaces),
    ];
    for accounts in accounts {
        let span = shared::list(accounts);
        for (name, other) in others {
            let help = "write two sources, or one of the two fields";
            shared::exclude(
                [("serviceAccounts", span), (name, shared::list(other))],
                AZ006,
                help,
                check,
            );
        }
        if accounts.get().is_some_and(|all| all.len() > ACCOUNTS_MAX) {
            let message = format!("more than {ACCOUNTS_MAX} service accounts");
            check
                .error(AZ003, accounts.span(), message)
                .help("write several sources");
        }
    }
}

/// Reports an identity in a policy of action CUSTOM: the provider is asked before identities are known.
///
/// Source: Istio's validation of `CUSTOM`.
fn refuse_for_custom(
    attribute: &Attribute,
    name: &str,
    fields: [&Texts; 2],
    action: &Action,
    check: &mut Check<'_>,
) {
    if !matches!(action, Action::Custom(_)) || !is_identity(attribute) {
        return;
    }
    for field in fields
        .into_iter()
        .filter(|field| !shared::list(field).is_none())
    {
        let message = format!("`{name}` is not available to action CUSTOM");
        let found = check.error(AZ007, field.span(), message);
        found.help("decide by identities in a second policy of action ALLOW or DENY");
    }
}

fn is_identity(attribute: &Attribute) -> bool {
    matches!(
        attribute,
        Attribute::Principal
            | Attribute::RequestPrincipal
            | Attribute::Namespace
            | Attribute::ServiceAccount
            | Attribute::TrustDomain
            | Attribute::Claim(_)
    )
}

fn condition(
    raw: &raw::Condition,
    span: Span,
    action: &Action,
    check: &mut Check<'_>,
) -> Option<Condition> {
    let Some(key) = shared::text(&raw.key) else {
        let span = shared::location(&raw.key, span);
        let found = check.error(AZ008, span, "a condition needs a key");
        found.help("write an attribute, such as `key: request.headers[x-user]`");
        return None;
    };
    let attribute = attribute::of_key(key, raw.key.span(), check)?;
    refuse_for_custom(
        &attribute,
        key,
        [&raw.values, &raw.not_values],
        action,
        check,
    );
    let condition = both(attribute, &raw.values, &raw.not_values, check);
    if condition.is_none() && !raw.values.is_invalid() && !raw.not_values.is_invalid() {
        let found = check.error(AZ008, span, format!("condition `{key}` has no values"));
        found.help("write `values` or `notValues`");
    }
    condition
}

/// Reports a list that is present and empty.
fn not_empty<T>(field: &Field<Vec<T>>, what: &str, check: &mut Check<'_>) -> bool {
    let is_empty = field.get().is_some_and(Vec::is_empty);
    if is_empty {
        empty(field.span(), what, check);
    }
    !is_empty
}

fn empty(span: Span, what: &str, check: &mut Check<'_>) {
    let found = check.error(AZ001, span, format!("{what} is empty"));
    found.help("write at least one field, or remove it");
}
