//! Requests that match blocks accept.

use super::{World, to_one};

/// Checks match blocks with requests that match, and requests that do not.
async fn check(cases: &[(&str, &[&str], &[&str])]) {
    let cases: Vec<(String, Vec<(&str, &str)>)> = cases
        .iter()
        .map(|(block, taken, others)| {
            let rule = format!(
                "- match: [{block}]\n  directResponse: {{status: 200, body: {{string: taken}}}}"
            );
            let taken = taken.iter().map(|request| (*request, "200 taken"));
            let others = others.iter().map(|request| (*request, "404"));
            (rule, taken.chain(others).collect())
        })
        .collect();
    World::new().check_made(&cases).await;
}

#[tokio::test]
async fn uri_conditions_match_the_listed_paths() {
    check(&[
        (
            "{uri: {prefix: /foo}}",
            &["HOST/foo", "HOST/foobar", "HOST/foo?x"],
            &["HOST/Foo", "HOST/fo", "HOST/a/foo"],
        ),
        (
            "{uri: {exact: /foo}}",
            &["HOST/foo", "HOST/foo?x=1"],
            &["HOST/foo/", "HOST/Foo"],
        ),
        (
            "{uri: {regex: '/b.*'}}",
            &["HOST/b", "HOST/bc"],
            &["HOST/ab"],
        ),
        (
            "{uri: {regex: /foo}, ignoreUriCase: true}",
            &["HOST/foo"],
            &["HOST/FOO"],
        ),
        (
            "{uri: {exact: /foo}, ignoreUriCase: true}",
            &["HOST/FOO"],
            &["HOST/FOO/"],
        ),
        (
            "{uri: {prefix: /a/b}}",
            &["HOST/a/./b", "HOST/a/x/../b", "HOST/a/b"],
            &["HOST/a//b"],
        ),
        ("{uri: {exact: '/a%2Fb'}}", &["HOST/a%2Fb"], &["HOST/a/b"]),
    ])
    .await;
}

#[tokio::test]
async fn header_conditions_match_the_listed_headers() {
    check(&[
        (
            "{headers: {h: {exact: a}}}",
            &["HOST/ | h: a", "HOST/ | H: a"],
            &["HOST/ | h: A", "HOST/"],
        ),
        (
            "{headers: {h: {exact: 'a,b'}}}",
            &["HOST/ | h: a,b"],
            &["HOST/ | h: a | h: b"],
        ),
        ("{headers: {h: {exact: b}}}", &["HOST/ | h: a | h: b"], &[]),
        (
            "{headers: {h: {}}}",
            &["HOST/ | h: ", "HOST/ | h: a"],
            &["HOST/"],
        ),
        (
            "{withoutHeaders: {h: {exact: a}}}",
            &["HOST/", "HOST/ | h: b"],
            &["HOST/ | h: a"],
        ),
        (
            "{withoutHeaders: {h: {regex: '.*'}}}",
            &[],
            &["HOST/", "HOST/ | h: a"],
        ),
        (
            "{withoutHeaders: {h: {}}}",
            &["HOST/"],
            &["HOST/ | h: ", "HOST/ | h: a"],
        ),
        (
            "{headers: {':method': {exact: PUT}}}",
            &["PUT HOST/"],
            &["GET HOST/"],
        ),
        (
            "{headers: {':path': {exact: '/a?b'}}}",
            &["HOST/a?b"],
            &["HOST/a"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn every_part_of_a_request_matches_by_every_kind_of_condition() {
    check(&[
        ("{scheme: {exact: http}}", &["HOST/"], &[]),
        ("{scheme: {prefix: ht}}", &["HOST/"], &[]),
        ("{scheme: {regex: 'h.*p'}}", &["HOST/"], &[]),
        ("{scheme: {exact: https}}", &[], &["HOST/"]),
        ("{scheme: {prefix: https}}", &[], &["HOST/"]),
        ("{scheme: {regex: h}}", &[], &["HOST/"]),
        ("{method: {exact: PUT}}", &["PUT HOST/"], &["GET HOST/"]),
        ("{method: {prefix: PU}}", &["PUT HOST/"], &["GET HOST/"]),
        ("{method: {regex: 'P.T'}}", &["PUT HOST/"], &["GET HOST/"]),
        ("{authority: {prefix: t}}", &["HOST/"], &[]),
        ("{authority: {prefix: x}}", &[], &["HOST/"]),
        ("{authority: {regex: '[^:]*'}}", &["HOST/"], &["HOST:80/"]),
        (
            "{headers: {h: {prefix: a}}}",
            &["HOST/ | h: ab"],
            &["HOST/ | h: ba", "HOST/"],
        ),
        (
            "{headers: {h: {regex: 'a.'}}}",
            &["HOST/ | h: ab"],
            &["HOST/ | h: abc", "HOST/"],
        ),
        (
            "{withoutHeaders: {h: {prefix: a}}}",
            &["HOST/ | h: ba"],
            &["HOST/ | h: ab"],
        ),
        (
            "{queryParams: {q: {prefix: a}}}",
            &["HOST/?q=ab"],
            &["HOST/?q=ba", "HOST/"],
        ),
        (
            "{queryParams: {q: {regex: 'a.'}}}",
            &["HOST/?q=ab"],
            &["HOST/?q=abc", "HOST/"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn query_conditions_match_the_listed_parameters() {
    check(&[
        (
            "{queryParams: {q: {exact: ''}}}",
            &["HOST/?q", "HOST/?q="],
            &["HOST/?q=1", "HOST/"],
        ),
        (
            "{queryParams: {q: {exact: a}}}",
            &["HOST/?q=a", "HOST/?q=a&q=b"],
            &["HOST/?q=b&q=a", "HOST/?Q=a"],
        ),
        (
            "{queryParams: {q: {}}}",
            &["HOST/?q", "HOST/?x&q=7"],
            &["HOST/?x"],
        ),
    ])
    .await;
}

#[tokio::test]
async fn authority_is_compared_with_its_port_and_port_with_the_listener() {
    check(&[
        (
            "{authority: {exact: t0.test}}",
            &["HOST/"],
            &["HOST:80/", "T0.test/"],
        ),
        ("{port: 8080}", &[], &["HOST:8080/", "HOST/"]),
    ])
    .await;
}

#[tokio::test]
async fn conditions_of_a_block_are_anded_and_blocks_are_ored() {
    check(&[(
        "{uri: {prefix: /a}, headers: {h: {exact: x}}}, {uri: {prefix: /b}}",
        &["HOST/a | h: x", "HOST/b"],
        &["HOST/a", "HOST/c | h: x"],
    )])
    .await;
}

#[tokio::test]
async fn first_matching_rule_is_used_and_rules_after_a_catch_all_are_not() {
    let says = |name: &str| format!("directResponse: {{status: 200, body: {{string: {name}}}}}");
    let without = format!(
        "- {}\n- match: [{{uri: {{prefix: /x}}}}]\n  {}",
        says("first"),
        says("second")
    );
    let block = format!(
        "- match: [{{uri: {{prefix: /a}}}}, {{uri: {{prefix: /}}}}]\n  {}\n- match: [{{uri: {{prefix: /b}}}}]\n  {}",
        says("first"),
        says("second")
    );
    World::new()
        .check(&[
            (&without, &[("HOST/x", "200 first")]),
            (&block, &[("HOST/b", "200 first"), ("HOST/a", "200 first")]),
        ])
        .await;
}

#[tokio::test]
async fn ignore_uri_case_rewrites_by_the_length_of_the_prefix() {
    let rule = to_one("match: [{uri: {prefix: /foo}, ignoreUriCase: true}]\nrewrite: {uri: /x}");
    World::new()
        .check(&[(&rule, &[("HOST/FOO/bar", "200 one /x/bar HOST")])])
        .await;
}
