use super::super::material::date;
use super::super::{Alpn, ClientCertRequirements, ProblemKind, Version};
use super::*;

use crate::pki::{Authority, Leaf, Pair};

/// Seconds from 1970 to the beginning of a year, roughly.
const fn year(year: i64) -> UnixSeconds {
    (year - 1970) * 31_556_952 + 86_400
}

const NOW: UnixSeconds = year(2026);

fn source(name: &str) -> IdentitySource {
    IdentitySource::Secret {
        namespace: "edge".into(),
        name: name.into(),
    }
}

fn settings() -> ServerSettings {
    ServerSettings {
        identities: vec![source("a")],
        version_max: Version::Tls13,
        alpn: Alpn::Http,
        ..ServerSettings::default()
    }
}

fn bytes(chain: &str, key: &str) -> IdentityBytes {
    IdentityBytes {
        chain: ("a.crt".into(), chain.as_bytes().to_vec()),
        key: ("a.key".into(), key.as_bytes().to_vec()),
        ..IdentityBytes::default()
    }
}

fn read(chain: &str, key: &str) -> MaterialContent {
    MaterialContent {
        identities: BTreeMap::from([(source("a"), Ok(bytes(chain, key)))]),
        ..MaterialContent::default()
    }
}

fn of(pair: &Pair) -> MaterialContent {
    read(&pair.chain, &pair.key)
}

/// Returns the problems with the newest certificate, and the serial of the one in effect with whether it is an older
/// one.
fn state(store: &Store) -> (Vec<ProblemKind>, Option<Arc<str>>, bool) {
    let status = store.identities().remove(0);
    let kinds = status.problems.iter().map(|problem| problem.kind);
    let serial = status.in_force.map(|one| Arc::clone(&one.facts.serial));
    (kinds.collect(), serial, status.is_kept)
}

fn leaf(years: (i32, i32)) -> Pair {
    Authority::new("ca").issue(Leaf {
        names: &["a.example"],
        years,
        ..Leaf::default()
    })
}

#[test]
fn invalid_certificate_never_replaces_a_valid_one() {
    let good = leaf((2020, 2030));
    let other = leaf((2020, 2031));
    for (chain, key, expected) in [
        ("", &*good.key, ProblemKind::Certificate),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            &good.key,
            ProblemKind::Certificate,
        ),
        (&*good.chain, "", ProblemKind::Key),
        (
            &good.chain,
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            ProblemKind::Key,
        ),
        (
            &good.chain,
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
            ProblemKind::Key,
        ),
    ] {
        let store = Store::default();
        assert!(store.update(of(&good), NOW));
        let (problems, serial, kept) = state(&store);
        assert_eq!((problems, kept), (vec![], false));
        let server = store.server(&settings()).unwrap();

        assert!(!store.update(read(chain, key), NOW), "{expected:?}");
        assert_eq!(state(&store), (vec![expected], serial, true));
        assert!(Arc::ptr_eq(&server, &store.server(&settings()).unwrap()));

        assert!(store.update(of(&other), NOW));
        assert!(!state(&store).2);
        assert!(!Arc::ptr_eq(&server, &store.server(&settings()).unwrap()));
    }
}

#[test]
fn key_of_another_certificate_is_a_problem_after_five_seconds() {
    let (good, other) = (leaf((2020, 2030)), leaf((2020, 2031)));
    let half = || read(&good.chain, &other.key);
    let store = Store::default();
    store.update(half(), NOW);
    let (problems, serial, _) = state(&store);
    assert_eq!((problems, serial), (vec![ProblemKind::Mismatch], None));

    store.update(of(&good), NOW);
    let (_, serial, _) = state(&store);
    for seconds in [0, 4] {
        assert!(!store.update(half(), NOW + seconds));
        assert_eq!(state(&store), (vec![], serial.clone(), false));
    }
    assert!(store.update(of(&other), NOW + 4), "the other half is there");
    assert!(store.update(of(&good), NOW + 5));

    for seconds in [6, 10] {
        store.update(half(), NOW + seconds);
        assert_eq!(state(&store).0, vec![], "it begins anew");
    }
    store.update(half(), NOW + 11);
    assert_eq!(
        state(&store),
        (vec![ProblemKind::Mismatch], serial, true),
        "the last good one stays"
    );
}

#[test]
fn expired_identity_of_the_workload_is_not_used() {
    let id = "spiffe://td/ns/shop/sa/cart";
    let issue = |years| {
        Authority::new("ca").issue(Leaf {
            names: &[id],
            years,
            ..Leaf::default()
        })
    };
    let own = |pair: &Pair| {
        let workload = Workload {
            trust_domains: vec!["td".into()],
            namespace: "shop".into(),
            service_account: None,
            has_any_path: false,
        };
        let bytes = IdentityBytes {
            workload: Some(workload),
            ..bytes(&pair.chain, &pair.key)
        };
        MaterialContent {
            identities: BTreeMap::from([(source("a"), Ok(bytes))]),
            own: Some(source("a")),
            ..MaterialContent::default()
        }
    };
    let (short, long) = (issue((2020, 2026)), issue((2020, 2030)));
    let store = Store::default();
    assert!(store.update(own(&short), NOW));
    assert!(store.own().unwrap().in_force.is_some());
    assert!(store.update(own(&short), year(2027)));
    let status = store.own().unwrap();
    assert!(status.in_force.is_none() && status.is_refused());
    assert_eq!(status.problems[0].kind, ProblemKind::Expired);
    assert!(store.server(&settings()).is_none());
    assert!(store.update(own(&long), year(2027)));
    assert!(store.own().unwrap().in_force.is_some());
}

#[test]
fn expired_or_future_certificate_does_not_replace_a_valid_one() {
    let good = leaf((2020, 2028));
    let early = leaf((2027, 2040));
    let expired = leaf((2020, 2022));
    let store = Store::default();
    store.update(of(&good), NOW);
    let (_, serial, _) = state(&store);

    assert!(!store.update(of(&expired), NOW));
    assert_eq!(
        state(&store),
        (vec![ProblemKind::Expired], serial.clone(), true)
    );
    assert!(!store.update(of(&early), NOW));
    assert_eq!(
        state(&store),
        (vec![ProblemKind::NotYetValid], serial, true)
    );

    assert!(store.update(of(&early), year(2028)), "its time has come");
    assert_eq!(state(&store).0, []);
    assert!(!state(&store).2);
}

#[test]
fn expired_certificate_is_used_without_an_alternative() {
    let store = Store::default();
    assert!(store.update(of(&leaf((2020, 2022))), NOW));
    let (problems, serial, kept) = state(&store);
    assert_eq!((problems, kept), (vec![ProblemKind::Expired], false));
    assert!(serial.is_some() && store.server(&settings()).is_some());
}

#[test]
fn removed_source_keeps_the_certificate() {
    let store = Store::default();
    store.update(of(&leaf((2020, 2030))), NOW);
    let server = store.server(&settings()).unwrap();
    for _ in 0..2 {
        let missing = Problem::new(ProblemKind::Missing, "a.crt", "there is no such file");
        let read = MaterialContent {
            identities: BTreeMap::from([(source("a"), Err(missing))]),
            ..MaterialContent::default()
        };
        assert!(!store.update(read, NOW));
        assert!(state(&store).2);
        assert!(Arc::ptr_eq(&server, &store.server(&settings()).unwrap()));
    }
    store.update(MaterialContent::default(), NOW);
    assert!(
        store.server(&settings()).is_none(),
        "no server needs it any more"
    );
}

#[test]
fn server_that_verifies_clients_needs_authorities() {
    let authority = Authority::new("ca");
    let pair = leaf((2020, 2030));
    let ca = AuthoritySource::Files {
        authorities: "ca.pem".into(),
        revoked: None,
    };
    let settings = ServerSettings {
        clients: Some(Box::new(ClientCertRequirements {
            required: true,
            authorities: Some(ca.clone()),
            ..ClientCertRequirements::default()
        })),
        ..settings()
    };
    let with = |text: String, revoked: Option<String>| {
        let authorities = AuthorityBytes {
            authorities: ("ca.pem".into(), text.into_bytes()),
            revoked: revoked.map(|text| ("ca.crl".into(), text.into_bytes())),
            ..AuthorityBytes::default()
        };
        MaterialContent {
            authorities: BTreeMap::from([(ca.clone(), Ok(authorities))]),
            ..of(&pair)
        }
    };
    let store = Store::default();
    store.update(with(String::new(), None), NOW);
    assert!(store.server(&settings).is_none());
    assert!(store.update(with(authority.pem(), None), NOW));
    let server = store.server(&settings).unwrap();

    assert!(store.update(with(authority.pem(), Some(authority.revoke(&[&pair]))), NOW));
    assert!(
        !Arc::ptr_eq(&server, &store.server(&settings).unwrap()),
        "no session outlives a revocation"
    );

    let stale = authority.revoke_until(&[], 2022);
    assert!(!store.update(with(authority.pem(), Some(stale)), NOW));
    let status = store.authorities().remove(0);
    assert!(status.is_kept, "the list before is still in its time");
    let problems = status.problems;
    assert_eq!(problems[0].kind, ProblemKind::RevokedStale);
    assert!(
        problems[0].text.contains("2022-01-01T00:00:00Z"),
        "{}",
        problems[0]
    );

    store.update(with(authority.pem(), Some("nonsense".into())), NOW);
    let status = store.authorities().remove(0);
    assert_eq!(
        (status.problems[0].kind, status.is_kept),
        (ProblemKind::Revoked, true)
    );
}

#[test]
fn certificates_are_shown_and_private_keys_are_not() {
    let pair = leaf((2020, 2030));
    let store = Store::default();
    store.update(of(&pair), NOW);
    let status = store.identities().remove(0);
    let facts = &status.in_force.as_ref().unwrap().facts;
    assert_eq!(
        facts
            .names
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        ["a.example"]
    );
    assert_eq!((&*facts.subject, &*facts.issuer), ("CN=leaf", "CN=ca"));
    assert_eq!(date(facts.not_before), "2020-01-01T00:00:00Z");
    let secret = pair.key.lines().nth(1).unwrap();
    let text = format!("{store:?} {status:?} {:?}", store.server(&settings()));
    assert!(!text.contains(secret) && !text.contains("PRIVATE"));
}

#[test]
fn wildcards_cover_one_label() {
    let pair = Authority::new("ca").server(&["*.example.com", "plain.org", "10.0.0.1"]);
    let store = Store::default();
    store.update(of(&pair), NOW);
    let status = store.identities().remove(0);
    let facts = &status.in_force.as_ref().unwrap().facts;
    for (host, expected) in [
        ("a.example.com", true),
        ("A.EXAMPLE.com", true),
        ("*.example.com", true),
        ("a.b.example.com", false),
        ("example.com", false),
        ("plain.org", true),
        ("*.org", false),
        ("10.0.0.1", true),
    ] {
        assert_eq!(facts.covers(host), expected, "{host}");
    }
}

fn client_settings() -> ClientSettings {
    ClientSettings {
        mode: crate::tls::ClientMode::Mutual,
        identity: Some(source("a")),
        authorities: None,
        names: Vec::new(),
        trust_domains: Vec::new(),
        naming: crate::tls::Naming::Host,
        protocol: Default::default(),
        refused: None,
    }
}

#[test]
fn clients_change_only_with_their_material() {
    let store = Store::default();
    let refused = store.client(&client_settings());
    assert!(refused.refusal().is_some());
    assert!(Arc::ptr_eq(&refused, &store.client(&client_settings())));
    let (first, second) = (leaf((2020, 2040)), leaf((2020, 2040)));
    store.update(of(&first), NOW);
    let good = store.client(&client_settings());
    assert!(good.refusal().is_none() && good.serial > refused.serial);
    store.update(read("nonsense", "nonsense"), NOW);
    assert!(Arc::ptr_eq(&good, &store.client(&client_settings())));
    store.update(of(&second), NOW);
    let renewed = store.client(&client_settings());
    assert!(renewed.serial > good.serial);
    let named = ClientSettings {
        names: vec!["b".into()],
        ..client_settings()
    };
    assert!(store.client(&named).serial > renewed.serial);
    assert!(Arc::ptr_eq(&renewed, &store.client(&client_settings())));
}
