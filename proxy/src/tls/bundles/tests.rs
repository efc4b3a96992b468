use super::*;
use crate::pki::Authority;
use crate::tls::material::{AuthoritiesPem, IdentityPem};

const NOW: UnixSeconds = 1_790_000_000;

struct World {
    ours: Authority,
    partner: Authority,
}

impl World {
    fn new() -> Self {
        Self {
            ours: Authority::new("ours"),
            partner: Authority::new("partner"),
        }
    }

    /// Authorities of two trust domains, or of all peers.
    fn authorities(&self, has_bundles: bool) -> Authorities {
        let all = format!("{}\n{}", self.ours.pem(), self.partner.pem());
        let pem = AuthoritiesPem {
            authorities: ("ca", all.as_bytes()),
            revoked: None,
            is_lenient: false,
        };
        let read = Authorities::read(pem).unwrap();
        if !has_bundles {
            return read;
        }
        let bundles = BTreeMap::from([
            ("cluster.local".into(), self.ours.pem().into_bytes()),
            ("partner".into(), self.partner.pem().into_bytes()),
        ]);
        read.with_bundles("ca", &bundles).unwrap()
    }
}

#[test]
fn peer_is_verified_by_the_bundle_of_its_own_trust_domain() {
    let world = World::new();
    let local = "spiffe://cluster.local/ns/shop/sa/cart";
    let federated = "spiffe://partner/ns/shop/sa/cart";
    for (signer, names, by_bundles, by_all) in [
        (&world.ours, &[local][..], true, true),
        (&world.partner, &[federated], true, true),
        // a federated CA signs for our trust domain, and the other way around
        (&world.partner, &[local], false, true),
        (&world.ours, &[federated], false, true),
        (
            &world.ours,
            &["spiffe://unknown/ns/shop/sa/cart"],
            false,
            true,
        ),
        // an identity is one URI
        (&world.ours, &[local, federated], false, true),
        (&world.ours, &["cart.test"], false, true),
    ] {
        let pair = signer.server(names);
        let identity = Identity::read(IdentityPem {
            chain: ("own", pair.chain.as_bytes()),
            key: ("own", pair.key.as_bytes()),
        });
        let identity = identity.unwrap();
        for (has_bundles, expected) in [(true, by_bundles), (false, by_all)] {
            let authorities = world.authorities(has_bundles);
            let checked = authorities.check_issuer(&identity, "own", NOW);
            assert_eq!(checked.is_ok(), expected, "{names:?} {checked:?}");
        }
    }
}

#[test]
fn bundle_that_loses_an_authority_does_not_cover_the_one_before() {
    let world = World::new();
    let (both, all) = (world.authorities(true), world.authorities(false));
    assert!(both.cover(&world.authorities(true)));
    assert!(!both.cover(&all) && !all.cover(&both));
    let swapped = BTreeMap::from([
        ("cluster.local".into(), world.partner.pem().into_bytes()),
        ("partner".into(), world.ours.pem().into_bytes()),
    ]);
    let swapped = world.authorities(false).with_bundles("ca", &swapped);
    assert!(!swapped.unwrap().cover(&both));
}

#[test]
fn certificates_of_a_bundle_count_once() {
    let world = World::new();
    let twice = format!("{0}{0}{1}", world.ours.pem(), world.partner.pem());
    let bundles = BTreeMap::from([("td".into(), twice.clone().into_bytes())]);
    let pem = AuthoritiesPem {
        authorities: ("ca", twice.as_bytes()),
        revoked: None,
        is_lenient: false,
    };
    let read = Authorities::read(pem).unwrap();
    assert_eq!(read.facts.len(), 2);
    let read = read.with_bundles("ca", &bundles).unwrap();
    let sizes: Vec<_> = read.bundle_sizes().map(|(_, size)| size).collect();
    assert_eq!(sizes, [2]);
}
