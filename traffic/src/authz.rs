//! Authorization by policies: whether a request or a connection may go on, and by which rule; pure decisions.
//!
//! A [`RuleSet`] holds the rules of all policies of one action. The first matching rule, in the order of policies and
//! rules, is found by an index over values: each rule waits under the values of one of its conditions, and only rules
//! whose values fit are compared in full. [`Policies::decide`] combines the sets of the actions.
//!
//! Source: AuthorizationPolicy (security.istio.io/v1).

mod external;
mod index;
mod pattern;
mod rule;
mod subject;
#[cfg(test)]
mod tests;
mod url_template;

use std::sync::Arc;

pub use external::{CheckedBody, ExtAuthz, HeaderNames, HttpCheck, RouteCheck};
pub use index::RuleSet;
pub use pattern::{Pattern, RequestPrincipal};
pub use rule::{Attribute, Condition, Failure, Policy, Rule, Values};
pub use subject::{Peer, Subject};
pub use url_template::{UrlTemplate, UrlVariables};

/// Policies that apply to a listener, for HTTP requests or for connections of another protocol.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// Rules of action CUSTOM, by provider, in the order in which providers are asked.
    pub custom: Box<[(Arc<str>, RuleSet)]>,
    /// Whether a rule reads a header that the proxy adds to requests.
    pub reads_added: bool,
    /// Rules of action AUDIT.
    pub audit: RuleSet,
    /// Rules of action DENY.
    pub deny: RuleSet,
    /// Rules of action ALLOW; `None` without a policy of that action, so that everything else is allowed.
    pub allow: Option<RuleSet>,
    /// Policies in dry run; `None` without any.
    pub dry_run: Option<Box<DryRun>>,
}

/// Policies that apply to the traffic of a proxy.
#[derive(Clone, Debug, Default)]
pub struct Authorization {
    /// For requests.
    pub http: Policies,
    /// For connections of other protocols. Of ALLOW policies, rules with conditions on requests are left out; of others,
    /// these conditions.
    pub tcp: Policies,
}

/// Policies in dry run, which decide nothing.
#[derive(Clone, Debug, Default)]
pub struct DryRun {
    /// Rules of action DENY.
    pub deny: RuleSet,
    /// Rules of action ALLOW; `None` without a policy of that action.
    pub allow: Option<RuleSet>,
    /// Rules of action CUSTOM. A match is counted, and no provider is asked.
    pub custom: RuleSet,
}

/// Decision of DENY and ALLOW rules, with the rule that made it.
#[derive(Clone, Copy, Debug)]
pub enum Decision<'a> {
    /// Allowed by a rule; `None` if no ALLOW policy applies.
    Allowed(Option<&'a Rule>),
    /// Denied by a rule; `None` if no ALLOW rule matches.
    Denied(Option<&'a Rule>),
}

impl Decision<'_> {
    /// Whether the request or connection may go on.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed(_))
    }
}

impl Policies {
    /// All rules in the order in which they are compared, by action; those in dry run are last.
    pub fn sets(&self) -> impl Iterator<Item = (&'static str, &RuleSet)> {
        let custom = self.custom.iter().map(|(_, set)| ("CUSTOM", set));
        let allow = self.allow.iter().map(|set| ("ALLOW", set));
        let dry_run = self.dry_run.iter().flat_map(|one| {
            let sets = [Some(&one.custom), Some(&one.deny), one.allow.as_ref()];
            sets.into_iter().flatten().map(|set| ("dry run", set))
        });
        custom
            .chain([("AUDIT", &self.audit), ("DENY", &self.deny)])
            .chain(allow)
            .chain(dry_run)
    }

    /// Decides by DENY rules, then by ALLOW rules.
    pub fn decide(&self, subject: &Subject<'_>) -> Decision<'_> {
        decide(&self.deny, self.allow.as_ref(), subject)
    }
}

impl DryRun {
    /// Decides as if the policies were enforced, and all others did not exist.
    pub fn decide(&self, subject: &Subject<'_>) -> Decision<'_> {
        decide(&self.deny, self.allow.as_ref(), subject)
    }
}

fn decide<'a>(
    deny: &'a RuleSet,
    allow: Option<&'a RuleSet>,
    subject: &Subject<'_>,
) -> Decision<'a> {
    if let Some(rule) = deny.first_match(subject) {
        return Decision::Denied(Some(rule));
    }
    let Some(allow) = allow else {
        return Decision::Allowed(None);
    };
    match allow.first_match(subject) {
        Some(rule) => Decision::Allowed(Some(rule)),
        None => Decision::Denied(None),
    }
}
