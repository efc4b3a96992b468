//! AuthorizationPolicies and RequestAuthentications whose effect is another one than their text suggests, because of the
//! workloads that they select, or of each other.
//!
//! A policy of the set is compared only with what is in the set. Without it, as in a check of a single file, nothing is
//! said.

mod clients;
mod covers;
mod effects;
mod gateways;
mod names;
mod paths;
mod policies;
mod tokens;

use names::KnownNames;
use policies::Policies;

use crate::Fleet;
use crate::diagnostic::Diagnostic;
use crate::resource::ResourceSet;

/// Checks the rules of policies by themselves, and against each other.
pub(super) fn check_rules(set: &ResourceSet, fleet: &Fleet, found: &mut Vec<Diagnostic>) {
    Policies::new(set, fleet.root_namespace()).check_rules(found);
    paths::check(set, fleet.path_normalization, found);
}

/// Checks policies against workloads, gateways, routes and tokens.
pub(super) fn check(set: &ResourceSet, fleet: &Fleet, found: &mut Vec<Diagnostic>) {
    tokens::check_claims(set, found);
    gateways::check_targets(set, found);
    let policies = Policies::new(set, fleet.root_namespace());
    let known = KnownNames::new(set);
    for policy in &policies.all {
        names::check_namespace(&policies, policy, fleet, found);
        names::check_principals(&policies, policy, fleet, &known, found);
        names::check_hosts(&policies, policy, found);
        policies.check_selector(policy, found);
        policies.check_raw_ports(policy, found);
        policies.check_plain_text(policy, found);
        policies.check_longer_paths(policy, found);
        gateways::check(&policies, policy, found);
        tokens::check_policy(&policies, policy, found);
        clients::check_addresses(&policies, policy, fleet, found);
        clients::check_outputs(&policies, policy, found);
    }
    policies.check_detected_ports(found);
    clients::check_routes(&policies, found);
    tokens::check(&policies, found);
}

#[cfg(test)]
mod tests;
