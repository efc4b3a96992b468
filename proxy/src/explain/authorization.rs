//! Authorization of the explained request or connection: the rules of each policy, and the field that failed.

use super::answer::{AuthorizationChoice, PolicyRuleTried, Source};
use crate::snapshot::{Provider, Snapshot};
use traffic::authz::{
    Attribute, Authorization, Condition, Decision, DryRun, Failure, Policies, Rule, RuleSet,
    Subject, Values,
};

/// Maximum number of rules that are listed.
const RULES_LISTED_MAX: usize = 1_000;

/// Maximum number of values of a field that are shown.
const VALUES_SHOWN_MAX: usize = 4;

/// Explains the decision of policies on a request, or on a connection of another protocol.
pub(super) fn explain(
    authorization: &Authorization,
    snapshot: &Snapshot,
    subject: &Subject<'_>,
) -> AuthorizationChoice {
    let policies = match subject.request {
        Some(_) => &authorization.http,
        None => &authorization.tcp,
    };
    let asked = asked(policies, snapshot, subject);
    let denied_by = asked.as_ref().err().cloned();
    let denied_by = denied_by.or_else(|| denied_by_rules(policies, subject));
    let mut rules = Vec::new();
    for (stage, set) in policies.sets() {
        tried(stage, set, subject, &mut rules);
    }
    let rules_not_listed = rules.len().saturating_sub(RULES_LISTED_MAX);
    rules.truncate(RULES_LISTED_MAX);
    AuthorizationChoice {
        denied_by,
        asks: asked.unwrap_or_default(),
        rules,
        rules_not_listed,
        dry_run: policies
            .dry_run
            .as_ref()
            .map(|dry_run| in_dry_run(dry_run, subject)),
    }
}

/// Returns the providers that are asked.
///
/// # Errors
///
/// The reason of a denial: a provider that cannot be asked.
fn asked(
    policies: &Policies,
    snapshot: &Snapshot,
    subject: &Subject<'_>,
) -> Result<Vec<String>, String> {
    let mut asked = Vec::new();
    for (name, set) in &policies.custom {
        let Some(rule) = set.first_match(subject) else {
            continue;
        };
        let rule = named(rule);
        let Some(Provider { settings, .. }) = snapshot.provider(name) else {
            return Err(match snapshot.providers.get(name) {
                None => format!("provider `{name}` of {rule} is unknown"),
                Some(Provider { settings, .. }) => format!(
                    "the service {}:{} of provider `{name}` of {rule} is unknown",
                    settings.host, settings.port
                ),
            });
        };
        if subject.request.is_none() && settings.http.is_some() {
            continue;
        }
        let (protocol, host, port) = match &settings.http {
            Some(_) => ("HTTP", &settings.host, settings.port),
            None => ("gRPC", &settings.host, settings.port),
        };
        asked.push(format!("`{name}` ({protocol}, {host}:{port}), by {rule}"));
    }
    Ok(asked)
}

/// Returns the reason of a denial by DENY and ALLOW policies.
fn denied_by_rules(policies: &Policies, subject: &Subject<'_>) -> Option<String> {
    match policies.decide(subject) {
        Decision::Allowed(_) => None,
        Decision::Denied(Some(rule)) => Some(format!("{} matches", named(rule))),
        Decision::Denied(None) => Some("no rule of an ALLOW policy matches".to_owned()),
    }
}

fn in_dry_run(dry_run: &DryRun, subject: &Subject<'_>) -> String {
    match dry_run.decide(subject) {
        Decision::Allowed(_) => "would be allowed".to_owned(),
        Decision::Denied(Some(rule)) => format!("would be denied: {} matches", named(rule)),
        Decision::Denied(None) => "would be denied: no rule of an ALLOW policy matches".to_owned(),
    }
}

fn named(rule: &Rule) -> String {
    format!(
        "{}/{}, line {}",
        rule.policy.namespace, rule.policy.name, rule.line
    )
}

fn tried(stage: &str, set: &RuleSet, subject: &Subject<'_>, rules: &mut Vec<PolicyRuleTried>) {
    let tried = set.rules().iter().map(|rule| PolicyRuleTried {
        stage: stage.to_owned(),
        policy: format!("{}/{}", rule.policy.namespace, rule.policy.name),
        failed: rule
            .failure(subject)
            .map(|failure| failed(&failure, subject)),
        source: Source {
            line: rule.line,
            ..Source::from(&rule.policy.provenance)
        },
    });
    rules.extend(tried);
}

/// Describes the condition that does not hold, with the value of the request.
fn failed(failure: &Failure<'_>, subject: &Subject<'_>) -> String {
    let Condition {
        attribute,
        values,
        not_values,
        ..
    } = failure.condition;
    let values = match failure.is_negated {
        true => not_values.as_ref(),
        false => values.as_ref(),
    };
    let field = field(attribute, failure.is_when, failure.is_negated);
    let wanted = values.map(written).unwrap_or_default();
    format!("{field} ({wanted}): {}", seen(attribute, subject))
}

/// Returns the values of a condition as written, some of them if there are many.
fn written(values: &Values) -> String {
    let all: Vec<String> = match values {
        Values::Texts(patterns) => patterns.iter().map(|one| one.written()).collect(),
        Values::Principals(principals) => principals.iter().map(|one| one.written()).collect(),
        Values::Networks(networks) => networks.iter().map(ToString::to_string).collect(),
        Values::Ports(ports) => ports.iter().map(ToString::to_string).collect(),
    };
    let more = all.len().saturating_sub(VALUES_SHOWN_MAX);
    let shown = all[..all.len() - more].join(", ");
    match more {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Returns the value that a request or connection has for an attribute.
fn seen(attribute: &Attribute, subject: &Subject<'_>) -> String {
    match attribute {
        Attribute::SourceIp => return subject.source_ip.to_string(),
        Attribute::RemoteIp => return subject.remote_ip.to_string(),
        Attribute::DestinationIp => return subject.destination.ip().to_string(),
        Attribute::DestinationPort => return subject.destination.port().to_string(),
        Attribute::RequestPrincipal => {
            return subject.claims.map_or("no token".to_owned(), |claims| {
                let (issuer, name) = (claims.issuer(), claims.subject());
                format!(
                    "{}/{}",
                    issuer.unwrap_or_default(),
                    name.unwrap_or_default()
                )
            });
        }
        _ => {}
    }
    let mut texts = Vec::new();
    attribute.any_text(subject, &mut |text| {
        texts.push(String::from_utf8_lossy(text).into_owned());
        false
    });
    match texts.is_empty() {
        true => "absent".to_owned(),
        false => texts.join(", "),
    }
}

/// Returns the name of a field in `from` and `to`, or the key of a condition.
fn field(attribute: &Attribute, is_when: bool, is_negated: bool) -> String {
    let (field, key) = match attribute {
        Attribute::Principal => ("principals", "source.principal"),
        Attribute::Namespace => ("namespaces", "source.namespace"),
        Attribute::ServiceAccount => ("serviceAccounts", "source.serviceAccount"),
        Attribute::TrustDomain => ("trustDomains", "source.trustDomain"),
        Attribute::RequestPrincipal => ("requestPrincipals", "request.auth.principal"),
        Attribute::SourceIp => ("ipBlocks", "source.ip"),
        Attribute::RemoteIp => ("remoteIpBlocks", "remote.ip"),
        Attribute::Host { .. } => ("hosts", ""),
        Attribute::Method => ("methods", ""),
        Attribute::Path => ("paths", ""),
        Attribute::DestinationPort => ("ports", "destination.port"),
        Attribute::DestinationIp => ("", "destination.ip"),
        Attribute::Sni => ("", "connection.sni"),
        Attribute::Absent => ("sources", "a key without values here"),
        Attribute::Header(key) => {
            return keyed(&format!("request.headers[{}]", key.as_str()), is_negated);
        }
        Attribute::Claim(path) => {
            let path: String = path.iter().map(|name| format!("[{name}]")).collect();
            return keyed(&format!("request.auth.claims{path}"), is_negated);
        }
    };
    match (is_when, is_negated) {
        (true, _) => keyed(key, is_negated),
        (false, false) => field.to_owned(),
        (false, true) => {
            let (first, rest) = field.split_at(field.len().min(1));
            format!("not{}{rest}", first.to_ascii_uppercase())
        }
    }
}

fn keyed(key: &str, is_negated: bool) -> String {
    let list = if is_negated { "notValues" } else { "values" };
    format!("{list} of {key}")
}
