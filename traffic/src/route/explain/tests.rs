use super::*;
use crate::route::Conditions;
use crate::route::tests::{exact, get, header, parameter, prefix, regex, rule, uri_prefix};

/// Lines as `+field wanted|got`, or with `-` for a condition that does not hold.
fn lines(conditions: Conditions, request: &crate::route::tests::Request) -> Vec<String> {
    let explained = explain(&rule(conditions), &request.head());
    let print = |line: Explained| {
        let sign = if line.held { '+' } else { '-' };
        let got = line.got.unwrap_or_else(|| "(none)".to_owned());
        format!("{sign}{} {}|{got}", line.field, line.wanted)
    };
    explained.into_iter().map(print).collect()
}

#[test]
fn every_condition_shows_expected_and_actual_values() {
    let conditions = Conditions {
        is_http2: false,
        uri: uri_prefix("/a", true),
        scheme: Some(exact("https")),
        method: Some(exact("GET")),
        authority: Some(prefix("a.")),
        headers: [
            header("x", regex("[0-9]+")),
            header("y", TextMatch::Present),
            header(":path", prefix("/A")),
        ]
        .into(),
        without_headers: [header("z", exact("1"))].into(),
        query: [parameter("q", exact("1"))].into(),
        of_policy: None,
    };
    let of_policy = |uri| Conditions {
        uri: uri_prefix(uri, false),
        ..Conditions::default()
    };
    let conditions = conditions.and(of_policy("/A")).and(of_policy("/c"));
    let request = get("/A/b?q=2")
        .header("x", "7")
        .header("x", "q")
        .header("z", "1");
    assert_eq!(
        lines(conditions, &request),
        [
            "+uri.prefix (ignoreUriCase) /a|/A/b",
            "-scheme.exact https|http",
            "+method.exact GET|GET",
            "+authority.prefix a.|a.com",
            "+headers[x].regex [0-9]+|7 | q",
            "-headers[y].present |(none)",
            "+headers[:path].prefix /A|/A/b?q=2",
            "-withoutHeaders[z].exact 1|1",
            "-queryParams[q].exact 1|2",
            "+policy uri.prefix /A|/A/b",
            "-policy uri.prefix /c|/A/b",
        ]
    );
}

#[test]
fn a_rule_without_conditions_prints_no_conditions() {
    assert!(explain(&rule(Conditions::default()), &get("/").head()).is_empty());
}

#[test]
fn conditions_that_almost_hold_have_a_hint() {
    let hints = |conditions: Conditions, request: &crate::route::tests::Request| {
        let explained = explain(&rule(conditions), &request.head());
        explained
            .into_iter()
            .map(|line| line.hint)
            .collect::<Vec<_>>()
    };
    let of_headers = |value: TextMatch| Conditions {
        headers: [header("x", value)].into(),
        ..Conditions::default()
    };
    let request = get("/Cart/7").header("x", "Jason");
    let case = Some("differs in case only");
    let part = Some("a part matches, and a regex must match the whole value");
    assert_eq!(hints(of_headers(exact("jason")), &request), [case]);
    assert_eq!(hints(of_headers(prefix("jas")), &request), [case]);
    assert_eq!(hints(of_headers(regex("as")), &request), [part]);
    for other in [
        exact("ann"),
        exact("jasonx"),
        prefix("jasonx"),
        regex("x"),
        regex("x*"),
        exact("Jason"),
    ] {
        assert_eq!(hints(of_headers(other), &request), [None]);
    }
    let of_uri = |uri| Conditions {
        uri,
        ..Conditions::default()
    };
    assert_eq!(hints(of_uri(uri_prefix("/cart", false)), &request), [case]);
    assert_eq!(hints(of_uri(uri_prefix("/cart", true)), &request), [None]);
    let without = Conditions {
        without_headers: [header("x", exact("jason"))].into(),
        ..Conditions::default()
    };
    assert_eq!(hints(without, &request), [None]);
}
