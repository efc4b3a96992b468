//! Values by tables; the index and the combination of actions by properties.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use proptest::prelude::*;

use super::*;
use crate::claims::Claims;
use crate::provenance::Provenance;
use crate::route::{HeaderKey, RequestHead, normalize_host};

/// Request or connection with owned values.
#[derive(Clone, Debug)]
struct Case {
    uri: Option<String>,
    source: [u8; 4],
    port: u16,
    sni: String,
    request: Option<(String, String, String, Option<String>)>,
    claims: Option<Claims>,
}

impl Case {
    /// Returns what `ask` answers for the subject.
    fn ask<T>(&self, ask: impl FnOnce(&Subject<'_>) -> T) -> T {
        let (mut headers, mut method) = (HeaderMap::new(), Method::GET);
        let mut host = String::new();
        if let Some((verb, authority, _, header)) = &self.request {
            method = verb.parse().unwrap();
            host = normalize_host(authority).into_owned();
            if let Some(value) = header {
                let value = HeaderValue::from_str(value).unwrap();
                headers.append(
                    HeaderName::from_static("x"),
                    HeaderValue::from_static("first"),
                );
                headers.append(HeaderName::from_static("x"), value);
            }
        }
        let head = self
            .request
            .as_ref()
            .map(|(_, authority, path, _)| RequestHead {
                is_http2: false,
                method: &method,
                scheme: "http",
                authority,
                host: &host,
                path,
                query: None,
                headers: &headers,
                claims: None,
            });
        ask(&Subject {
            peer: self.uri.as_deref().and_then(Peer::parse),
            source_ip: self.source.into(),
            remote_ip: self.source.into(),
            destination: ([10, 0, 0, 9], self.port).into(),
            sni: &self.sni,
            request: head,
            claims: self.claims.as_ref(),
        })
    }
}

fn rule(
    number: usize,
    from: Vec<Vec<Condition>>,
    to: Vec<Vec<Condition>>,
    when: Vec<Condition>,
) -> Arc<Rule> {
    let boxed = |group: Vec<Vec<Condition>>| group.into_iter().map(Into::into).collect();
    Arc::new(Rule {
        policy: Arc::new(Policy {
            namespace: "ns".into(),
            name: "a".into(),
            matches: Arc::new(crate::telemetry::PolicyTally::new(
                crate::telemetry::PolicyLabels {
                    namespace: "ns".into(),
                    name: "a".into(),
                    action: "DENY",
                    is_dry_run: false,
                },
                1,
            )),
            provenance: Provenance {
                object: "".into(),
                file: "".into(),
                line: 0,
            },
        }),
        name: number.to_string().into(),
        line: 0,
        from: boxed(from),
        to: boxed(to),
        when: when.into(),
    })
}

#[test]
fn patterns_match_as_in_the_table() {
    for (pattern, text, expected) in [
        ("abc", "abc", true),
        ("abc", "abcd", false),
        ("abc", "ABC", false),
        ("abc*", "abc", true),
        ("abc*", "abcd", true),
        ("abc*", "xabc", false),
        ("*abc", "abc", true),
        ("*abc", "xabc", true),
        ("*abc", "abcx", false),
        ("*", "a", true),
        ("*", "", false),
        ("/i/*lit", "/i/xlit", false),
        ("/i/*lit", "/i/*lit", true),
        ("/c/{**}", "/c", false),
        ("/c/{**}", "/c/", true),
        ("/c/{**}", "/c//", true),
        ("/c/{**}", "/c/a//b", true),
        ("/c/{**}", "/c/%2f", true),
        ("/c/{**}", "/cx", false),
        ("/f/{**}/", "/f//", true),
        ("/f/{**}/", "/f/a/", true),
        ("/f/{**}/", "/f/", false),
        ("/f/{**}/", "/f/a", false),
        ("/g/{*}", "/g/a;v=1", true),
        ("/g/{*}", "/g/%2F", true),
        ("/g/{*}", "/g/", false),
        ("/g/{*}", "/g/a/", false),
        ("/a/{*}/b", "/a/x/b", true),
        ("/a/{*}/b", "/a//b", false),
        ("/a/{*}/b", "/a/x/y/b", false),
        ("/a/{*}/{**}/c", "/a/x/y/z/c", true),
        ("/a/{*}/{**}/c", "/a/x/c", false),
    ] {
        let matches = Pattern::of_path(pattern).matches(text.as_bytes(), false);
        assert_eq!(matches, expected, "{pattern} {text}");
    }
    for (glob, text, expected) in [
        ("a*z", "az", true),
        ("a*z", "abcz", true),
        ("a*z", "abc", false),
        ("a*b*c", "axbyc", true),
        ("a*b*c", "abc", true),
        ("a*b*c", "acb", false),
        ("a*a", "a", false),
        ("*", "", true),
        ("foo", "foox", false),
    ] {
        let glob = Pattern::Glob(glob.into());
        assert_eq!(
            glob.matches(text.as_bytes(), false),
            expected,
            "{glob:?} {text}"
        );
    }
    assert!(Pattern::of("shop.test*").matches(b"SHOP.Test:80", true));
    assert!(Pattern::of("*.test").matches(b"SHOP.Test", true));
    assert!(!Pattern::of("*.test").matches(b"shop.test:80", true));
}

#[test]
fn request_principals_match_as_in_the_table() {
    for (value, issuer, subject, expected) in [
        ("*", "i", "s", true),
        ("*", "i", "", false),
        ("i/s", "i", "s", true),
        ("i/s", "i", "sx", false),
        ("https://i/s", "https://i", "s", true),
        ("i/*", "i", "s", true),
        ("i/*", "j", "s", false),
        ("i/s*", "i", "sx", true),
        ("*/s", "any", "s", true),
        ("*x/s", "ax", "s", true),
        ("*x/s", "xa", "s", false),
        ("i*", "ij", "s", true),
        ("*s", "i", "as", true),
        ("v", "v", "s", false),
        ("i/a/b", "i", "a/b", false),
        ("i/a/b", "i/a", "b", true),
    ] {
        let claims = format!("{{\"iss\": \"{issuer}\", \"sub\": \"{subject}\"}}");
        let claims = Claims::parse(claims.as_bytes()).unwrap();
        let matches = RequestPrincipal::of(value).matches(&claims);
        assert_eq!(matches, expected, "{value} {issuer} {subject}");
    }
    let no_subject = Claims::parse(br#"{"iss": "i"}"#).unwrap();
    assert!(!RequestPrincipal::of("*").matches(&no_subject));
}

#[test]
fn identity_is_taken_apart_only_in_the_form_of_the_mesh() {
    let peer = Peer::parse("spiffe://td/ns/foo/sa/bar").unwrap();
    assert_eq!(
        (peer.principal, peer.trust_domain),
        ("td/ns/foo/sa/bar", "td")
    );
    assert_eq!((peer.account, peer.namespace), ("ns/foo/sa/bar", "foo"));
    for uri in [
        "td/ns/foo/sa/bar",
        "spiffe://td/ns/foo/sa/bar/extra",
        "spiffe://evil/td/ns/foo/sa/bar",
        "spiffe:///ns/foo/sa/bar",
        "spiffe://td/ns//sa/bar",
        "spiffe://td/ns/foo/sa/",
        "spiffe://td/ns/a/sa/b/sa/c",
        "spiffe://td",
        "spiffe://TD/ns/foo/sa/bar",
        "spiffe://td:443/ns/foo/sa/bar",
        "spiffe://u@td/ns/foo/sa/bar",
        "spiffe://td/ns/foo/sa/bar?x",
        "spiffe://td/ns/foo/sa/bar#x",
        "spiffe://td/ns/foo/sa/%62ar",
        "spiffe://td/ns/../sa/bar",
    ] {
        assert_eq!(Peer::parse(uri), None, "{uri}");
    }
}

fn text_condition(attribute: Attribute, value: &str) -> Condition {
    Condition {
        attribute,
        values: Some(Values::Texts([Pattern::of(value)].into())),
        not_values: None,
    }
}

#[test]
fn host_of_a_denying_rule_also_matches_without_port_and_dot() {
    let case = |authority: &str| Case {
        uri: None,
        source: [10, 0, 0, 1],
        port: 80,
        sni: String::new(),
        request: Some(("GET".into(), authority.into(), "/".into(), None)),
        claims: None,
    };
    for (value, authority, sent, bare) in [
        ("shop.test", "SHOP.test", true, true),
        ("shop.test", "shop.test:80", false, true),
        ("shop.test", "shop.test.", false, true),
        ("shop.test", "shop.test.:443", false, true),
        ("shop.test:*", "shop.test", false, false),
        ("shop.test:*", "shop.test:80", true, true),
        ("*.test", "a.test:80", false, true),
    ] {
        for (is_bare, expected) in [(false, sent), (true, bare)] {
            let condition = text_condition(Attribute::Host { is_bare }, value);
            let set = RuleSet::new(vec![rule(0, vec![], vec![vec![condition]], vec![])]);
            let found = case(authority).ask(|subject| set.first_match(subject).is_some());
            assert_eq!(found, expected, "{value} {authority} {is_bare}");
        }
    }
    let negated = Condition {
        values: None,
        not_values: Some(Values::Texts([Pattern::of("shop.test")].into())),
        ..text_condition(Attribute::Host { is_bare: true }, "*")
    };
    let set = RuleSet::new(vec![rule(0, vec![], vec![vec![negated]], vec![])]);
    assert!(case("shop.test:80").ask(|subject| set.first_match(subject).is_some()));
}

/// Words that values and requests are made from, so that they often match.
fn word() -> impl Strategy<Value = String> {
    proptest::sample::select(vec![
        "/a",
        "/a/b",
        "/b",
        "a",
        "b",
        "td/ns/a/sa/b",
        "td/ns/b/sa/b",
        "first",
        "/a/x/b",
        "ns/a/sa/b",
    ])
    .prop_map(str::to_owned)
}

fn pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        word().prop_map(|text| Pattern::Exact(text.into())),
        word().prop_map(|text| Pattern::Prefix(text.into())),
        word().prop_map(|text| Pattern::Suffix(text.into())),
        Just(Pattern::Suffix("b".into())),
        Just(Pattern::Any),
        Just(Pattern::Template("/a/{*}/b".into())),
        Just(Pattern::Template("/{**}".into())),
        Just(Pattern::Glob("a*".into())),
    ]
}

fn values(attribute: &Attribute) -> BoxedStrategy<Values> {
    match attribute {
        Attribute::SourceIp => {
            let network = (0_u8..3, 0_u8..=32).prop_map(|(byte, length)| {
                ipnet::IpNet::new([10, byte, 0, 1].into(), length)
                    .unwrap()
                    .trunc()
            });
            proptest::collection::vec(network, 1..3)
                .prop_map(|all| Values::Networks(all.into()))
                .boxed()
        }
        Attribute::DestinationPort => proptest::collection::vec(80_u16..83, 1..3)
            .prop_map(|all| Values::Ports(all.into()))
            .boxed(),
        Attribute::RequestPrincipal => proptest::sample::select(vec!["*", "a/a", "a/*", "b/a"])
            .prop_map(|text| Values::Principals([RequestPrincipal::of(text)].into()))
            .boxed(),
        _ => proptest::collection::vec(pattern(), 1..4)
            .prop_map(|all| Values::Texts(all.into()))
            .boxed(),
    }
}

fn condition() -> impl Strategy<Value = Condition> {
    let attributes = vec![
        Attribute::Principal,
        Attribute::Namespace,
        Attribute::ServiceAccount,
        Attribute::SourceIp,
        Attribute::DestinationPort,
        Attribute::RequestPrincipal,
        Attribute::Host { is_bare: true },
        Attribute::Host { is_bare: false },
        Attribute::Method,
        Attribute::Path,
        Attribute::Sni,
        Attribute::Header(HeaderKey::parse("x").unwrap()),
        Attribute::Claim(["role".into()].into()),
        Attribute::Absent,
    ];
    let attribute = proptest::sample::select(attributes);
    attribute.prop_flat_map(|attribute| {
        let both = (values(&attribute), values(&attribute), 0..3);
        both.prop_map(move |(yes, no, which)| Condition {
            attribute: attribute.clone(),
            values: (which != 1).then_some(yes),
            not_values: (which != 0).then_some(no),
        })
    })
}

type Parts = (Vec<Vec<Condition>>, Vec<Vec<Condition>>, Vec<Condition>);

fn parts() -> impl Strategy<Value = Parts> {
    let alternatives =
        || proptest::collection::vec(proptest::collection::vec(condition(), 1..3), 0..3);
    (
        alternatives(),
        alternatives(),
        proptest::collection::vec(condition(), 0..2),
    )
}

fn rules(parts: Vec<Parts>) -> Vec<Arc<Rule>> {
    let rules = parts.into_iter().enumerate();
    rules
        .map(|(number, (from, to, when))| rule(number, from, to, when))
        .collect()
}

fn case() -> impl Strategy<Value = Case> {
    let request = (
        proptest::sample::select(vec!["GET", "a", "b"]),
        proptest::sample::select(vec!["a", "A:80", "b.", "first"]),
        word(),
        proptest::option::of(word()),
    );
    let request = request.prop_map(|(method, host, path, header)| {
        (method.to_owned(), host.to_owned(), path, header)
    });
    let claims = proptest::sample::select(vec![
        None,
        Some(r#"{"iss": "a", "sub": "a", "role": ["a", "/a"]}"#),
        Some(r#"{"iss": "b", "role": "b"}"#),
    ]);
    (
        proptest::option::of(word().prop_map(|text| format!("spiffe://{text}"))),
        (0_u8..3).prop_map(|byte| [10, byte, 0, 1]),
        80_u16..83,
        proptest::sample::select(vec!["", "a", "b"]),
        proptest::option::weighted(0.8, request),
        claims,
    )
        .prop_map(|(uri, source, port, sni, request, claims)| Case {
            uri,
            source,
            port,
            sni: sni.to_owned(),
            claims: request
                .is_some()
                .then_some(claims)
                .flatten()
                .map(|text| Claims::parse(text.as_bytes()).unwrap()),
            request,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn index_finds_the_first_rule_that_matches(
        parts in proptest::collection::vec(parts(), 0..12),
        cases in proptest::collection::vec(case(), 1..8),
    ) {
        let rules = rules(parts);
        let set = RuleSet::new(rules.clone());
        for case in cases {
            case.ask(|subject| {
                let scanned = rules.iter().find(|rule| rule.matches(subject));
                let found = set.first_match(subject);
                prop_assert_eq!(found.map(|rule| &rule.name), scanned.map(|rule| &rule.name));
                for rule in &rules {
                    prop_assert_eq!(rule.failure(subject).is_none(), rule.matches(subject));
                }
                Ok(())
            })?;
        }
    }

    #[test]
    fn denying_rules_never_admit_and_allowing_rules_never_deny(
        deny in proptest::collection::vec(parts(), 0..4),
        allow in proptest::collection::vec(parts(), 1..4),
        more in parts(),
        case in case(),
    ) {
        let policies = |deny: Vec<Parts>, allow: Vec<Parts>| Policies {
            deny: RuleSet::new(rules(deny)),
            allow: Some(RuleSet::new(rules(allow))),
            ..Policies::default()
        };
        let before = policies(deny.clone(), allow.clone());
        let with_deny = policies([deny.clone(), vec![more.clone()]].concat(), allow.clone());
        let with_allow = policies(deny.clone(), [allow.clone(), vec![more]].concat());
        let only_deny = Policies { allow: None, ..policies(deny, vec![]) };
        case.ask(|subject| {
            let is_allowed = before.decide(subject).is_allowed();
            prop_assert!(is_allowed || !with_deny.decide(subject).is_allowed());
            prop_assert!(!is_allowed || with_allow.decide(subject).is_allowed());
            prop_assert!(!is_allowed || only_deny.decide(subject).is_allowed());
            Ok(())
        })?;
    }
}
