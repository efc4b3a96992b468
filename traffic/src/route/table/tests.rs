use proptest::prelude::*;

use super::*;
use crate::route::tests::{
    Request, exact, get, header, parameter, prefix, regex, rule, uri_exact, uri_prefix, uri_regex,
    uri_segments,
};
use crate::route::{Conditions, HeaderMatch, QueryMatch, TextMatch, UriMatch};

/// A table that is indexed however short it is.
fn indexed(rules: Vec<Rule>) -> Table {
    let rules: Arc<[Rule]> = rules.into();
    let index = Some(Arc::new(Index::new(&rules)));
    Table {
        rules,
        index,
        reads_added: false,
        reads_claims: false,
    }
}

fn path_rules(uris: impl IntoIterator<Item = UriMatch>) -> Vec<Rule> {
    let conditions = |uri| Conditions {
        uri,
        ..Conditions::default()
    };
    uris.into_iter().map(|uri| rule(conditions(uri))).collect()
}

fn found(table: &Table, request: &Request) -> Option<u32> {
    let found = table.find(&request.head());
    assert_eq!(
        found,
        scan::find(table.rules(), &request.head()),
        "{request:?}"
    );
    found.map(|index| index.0)
}

#[test]
fn the_first_matching_rule_wins_over_a_longer_prefix() {
    let table = indexed(path_rules([
        uri_exact("/a/b/c", false),
        uri_prefix("/A", true),
        uri_prefix("/a/b", false),
        uri_regex("/a/.*|/z"),
        uri_prefix("/", false),
        uri_prefix("/zz", false),
    ]));
    for (target, expected) in [("/a/b/c", 0), ("/a/b", 1), ("/z", 3), ("/zz", 4), ("/", 4)] {
        assert_eq!(found(&table, &get(target)), Some(expected), "{target}");
    }
    assert_eq!(found(&table, &get("*")), None);
}

#[test]
fn prefixes_by_segments_are_found_at_their_ends() {
    let table = indexed(path_rules([
        uri_segments("/a/b"),
        uri_segments("/a"),
        uri_prefix("/a", false),
        uri_segments(""),
    ]));
    for (target, expected) in [
        ("/a/b", 0),
        ("/a/b/c", 0),
        ("/a/bc", 1),
        ("/a", 1),
        ("/ab", 2),
        ("/b", 3),
    ] {
        assert_eq!(found(&table, &get(target)), Some(expected), "{target}");
    }
    assert_eq!(found(&table, &get("*")), None);
}

#[test]
fn an_empty_table_finds_nothing() {
    assert_eq!(found(&Table::default(), &get("/")), None);
    assert_eq!(found(&indexed(Vec::new()), &get("/")), None);
    assert_eq!(found(&Table::compile(Vec::new()), &get("/")), None);
}

#[test]
fn the_last_of_many_prefixes_is_found() {
    let uris = (0..10_000).map(|number| uri_prefix(&format!("/route-{number:05}"), false));
    let table = Table::compile(path_rules(uris));
    assert_eq!(found(&table, &get("/route-09999/x")), Some(9_999));
    assert_eq!(found(&table, &get("/route-1000")), None);
}

#[test]
fn a_chain_of_prefixes_is_merged_in_rule_order() {
    let chain: Vec<Rule> = (0..300)
        .map(|number| {
            rule(Conditions {
                // Longest last; only every seventh can win.
                uri: uri_prefix(&"/".repeat(number % 100), false),
                method: (number % 7 != 6).then(|| exact("PUT")),
                headers: [header("x", exact(&format!("{}", number / 20)))].into(),
                ..Conditions::default()
            })
        })
        .collect();
    let table = Table::compile(chain);
    for value in 0..16 {
        for length in [1, 20, 99, 120] {
            let request = get(&"/".repeat(length)).header("x", &value.to_string());
            found(&table, &request);
            found(&table, &request.method("PUT"));
        }
    }
}

#[test]
fn one_path_with_many_header_values_is_split_by_value() {
    let rules = (0..10_000).map(|number| {
        rule(Conditions {
            uri: uri_prefix("/", false),
            headers: [header("tenant", exact(&format!("t{number}")))].into(),
            ..Conditions::default()
        })
    });
    let table = Table::compile(rules.collect());
    assert_eq!(
        found(&table, &get("/").header("tenant", "t9999")),
        Some(9_999)
    );
    let two = get("/").header("tenant", "t5000").header("tenant", "t77");
    assert_eq!(found(&table, &two), Some(77));
    assert_eq!(found(&table, &get("/").header("tenant", "t")), None);
    assert_eq!(found(&table, &get("/")), None);
}

#[test]
fn rules_without_a_value_keep_their_order_among_rules_with_one() {
    let mut rules: Vec<Rule> = (0..20)
        .map(|number| {
            rule(Conditions {
                headers: [header("tenant", exact(&format!("t{number}")))].into(),
                query: [parameter("v", exact(&format!("{}", number % 2)))].into(),
                ..Conditions::default()
            })
        })
        .collect();
    rules.insert(
        10,
        rule(Conditions {
            method: Some(prefix("P")),
            ..Conditions::default()
        }),
    );
    rules.push(rule(Conditions::default()));
    let table = Table::compile(rules);
    let tenant = |name: &str| get("/?v=1").header("tenant", name);
    assert_eq!(found(&table, &tenant("t3").method("POST")), Some(3));
    assert_eq!(found(&table, &tenant("t15").method("POST")), Some(10));
    assert_eq!(found(&table, &tenant("t15")), Some(16));
    assert_eq!(found(&table, &tenant("t14")), Some(21));
}

#[test]
fn five_thousand_routes_use_little_memory() {
    assert!(size_of::<Rule>() <= 256, "{}", size_of::<Rule>());
    assert!(size_of::<Candidate>() <= 12);
    assert!(size_of::<Table>() <= 32);
}

use group::Candidate;

fn any_segment() -> impl Strategy<Value = String> {
    // Few letters, so that paths share beginnings.
    proptest::string::string_regex("(/|/a|/A|/ab|b|/é|//){0,4}").unwrap()
}

fn any_uri() -> impl Strategy<Value = UriMatch> {
    prop_oneof![
        1 => Just(UriMatch::Any),
        4 => (any_segment(), any::<bool>()).prop_map(|(path, case)| uri_exact(&path, case)),
        6 => (any_segment(), any::<bool>()).prop_map(|(path, case)| uri_prefix(&path, case)),
        4 => any_segment().prop_map(|path| uri_segments(path.trim_end_matches('/'))),
        3 => prop_oneof![
            Just("/a.*"), Just("/a|/ab"), Just("(?i)/ab"), Just("/ab?/?"), Just("/(a|b)+"), Just(".*"),
            Just("/[aA]b"), Just("/a//*"), Just("(/a)*"), Just("/é.*"), Just("[^/]*/a"), Just("/a.*/ab/b.*"), Just("/(a|b)?/a//b?"), Just("(?i)/a/*/ab/a"), Just("/[ab]*//a"),
        ].prop_map(uri_regex),
    ]
}

fn any_text() -> impl Strategy<Value = TextMatch> {
    prop_oneof![
        6 => "[ab]{0,2}".prop_map(|text| exact(&text)),
        1 => "[ab]{1,2}".prop_map(|text| prefix(&text)),
        1 => "[ab]?,[ab]".prop_map(|text| exact(&text)),
        1 => Just(regex("a*")),
        1 => Just(TextMatch::Present),
    ]
}

fn any_header() -> impl Strategy<Value = HeaderMatch> {
    let key = prop_oneof![
        4 => Just("x"), 2 => Just("X-Y"), 1 => Just(":method"), 1 => Just(":path"), 1 => Just(":authority"),
    ];
    (key, any_text(), any::<bool>()).prop_map(|(key, value, is_joined)| {
        let mut header = header(key, value);
        if is_joined {
            header.key = header.key.joined();
        }
        header
    })
}

fn any_parameter() -> impl Strategy<Value = QueryMatch> {
    (prop_oneof![Just("q"), Just("r")], any_text()).prop_map(|(name, value)| parameter(name, value))
}

fn any_method() -> impl Strategy<Value = Option<TextMatch>> {
    prop_oneof![
        5 => Just(None),
        1 => Just(Some(exact("GET"))),
        1 => Just(Some(exact("BREW"))),
        1 => Just(Some(prefix("P"))),
        1 => Just(Some(regex("GET|B.*"))),
    ]
}

fn any_rules() -> impl Strategy<Value = Vec<Rule>> {
    let rule_of = |(uri, method, headers, without_headers, query, more): (
        UriMatch,
        _,
        Vec<_>,
        Vec<_>,
        Vec<_>,
        _,
    )| {
        let conditions = Conditions {
            uri,
            method,
            headers: headers.into(),
            without_headers: without_headers.into(),
            query: query.into(),
            ..Conditions::default()
        };
        rule(match more {
            None => conditions,
            Some(uri) => conditions.and(Conditions {
                uri,
                ..Conditions::default()
            }),
        })
    };
    let any_rule = (
        any_uri(),
        any_method(),
        proptest::collection::vec(any_header(), 0..3),
        proptest::collection::vec(any_header(), 0..2),
        proptest::collection::vec(any_parameter(), 0..2),
        proptest::option::weighted(0.2, any_uri()),
    );
    let rules = proptest::collection::vec(any_rule.prop_map(rule_of), 0..60);
    // Half of the sets have one path for all, so that groups grow long enough to be split.
    (rules, proptest::option::of(any_uri())).prop_map(|(mut rules, uri)| {
        for rule in &mut rules {
            if let Some(uri) = &uri {
                rule.conditions.uri = uri.clone();
            }
        }
        rules
    })
}

fn any_request() -> impl Strategy<Value = Request> {
    let method = prop_oneof![Just("GET"), Just("POST"), Just("BREW"), Just("BOIL")];
    let headers =
        proptest::collection::vec((prop_oneof![Just("x"), Just("x-y")], "[ab]{0,2}"), 0..4);
    let query = proptest::option::of("([qr](=[ab]{0,2})?&){0,3}");
    (any_segment(), query, method, headers).prop_map(|(path, query, method, headers)| {
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        let request = get(&format!("/{path}{query}")).method(method);
        headers.into_iter().fold(request, |request, (name, value)| {
            request.header(name, &value)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn the_index_agrees_with_the_scan(
        rules in any_rules(),
        requests in proptest::collection::vec(any_request(), 1..20),
    ) {
        let table = indexed(rules);
        for request in requests {
            let head = request.head();
            prop_assert_eq!(table.find(&head), scan::find(table.rules(), &head), "{:?}", request);
        }
    }
}
