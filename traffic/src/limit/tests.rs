use std::time::Duration;

use http::{HeaderMap, Method};

use super::*;
use crate::registry::Rate;
use crate::route::{HeaderKey, RequestHead, TextMatch, UriMatch};
use tokio::time::Instant;

fn rule(tokens: u32, selectors: Vec<Selector>) -> LimitRule {
    LimitRule {
        selectors: selectors.into(),
        cost: 1,
        is_shadow: false,
        buckets: Arc::new(Buckets::new(Rate::new(tokens, Duration::from_secs(1)))),
        provenance: Provenance {
            object: "BackendTrafficPolicy/ns/a".into(),
            file: "a.yaml".into(),
            line: 1,
        },
    }
}

fn limits(rules: Vec<LimitRule>) -> RouteLimits {
    RouteLimits {
        provenance: rules[0].provenance.clone(),
        rules: rules.into(),
        global: Box::default(),
        body_max: None,
        sources: Sources::default(),
        is_unavailable: false,
        reads_added: false,
        fingerprint: 0,
    }
}

pub(super) fn header(name: &str, value: ValueMatch) -> Selector {
    Selector::Header(HeaderKey::parse(name).expect("a name"), value)
}

pub(super) fn exact(value: &str, inverted: bool) -> ValueMatch {
    ValueMatch::Matches(TextMatch::Exact(value.into()), inverted)
}

pub(super) fn source(net: &str, is_distinct: bool) -> Selector {
    let net = net.parse().expect("a block");
    Selector::Source { net, is_distinct }
}

/// Calls `test` with `METHOD PATH?QUERY ADDRESS` and header lines `NAME: VALUE`.
pub(super) fn with<T>(
    line: &str,
    lines: &[&str],
    test: impl FnOnce(&CountedRequest<'_>) -> T,
) -> T {
    let mut words = line.split(' ');
    let mut word = || words.next().expect("three words");
    let method: Method = word().parse().expect("a method");
    let target = word();
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let mut headers = HeaderMap::new();
    for line in lines {
        let (name, value) = line.split_once(": ").expect("a header");
        let name: http::HeaderName = name.parse().expect("a name");
        headers.append(name, value.parse().expect("a value"));
    }
    let head = RequestHead {
        is_http2: false,
        method: &method,
        scheme: "http",
        authority: "shop.example:80",
        host: "shop.example",
        path,
        query,
        headers: &headers,
        claims: None,
    };
    let client = word().parse().expect("an address");
    test(&CountedRequest::new(head, client, 64))
}

#[test]
fn conditions_select_requests() {
    let segments = |path: &str| PathMatch::Segments(path.into());
    let whole = |path: &str| {
        PathMatch::Whole(UriMatch::Exact {
            value: path.into(),
            ignore_case: false,
        })
    };
    let methods = |all: &[(Method, bool)]| Selector::Methods(all.into());
    let (get, post) = (Method::GET, Method::POST);
    let query = |value| Selector::Query("q".into(), value);
    let one = "GET /a/b?q=1 10.0.0.1";
    let cases: Vec<(Selector, &str, &[&str], bool)> = vec![
        (header("x-a", exact("1", false)), one, &["x-a: 1"], true),
        (
            header("x-a", exact("1", false)),
            one,
            &["x-a: 2", "x-a: 1"],
            true,
        ),
        (header("x-a", exact("1", false)), one, &[], false),
        (header("x-a", exact("1", true)), one, &["x-a: 2"], true),
        (header("x-a", exact("1", true)), one, &[], true),
        (header("x-a", ValueMatch::Distinct), one, &[], false),
        (header("x-a", ValueMatch::Distinct), one, &["x-a: "], true),
        (
            header("host", exact("shop.example:80", false)),
            one,
            &[],
            true,
        ),
        (header("host", exact("shop.example", false)), one, &[], true),
        (header("host", exact("shop.example", true)), one, &[], false),
        (
            methods(&[(get.clone(), false), (post.clone(), false)]),
            one,
            &[],
            true,
        ),
        (methods(&[(post.clone(), false)]), one, &[], false),
        (methods(&[(post, true)]), one, &[], true),
        (methods(&[(get, true)]), one, &[], false),
        (Selector::Path(segments("/a"), false), one, &[], true),
        (Selector::Path(segments("/a/b"), false), one, &[], true),
        (
            Selector::Path(segments("/a/"), false),
            "GET /ab 1.1.1.1",
            &[],
            false,
        ),
        (Selector::Path(segments(""), false), one, &[], true),
        (Selector::Path(segments("/a"), true), one, &[], false),
        (Selector::Path(whole("/a/b"), false), one, &[], true),
        (Selector::Path(whole("/a"), false), one, &[], false),
        (query(exact("1", false)), one, &[], true),
        (query(exact("1", true)), "GET /a 1.1.1.1", &[], true),
        (query(ValueMatch::Distinct), "GET /a 1.1.1.1", &[], false),
        (source("10.0.0.0/8", false), one, &[], true),
        (source("10.0.0.0/8", true), "GET / 11.0.0.1", &[], false),
        (source("0.0.0.0/0", true), "GET / 2001:db8::1", &[], false),
    ];
    for (selector, line, lines, expected) in cases {
        let text = format!("{selector:?} {line} {lines:?}");
        let rule = rule(1, vec![selector]);
        let (selects, objects) = with(line, lines, |request| {
            (
                rule.key(request).is_some(),
                objection(&rule.selectors, request).is_some(),
            )
        });
        assert_eq!(selects, expected, "{text}");
        assert_eq!(objects, !expected, "{text}");
    }
}

#[test]
fn distinct_values_have_keys_of_their_own() {
    let by_address = rule(1, vec![source("::/0", true)]);
    let key = |line: &str| with(line, &[], |request| by_address.key(request));
    assert_eq!(key("GET / 2001:db8::1"), key("GET / 2001:db8::2"));
    assert_ne!(key("GET / 2001:db8::1"), key("GET / 2001:db8:0:1::1"));

    let both = vec![
        header("x-a", ValueMatch::Distinct),
        header("x-b", ValueMatch::Distinct),
    ];
    let both = rule(1, both);
    let key = |a, b| with("GET / 1.1.1.1", &[a, b], |request| both.key(request));
    assert_eq!(key("x-a: 1", "x-b: 2"), key("x-b: 2", "x-a: 1"));
    assert_ne!(key("x-a: 1", "x-b: 2"), key("x-a: 2", "x-b: 1"));
    assert_ne!(key("x-a: 12", "x-b: 3"), key("x-a: 1", "x-b: 23"));
    assert_eq!(
        with("GET / 1.1.1.1", &[], |request| rule(1, vec![]).key(request)),
        Some(None)
    );
}

#[test]
fn refused_request_is_counted_by_no_rule() {
    let narrow = rule(1, vec![]);
    let limits = limits(vec![rule(2, vec![]), narrow, rule(3, vec![])]);
    let now = Instant::now();
    let count = || {
        with("GET / 1.1.1.1", &[], |request| {
            let counted = limits.count(request, Part::All, now);
            assert!(counted.is_counted);
            counted
                .refusal
                .map(|refusal| (refusal.rule.buckets.rate().tokens, refusal.exhausted))
        })
    };
    assert_eq!(count(), None);
    for _ in 0..5 {
        let expected = Exhausted {
            left: 0,
            wait: Duration::from_secs(1),
        };
        assert_eq!(count(), Some((1, expected)));
    }
    let left = |rule: usize| {
        let buckets = &limits.rules[rule].buckets;
        (0..10)
            .take_while(|_| buckets.take(None, 1, now).0.is_ok())
            .count()
    };
    assert_eq!((left(0), left(1), left(2)), (1, 0, 2));
}

#[test]
fn rule_whose_token_takes_longest_refuses() {
    let mut rules = vec![rule(10, vec![]), rule(1, vec![]), rule(5, vec![])];
    rules.iter_mut().for_each(|rule| rule.cost = 10);
    let limits = limits(rules);
    let now = Instant::now();
    let refusing = with("GET / 1.1.1.1", &[], |request| {
        let counted = limits.count(request, Part::All, now);
        counted
            .refusal
            .map(|refusal| refusal.rule.buckets.rate().tokens)
    });
    assert_eq!(refusing, Some(1));
}

#[test]
fn shadow_mode_refuses_nothing() {
    let mut shadow = rule(1, vec![]);
    shadow.is_shadow = true;
    let limits = limits(vec![shadow]);
    let now = Instant::now();
    let count = || {
        with("GET / 1.1.1.1", &[], |request| {
            let counted = limits.count(request, Part::All, now);
            (counted.refusal.is_some(), counted.shadowed)
        })
    };
    assert_eq!([count(), count()], [(false, 0), (false, 1)]);
}

#[test]
fn early_rules_read_no_header() {
    let limits = limits(vec![
        rule(1, vec![source("0.0.0.0/0", true)]),
        rule(2, vec![header("x-a", ValueMatch::Distinct)]),
    ]);
    let now = Instant::now();
    let count = |part| {
        with("GET / 1.1.1.1", &["x-a: 1"], |request| {
            let counted = limits.count(request, part, now);
            counted
                .refusal
                .map(|refusal| refusal.rule.buckets.rate().tokens)
        })
    };
    assert_eq!(count(Part::Early), None);
    assert_eq!(count(Part::Early), Some(1));
    assert_eq!(count(Part::Late), None);
    assert_eq!(count(Part::Late), None);
    assert_eq!(count(Part::Late), Some(2));
}
