//! AuthorizationPolicies and RequestAuthentications whose effect is another one than their text suggests, because of the
//! workloads that they select, or of each other.
//!
//! A policy of the set is compared only with what is in the set. Without it, as in a check of a single file, nothing is
//! said.

mod covers;
mod effects;
mod gateways;
mod policies;
mod tokens;

use policies::Policies;

use crate::diagnostic::Diagnostic;
use crate::resource::ResourceSet;

/// Checks the rules of policies by themselves, and against each other.
pub(super) fn check_rules(set: &ResourceSet, root_namespace: &str, found: &mut Vec<Diagnostic>) {
    Policies::new(set, root_namespace).check_rules(found);
}

/// Checks policies against workloads, gateways, routes and tokens.
pub(super) fn check(set: &ResourceSet, root_namespace: &str, found: &mut Vec<Diagnostic>) {
    tokens::check_claims(set, found);
    let policies = Policies::new(set, root_namespace);
    for policy in &policies.all {
        policies.check_selector(policy, found);
        policies.check_raw_ports(policy, found);
        policies.check_plain_text(policy, found);
        policies.check_longer_paths(policy, found);
        gateways::check(&policies, policy, found);
        tokens::check_policy(&policies, policy, found);
    }
    tokens::check(&policies, found);
}

#[cfg(test)]
mod tests;
