//! Tokens: policies that read claims which nothing verifies, and RequestAuthentications that require nothing.

use traffic::authz::{Attribute, Condition, Values};

use super::policies::{Policies, Policy, about, conditions};
use crate::diagnostic::Diagnostic;
use crate::diagnostic::codes::istio::{AZ117, JW101, JW105};
use crate::resource::istio::{HeaderKey, HttpMatch, JwtRule, VirtualService};
use crate::resource::{Object, ResourceSet};
use crate::span::Line;
use crate::validate::references::finding::warning;

/// Warns of rules about tokens that nothing verifies for the workloads of a policy.
pub(super) fn check_policy(policies: &Policies<'_>, policy: &Policy, found: &mut Vec<Diagnostic>) {
    let scope = policies.of(policy);
    let tokens = policies.tokens.iter().filter(|tokens| {
        let known = policies.scope(**tokens, &tokens.spec.scope);
        !tokens.spec.scope.targets.is_empty() || known.may_meet(scope)
    });
    let rules: Vec<_> = tokens.flat_map(|tokens| &tokens.spec.rules).collect();
    for (index, rule) in policy.spec.rules.iter().enumerate() {
        let mut reading = conditions(rule).filter(|one| reads_token(one));
        let Some(first) = reading.next() else {
            continue;
        };
        let problem = match rules.is_empty() {
            true => Some("no RequestAuthentication is for these workloads, so that no request has a verified token".to_owned()),
            false => [first].into_iter().chain(reading).find_map(|one| {
                let issuer = issuers(one).find(|issuer| {
                    !rules.iter().any(|rule| rule.accepted.is_for(Some(issuer)))
                })?;
                Some(format!("no RequestAuthentication for these workloads has issuer `{issuer}`"))
            }),
        };
        if let Some(problem) = problem {
            let mut diagnostic = about(policy, index, rule, AZ117, &problem);
            diagnostic
                .help("add a RequestAuthentication with the issuer, for the labels of this policy");
            found.push(diagnostic);
        }
    }
}

/// Warns of RequestAuthentications whose tokens nothing requires or uses.
pub(super) fn check(policies: &Policies<'_>, found: &mut Vec<Diagnostic>) {
    for tokens in &policies.tokens {
        let spec = &tokens.spec;
        let scope = policies.scope(*tokens, &spec.scope);
        let writes =
            |rule: &JwtRule| rule.payload_header.is_some() || !rule.claim_headers.is_empty();
        let is_read = policies.all.iter().any(|policy| {
            let mut all = policy.spec.rules.iter().flat_map(conditions);
            policies.of(policy).may_meet(scope) && all.any(reads_token)
        });
        if is_read
            || spec.rules.is_empty()
            || !spec.scope.targets.is_empty()
            || spec.rules.iter().any(writes)
            || claim_match(policies.set).is_some()
        {
            continue;
        }
        let message = "requests without a token pass: no AuthorizationPolicy for these workloads requires one";
        let field = "spec.jwtRules".to_owned();
        let mut diagnostic = warning(
            *tokens,
            JW101,
            spec.rules[0].line,
            field,
            message.to_owned(),
        );
        diagnostic.help("add an AuthorizationPolicy with action DENY and `notRequestPrincipals: [\"*\"]`, or ALLOW and `requestPrincipals`");
        found.push(diagnostic);
    }
}

/// Warns of routes by claims where nothing verifies tokens.
pub(super) fn check_claims(set: &ResourceSet, found: &mut Vec<Diagnostic>) {
    if !set.request_authentications.is_empty() {
        return;
    }
    if let Some((object, line)) = claim_match(set) {
        let message = "a claim never matches: there is no RequestAuthentication, so that no request has a verified token";
        let field = "spec.http".to_owned();
        let mut diagnostic = warning(object, JW105, line, field, message.to_owned());
        diagnostic.help("add a RequestAuthentication for the gateway");
        found.push(diagnostic);
    }
}

/// Returns a match of a claim.
fn claim_match(set: &ResourceSet) -> Option<(&Object<VirtualService>, Line)> {
    let reads = |one: &&HttpMatch| {
        let mut headers = one.headers.iter().chain(&one.without_headers);
        headers.any(|header| matches!(header.key, HeaderKey::Claim(_)))
    };
    set.virtual_services.values().find_map(|object| {
        let mut matches = object.spec.http.iter().flat_map(|rule| &rule.matches);
        Some((&**object, matches.find(reads)?.line))
    })
}

/// Whether a condition holds only for requests with a token.
pub(super) fn needs_token(one: &Condition) -> bool {
    reads_token(one) && one.values.is_some()
}

fn reads_token(one: &Condition) -> bool {
    matches!(
        one.attribute,
        Attribute::RequestPrincipal | Attribute::Claim(_)
    )
}

/// Returns the issuers that a condition names in full.
fn issuers(one: &Condition) -> impl Iterator<Item = String> {
    let values = match &one.values {
        Some(Values::Principals(all)) => &**all,
        _ => &[],
    };
    values.iter().filter_map(|principal| {
        let written = principal.written();
        let (issuer, _) = written.rsplit_once('/')?;
        (!issuer.starts_with('*')).then(|| issuer.to_owned())
    })
}
