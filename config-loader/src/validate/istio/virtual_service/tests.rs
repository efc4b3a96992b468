mod actions;
mod head;
mod whole;

use crate::validate::istio::testing::check;

/// Valid rule, for use under `http`.
const GOOD: &str = "- route: [{destination: {host: a}}]";

fn service(cases: &[(&str, &[&str])]) {
    check("VirtualService", cases);
}

/// Checks cases of one HTTP rule, whose fields begin on line 7.
fn rule(cases: &[(&str, &[&str])]) {
    for (fields, expected) in cases {
        let fields = fields.replace('\n', "\n  ");
        let body = format!("hosts: [a.com]\nhttp:\n- {fields}");
        check("VirtualService", &[(body.as_str(), *expected)]);
    }
}

/// Checks cases of one HTTP rule with a valid route, as [`rule`] does.
fn with_route(cases: &[(&str, &[&str])]) {
    for (fields, expected) in cases {
        let body = format!("{fields}\nroute: [{{destination: {{host: a}}}}]");
        rule(&[(body.as_str(), *expected)]);
    }
}

#[test]
fn match_blocks_are_checked() {
    let long = format!("headers: {{a: {{regex: '{}'}}}}", "a".repeat(1025));
    let longest = format!("headers: {{a: {{regex: '{}'}}}}", "a".repeat(1024));
    for (block, code) in [
        (
            "headers: {a: {exact: b}, B-c: {prefix: d}, ':method': {exact: GET}}",
            None,
        ),
        ("headers: {'': {exact: a}}", Some("VS049")),
        ("headers: {'a b': {exact: a}}", Some("VS050")),
        ("withoutHeaders: {'a b': {exact: a}}", Some("VS050")),
        ("headers: {':status': {exact: a}}", Some("VS050")),
        ("headers: {a: {}}", None),
        ("withoutHeaders: {a: null}", None),
        ("queryParams: {a: null}", None),
        ("headers: {a: {prefix: ''}}", Some("VS052")),
        ("withoutHeaders: {a: {prefix: ''}}", Some("VS052")),
        ("queryParams: {a: {prefix: ''}}", Some("VS052")),
        ("scheme: {prefix: ''}", Some("VS052")),
        ("method: {prefix: ''}", Some("VS052")),
        ("authority: {prefix: ''}", Some("VS052")),
        ("uri: {prefix: ''}", None),
        ("queryParams: {a: {exact: ''}}", None),
        ("uri: {regex: ''}", Some("VS053")),
        ("headers: {a: {regex: ''}}", Some("VS053")),
        (&long, Some("VS054")),
        (&longest, None),
        ("uri: {regex: '(?=a)'}", Some("VS055")),
        ("uri: {regex: '(a)\\1'}", Some("VS055")),
        ("uri: {regex: '/v[0-9]+/.*'}", None),
        ("headers: {a: {regex: '*'}}", Some("VS055")),
        ("queryParams: {a: {regex: '*'}}", Some("VS055")),
        ("withoutHeaders: {a: {regex: '*'}}", None),
        ("port: 8080", None),
        ("port: 0", Some("CM016")),
        ("port: 65536", Some("CM016")),
        ("sourceLabels: {app: a, example.com/b: ''}", None),
        ("sourceLabels: {'a b': c}", Some("CM014")),
        ("sourceLabels: {a: 'b c'}", Some("CM015")),
        ("sourceNamespace: ns", None),
        ("sourceNamespace: n_s", Some("VS059")),
        ("uri: {exact: /a, prefix: /b}", Some("CM019")),
        ("uri: {exact: /a, ignoreCase: true}", Some("CM021")),
        ("uri: {exact: 1}", Some("CM028")),
    ] {
        let expected = code.map(|code| format!("E {code} 7"));
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        with_route(&[(&format!("match: [{{{block}}}]"), &expected)]);
    }
    with_route(&[
        ("match: [null]", &["E CM018 7"]),
        ("match: [{headers: {a: null}}]", &["W VS051 7"]),
    ]);
}

#[test]
fn tls_and_tcp_rules_need_matches_and_routes() {
    let route = "route: [{destination: {host: a}}]";
    let service_with = |rules: &str| format!("hosts: [a.com, '*.b.com']\n{rules}");
    for (rules, expected) in [
        (
            format!("tls: [{{match: [{{sniHosts: [a.com, x.b.com]}}], {route}}}]"),
            vec![],
        ),
        (format!("tls: [{{{route}}}]"), vec!["E VS108 6"]),
        (format!("tls: [{{match: [], {route}}}]"), vec!["E VS108 6"]),
        (
            format!("tls: [{{match: [{{port: 443}}], {route}}}]"),
            vec!["E VS109 6"],
        ),
        (
            format!("tls: [{{match: [{{sniHosts: [x_y.b.com]}}], {route}}}]"),
            vec!["E VS110 6"],
        ),
        (
            format!("tls: [{{match: [{{sniHosts: [c.com]}}], {route}}}]"),
            vec!["E VS111 6"],
        ),
        (
            format!("tls: [{{match: [{{sniHosts: [b.com]}}], {route}}}]"),
            vec!["E VS111 6"],
        ),
        (
            format!("tls: [{{match: [{{sniHosts: ['*.b.com']}}], {route}}}]"),
            vec![],
        ),
        (
            format!("tls: [{{match: [{{sniHosts: [a.com], port: 0}}], {route}}}]"),
            vec!["E CM016 6"],
        ),
        (
            format!(
                "tls: [{{match: [{{sniHosts: [a.com], destinationSubnets: [10.0.0.0/8]}}], {route}}}]"
            ),
            vec![],
        ),
        (
            format!("tls: [{{match: [{{sniHosts: [a.com], destinationSubnets: [x]}}], {route}}}]"),
            vec!["E VS113 6"],
        ),
        (
            format!("tls: [{{match: [{{sniHosts: [a.com], gateways: [ns/]}}], {route}}}]"),
            vec!["E VS024 6"],
        ),
        (
            format!(
                "tls: [{{match: [{{sniHosts: [a.com], sourceLabels: {{'a b': c}}}}], {route}}}]"
            ),
            vec!["E CM014 6"],
        ),
        (
            "tls: [{match: [{sniHosts: [a.com]}]}]".to_owned(),
            vec!["E VS115 6"],
        ),
        (
            "tls: [{match: [{sniHosts: [a.com]}], route: []}]".to_owned(),
            vec!["E VS115 6"],
        ),
        (
            "tls: [{match: [{sniHosts: [a.com]}], route: [{destination: {host: a}, weight: -1}]}]"
                .to_owned(),
            vec!["E VS106 6"],
        ),
        (
            format!("tcp: [{{match: [{{port: 27017, destinationSubnets: [10.0.0.1]}}], {route}}}]"),
            vec![],
        ),
        (
            format!("tcp: [{{match: [{{destinationSubnets: [10.0.0.0/40]}}], {route}}}]"),
            vec!["E VS113 6"],
        ),
        (
            format!("tcp: [{{match: [{{port: 70000}}], {route}}}]"),
            vec!["E CM016 6"],
        ),
        (
            format!("tcp: [{{match: [{{sourceSubnet: 10.0.0.0/8}}], {route}}}]"),
            vec!["W VS118 6"],
        ),
        ("tcp: [{match: [{port: 1}]}]".to_owned(), vec!["E VS115 6"]),
        (
            "tcp: [{route: [{destination: {host: a}}, {destination: {host: b}}]}]".to_owned(),
            vec!["E VS107 6"],
        ),
    ] {
        service(&[(&service_with(&rules), &expected)]);
    }
    let ip = format!("hosts: [10.0.0.1]\ntls: [{{match: [{{sniHosts: [10.0.0.1]}}], {route}}}]");
    service(&[(&ip, &["W VS112 6"])]);
    let ip = format!("hosts: [a.com]\ntls: [{{match: [{{sniHosts: [10.0.0.1]}}], {route}}}]");
    service(&[(&ip, &["W VS112 6"])]);
}

#[test]
fn unreachable_rules_are_reported() {
    let to = "route: [{destination: {host: a}}]";
    let http = |rules: &[&str]| {
        let rules: Vec<String> = rules.iter().map(|rule| format!("- {{{rule}}}")).collect();
        format!("hosts: [a.com]\nhttp:\n{}", rules.join("\n"))
    };
    let on = |blocks: &str| format!("match: [{blocks}], {to}");
    for (rules, expected) in [
        (
            vec![to.to_owned(), on("{uri: {prefix: /a}}")],
            vec!["W VS119 8"],
        ),
        (vec![on("{uri: {prefix: /a}}"), to.to_owned()], vec![]),
        (
            vec![on("{uri: {prefix: /}}"), to.to_owned()],
            vec!["W VS119 8"],
        ),
        (vec![on("{port: 80}"), to.to_owned()], vec![]),
        (vec![on("{gateways: [mesh]}"), to.to_owned()], vec![]),
        (
            vec!["delegate: {name: d}".to_owned(), to.to_owned()],
            vec![],
        ),
        (
            vec![on("{uri: {prefix: /}}, {uri: {exact: /a}}")],
            vec!["W VS119 7"],
        ),
        (
            vec![on("{uri: {exact: /a}}, {name: m, uri: {exact: /a}}")],
            vec!["W VS120 7"],
        ),
        (
            vec![
                on("{uri: {exact: /a}}"),
                on("{uri: {exact: /b}}, {uri: {exact: /a}}"),
            ],
            vec!["W VS120 8"],
        ),
        (
            vec![on("{uri: {exact: /a}}"), on("{name: m, uri: {exact: /a}}")],
            vec!["W VS121 8"],
        ),
        (
            vec![on("{uri: {exact: /a}}"), on("{uri: {exact: /A}}")],
            vec![],
        ),
        (
            vec![
                on("{headers: {a: {exact: x}, b: {exact: z}}}"),
                on("{headers: {B: {exact: z}, A: {exact: x}}}"),
            ],
            vec!["W VS121 8"],
        ),
        (
            vec![on("{uri: {prefix: /a}}"), on("{uri: {prefix: /a/b}}")],
            vec!["W VS122 8"],
        ),
        (
            vec![on("{uri: {prefix: /a}}"), on("{uri: {exact: /ab}}")],
            vec!["W VS122 8"],
        ),
        (
            vec![on("{uri: {prefix: /a/b}}"), on("{uri: {prefix: /a}}")],
            vec![],
        ),
        (
            vec![
                on("{uri: {prefix: /a}, method: {exact: GET}}"),
                on("{uri: {prefix: /a/b}}"),
            ],
            vec![],
        ),
        (
            vec![
                on("{uri: {prefix: /a}}"),
                on("{uri: {prefix: /a/b}, method: {exact: GET}}"),
            ],
            vec!["W VS122 8"],
        ),
        (
            vec![
                on("{uri: {prefix: /a}, ignoreUriCase: true}"),
                on("{uri: {prefix: /A/b}}"),
            ],
            vec![],
        ),
        (
            vec![
                on("{uri: {prefix: /b}}"),
                on("{uri: {prefix: /a}}"),
                on("{uri: {prefix: /ab}}"),
            ],
            vec!["W VS122 9"],
        ),
    ] {
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        service(&[(&http(&rules), &expected)]);
    }
    let tcp = format!("hosts: [a.com]\ntcp:\n- {{{to}}}\n- {{match: [{{port: 1}}], {to}}}");
    let tls = format!(
        "hosts: [a.com]\ntls:\n- {{match: [{{sniHosts: [a.com]}}], {to}}}\n- {{match: [{{sniHosts: [a.com]}}], {to}}}"
    );
    service(&[(&tcp, &["W VS119 8"]), (&tls, &["W VS121 8"])]);
}

#[test]
fn values_that_no_request_has_are_found() {
    for (block, code) in [
        ("uri: {prefix: api}", Some("VS313")),
        ("uri: {exact: api}", Some("VS313")),
        ("uri: {prefix: /api}", None),
        ("uri: {exact: '*'}", None),
        ("uri: {regex: api}", None),
        ("method: {exact: get}", Some("VS314")),
        ("method: {prefix: G}", None),
        ("method: {regex: get}", None),
    ] {
        let expected = code.map(|code| format!("W {code} 7"));
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        with_route(&[(&format!("match: [{{{block}}}]"), &expected)]);
    }
    with_route(&[
        (
            "timeout: 1s\nretries: {attempts: 2, perTryTimeout: 2s}",
            &["W VS315 8"],
        ),
        (
            "timeout: 2s\nretries: {attempts: 2, perTryTimeout: 2s}",
            &[],
        ),
        ("retries: {attempts: 2, perTryTimeout: 2s}", &[]),
        (
            "mirror: {host: b}\nmirrorPercentage: {value: 0.00001}",
            &["W VS316 8"],
        ),
    ]);
}
