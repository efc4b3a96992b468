//! State of the certificates in effect, for metrics and alerts.

use std::collections::BTreeMap;

use crate::compile::certificates::mesh;
use crate::identity::Identity;
use crate::telemetry::{CertificateState, IdentityState};
use crate::tls::{Authorities, Problem, ProblemKind, Store};

/// Returns the state of each certificate for metrics.
pub fn states(store: &Store) -> Vec<CertificateState> {
    let identities = store.identities();
    let own = identities.iter().map(|status| CertificateState {
        source: status.source.to_string(),
        expires: status.in_force.as_ref().map(|one| one.facts.not_after),
        is_refused: status.is_refused(),
    });
    let authorities = store.authorities();
    let of_clients = authorities.iter().map(|status| {
        let facts = status.in_force.as_ref().map(|one| &one.facts);
        let expiries = facts.into_iter().flatten().map(|facts| facts.not_after);
        CertificateState {
            source: format!("{} (ca)", status.source),
            expires: expiries.min(),
            is_refused: status.is_refused(),
        }
    });
    own.chain(of_clients).collect()
}

/// Returns the state of the workload's identity for metrics.
pub fn own_state(store: &Store, identity: &Identity) -> IdentityState {
    let (_, root) = mesh(identity);
    let own = store.own();
    let has_source = own.is_some();
    let own = own.and_then(|own| own.in_force);
    let authorities = store.authorities();
    let bundle = authorities.iter().find(|status| status.source == root);
    let bundle = bundle.and_then(|status| status.in_force.as_deref());
    let sizes = bundle.into_iter().flat_map(Authorities::bundle_sizes);
    let mut bundles: BTreeMap<String, usize> = sizes
        .map(|(domain, size)| (domain.to_string(), size))
        .collect();
    if let Some(bundle) = bundle.filter(|_| bundles.is_empty()) {
        let domain = identity.workload.trust_domain.clone();
        bundles.insert(domain, bundle.facts.len());
    }
    IdentityState {
        has_source,
        expires: own.map(|own| own.facts.not_after),
        bundles,
    }
}

/// Returns the problem of an identity that is not used since it has expired.
pub fn expired_identity(store: &Store) -> Option<Problem> {
    let own = store.own().filter(|own| own.in_force.is_none())?;
    let mut problems = own.problems.into_iter();
    problems.find(|problem| problem.kind == ProblemKind::Expired)
}
