//! Checks of an issued certificate, before it becomes the identity of the workload.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::tls::material::{AuthoritiesPem, IdentityPem, UnixSeconds};
use crate::tls::spiffe::Workload;
use crate::tls::{Authorities, Facts, Identity, Problem, ProblemKind};

/// Difference of the clocks of the proxy and of the CA that is tolerated.
const SKEW: UnixSeconds = 60;

/// Identity that a source has delivered, as PEM. The key is in memory only.
pub(super) struct Material {
    /// Certificate chain, the workload's own first.
    pub chain: Vec<u8>,
    /// Private key.
    pub key: Vec<u8>,
    /// CA certificates by trust domain.
    pub bundles: BTreeMap<Arc<str>, Vec<u8>>,
    /// Revocation lists.
    pub revoked: Option<Vec<u8>>,
}

/// Checks a delivered identity, and returns its certificate.
///
/// # Errors
///
/// First reason that it cannot be the identity of the workload: it is unreadable, names another workload, is not valid
/// now, or is not signed by the bundle of its trust domain.
pub(super) fn check(
    material: &Material,
    workload: &Workload,
    place: &str,
    now: UnixSeconds,
) -> Result<Facts, Problem> {
    let identity = Identity::read(IdentityPem {
        chain: (place, &material.chain),
        key: (place, &material.key),
    })?;
    workload.check(&identity.facts, place)?;
    let facts = identity.facts.clone();
    if let Some(problem) = identity.untimely(now)
        && (problem.kind == ProblemKind::Expired || facts.not_before > now + SKEW)
    {
        return Err(problem);
    }
    let mut all: Vec<u8> = Vec::new();
    for pem in material.bundles.values() {
        all.extend_from_slice(pem);
        all.push(b'\n');
    }
    let bundle = Authorities::read(AuthoritiesPem {
        authorities: (place, &all),
        revoked: None,
        is_lenient: false,
    })?
    .with_bundles(place, &material.bundles)?;
    bundle.check_issuer(&identity, place, now.max(facts.not_before))?;
    Ok(facts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pki::{Authority, Leaf, Pair};

    const ID: &str = "spiffe://cluster.local/ns/shop/sa/cart";
    /// In 2026.
    const NOW: UnixSeconds = 1_790_000_000;

    fn material(pair: &Pair, ca: &Authority) -> Material {
        Material {
            chain: pair.chain.clone().into_bytes(),
            key: pair.key.clone().into_bytes(),
            bundles: BTreeMap::from([("cluster.local".into(), ca.pem().into_bytes())]),
            revoked: None,
        }
    }

    fn checked(material: &Material) -> Result<(), ProblemKind> {
        let workload = Workload {
            trust_domains: vec!["cluster.local".into()],
            namespace: "shop".into(),
            service_account: Some("cart".into()),
            has_any_path: false,
        };
        let checked = check(material, &workload, "CA", NOW);
        checked.map(|_| ()).map_err(|problem| problem.kind)
    }

    #[test]
    fn answer_must_be_the_identity_of_the_workload() {
        let (ca, other) = (Authority::new("ca"), Authority::new("other"));
        let years = |years| {
            ca.issue(Leaf {
                names: &[ID],
                years,
                ..Leaf::default()
            })
        };
        let good = ca.server(&[ID]);
        assert_eq!(checked(&material(&good, &ca)), Ok(()));
        for (name, problem) in [
            (
                "spiffe://cluster.local/ns/bank/sa/cart",
                ProblemKind::OtherWorkload,
            ),
            (
                "spiffe://cluster.local/ns/shop/sa/else",
                ProblemKind::OtherWorkload,
            ),
            (
                "spiffe://partner/ns/shop/sa/cart",
                ProblemKind::OtherWorkload,
            ),
            ("cart.shop.svc", ProblemKind::OtherWorkload),
        ] {
            let pair = ca.server(&[name]);
            assert_eq!(checked(&material(&pair, &ca)), Err(problem), "{name}");
        }
        let signed_by_other = material(&other.server(&[ID]), &ca);
        assert_eq!(checked(&signed_by_other), Err(ProblemKind::UnknownIssuer));
        let expired = material(&years((2020, 2022)), &ca);
        assert_eq!(checked(&expired), Err(ProblemKind::Expired));
        let early = material(&years((2027, 2030)), &ca);
        assert_eq!(checked(&early), Err(ProblemKind::NotYetValid));
        let other_key = Material {
            key: ca.server(&[ID]).key.into_bytes(),
            ..material(&good, &ca)
        };
        assert_eq!(checked(&other_key), Err(ProblemKind::Mismatch));
        let unreadable = Material {
            chain: b"no certificate".to_vec(),
            ..material(&good, &ca)
        };
        assert_eq!(checked(&unreadable), Err(ProblemKind::Certificate));
    }
}
