use crate::validate::istio::testing::check;

/// A rule that is good, to be put under `http`.
const GOOD: &str = "- route: [{destination: {host: a}}]";

fn service(cases: &[(&str, &[&str])]) {
    check("VirtualService", cases);
}

/// Cases of one HTTP rule, whose fields begin on line 7.
fn rule(cases: &[(&str, &[&str])]) {
    for (fields, expected) in cases {
        let fields = fields.replace('\n', "\n  ");
        let body = format!("hosts: [a.com]\nhttp:\n- {fields}");
        check("VirtualService", &[(body.as_str(), *expected)]);
    }
}

/// As [`rule`], with a good route.
fn with_route(cases: &[(&str, &[&str])]) {
    for (fields, expected) in cases {
        let body = format!("{fields}\nroute: [{{destination: {{host: a}}}}]");
        rule(&[(body.as_str(), *expected)]);
    }
}

#[test]
fn a_delegate_has_only_http_rules() {
    let http = format!("http:\n{GOOD}\n");
    let tls = "tls:\n- match: [{sniHosts: [a.com]}]\n  route: [{destination: {host: a}}]";
    let tcp = "tcp:\n- route: [{destination: {host: a}}]";
    service(&[
        (&http, &[]),
        (&format!("{http}gateways: [gw]"), &["E VS021 7"]),
        (&format!("{http}gateways: []"), &[]),
        (&format!("{http}{tls}"), &["E VS022 7"]),
        (&format!("hosts: [a.com]\n{http}{tls}"), &[]),
        (&format!("{http}{tcp}"), &["E VS023 7"]),
        (&format!("hosts: [a.com]\n{http}{tcp}"), &[]),
        ("http: [{delegate: {name: d}}]", &["E VS047 5"]),
        ("hosts: [a.com]\nhttp: [{delegate: {name: d}}]", &[]),
        (
            "hosts: [a.com]\nhttp: [{delegate: {namespace: d}}]",
            &["E VS301 6"],
        ),
    ]);
}

#[test]
fn gateways_are_named() {
    for (gateway, code) in [
        ("mesh", None),
        ("gw", None),
        ("./gw", None),
        ("ns/gw", None),
        ("ns/", Some("E VS024 6")),
        ("/gw", Some("E VS024 6")),
        ("n_s/gw", Some("E VS025 6")),
        ("ns/g_w", Some("E VS026 6")),
        ("ns/a.b", Some("E VS026 6")),
        ("g_w", Some("E VS027 6")),
        ("gw.ns.svc.cluster.local", Some("W VS028 6")),
        ("gw.ns", Some("W VS028 6")),
    ] {
        let expected: Vec<&str> = code.into_iter().collect();
        let top = format!("hosts: [a.com]\ngateways: ['{gateway}']\nhttp:\n{GOOD}");
        service(&[(&top, &expected)]);
        let block = format!(
            "hosts: [a.com]\nhttp: [{{match: [{{gateways: ['{gateway}']}}], route: [{{destination: {{host: a}}}}]}}]"
        );
        service(&[(&block, &expected)]);
    }
}

#[test]
fn hosts_are_names_that_do_not_overlap() {
    let http = format!("http:\n{GOOD}");
    for (head, expected) in [
        ("hosts: [a.com]", vec![]),
        ("hosts: [reviews]", vec![]),
        ("hosts: [10.0.0.1, '::1']", vec![]),
        ("hosts: ['*.a.com']", vec![]),
        ("hosts: [a_b.com]", vec!["E VS029 5"]),
        ("hosts: ['a.com:80']", vec!["E VS029 5"]),
        ("hosts: [10.0.0.300]", vec!["E VS029 5"]),
        ("hosts: ['']", vec!["E VS029 5"]),
        ("hosts: ['a.*.com']", vec!["E VS030 5"]),
        ("hosts: ['*']", vec!["E VS031 5"]),
        ("hosts: ['*']\ngateways: [gw]", vec![]),
        ("hosts: ['*']\ngateways: [gw, mesh]", vec!["E VS031 5"]),
        ("hosts: [a.com, A.com]", vec!["E VS032 5"]),
        ("hosts: ['*.a.com', a.com]", vec![]),
        ("hosts: [x.a.com, '*.a.com']", vec!["E VS032 5"]),
        ("hosts: ['*.a.com', x.a.com]", vec!["E VS032 5"]),
        ("hosts: ['*.com', '*.a.com']", vec!["E VS032 5"]),
        ("hosts: ['*foo.com', '*.foo.com']", vec!["E VS032 5"]),
        ("hosts: ['*.a.com', '*.b.com']", vec![]),
        ("hosts: ['*', x.a.com]\ngateways: [gw]", vec!["E VS032 5"]),
        ("hosts: [a.com, null]", vec!["E CM018 5"]),
    ] {
        service(&[(&format!("{head}\n{http}"), &expected)]);
    }
}

#[test]
fn outbound_hosts_are_for_tls_at_gateways() {
    let rules = |host: &str, gateway: &str| {
        format!(
            "hosts: ['{host}']\n{gateway}tls:\n- match: [{{sniHosts: ['{host}']}}]\n  route: [{{destination: {{host: a}}}}]"
        )
    };
    let good = "outbound_.80_._.a.ns.svc.cluster.local";
    service(&[
        (&rules(good, "gateways: [gw]\n"), &[]),
        (&rules(good, ""), &["E VS033 5"]),
        (&rules("outbound_.80_.v1_.a.b", "gateways: [gw]\n"), &[]),
        (
            &rules("outbound_.x_._.a.b", "gateways: [gw]\n"),
            &["E VS033 5", "E VS110 8"],
        ),
        (
            &rules("outbound_.80_._.", "gateways: [gw]\n"),
            &["E VS033 5", "E VS110 8"],
        ),
        (
            &format!("hosts: ['{good}']\ngateways: [gw]\nhttp:\n{GOOD}"),
            &["E VS033 5"],
        ),
    ]);
}

#[test]
fn there_are_rules() {
    service(&[
        ("hosts: [a.com]", &["E VS034 4"]),
        ("hosts: [a.com]\nhttp: []", &["E VS034 6"]),
        (
            "hosts: [a.com]\ntcp: [{route: [{destination: {host: a}}]}]",
            &[],
        ),
    ]);
}

#[test]
fn claims_are_matched_at_gateways() {
    let rules = |gateways: &str, key: &str| {
        format!(
            "hosts: [a.com]\ngateways: [{gateways}]\nhttp:\n- match: [{{headers: {{'{key}': {{exact: a}}}}}}]\n  route: [{{destination: {{host: a}}}}]"
        )
    };
    service(&[
        (&rules("gw", "@request.auth.claims.a.b"), &[]),
        (&rules("gw", "@request.auth.claims[a.b][c]"), &[]),
        (&rules("", "@request.auth.claims.a"), &["E VS035 8"]),
        (&rules("gw, mesh", "@request.auth.claims.a"), &["E VS035 8"]),
        (&rules("gw", "@request.auth.claims"), &["E VS050 8"]),
        (&rules("gw", "@request.auth.claims[a"), &["E VS050 8"]),
        (&rules("gw", "@request.auth.claims.a..b"), &["E VS050 8"]),
    ]);
}

#[test]
fn a_rule_does_one_thing() {
    let redirect = "redirect: {uri: /x}";
    let direct = "directResponse: {status: 200}";
    let delegate = "delegate: {name: d}";
    let route = "route: [{destination: {host: a}}]";
    let fault = "fault: {abort: {httpStatus: 503, percentage: {value: 1}}}";
    let rewrite = "rewrite: {uri: /x}";
    for (parts, expected) in [
        (vec!["name: r"], vec!["E VS036 7"]),
        (vec!["route: []"], vec!["E VS036 7"]),
        (vec!["redirect: null"], vec!["E VS036 7"]),
        (vec![redirect], vec![]),
        (vec![direct], vec![]),
        (vec![delegate], vec![]),
        (vec![route], vec![]),
        (vec![route, fault, rewrite], vec![]),
        (vec![delegate, fault, rewrite], vec![]),
        (vec![redirect, route], vec!["E VS037 8"]),
        (vec![route, redirect], vec!["E VS037 8"]),
        (vec![redirect, "route: []"], vec![]),
        (vec![redirect, fault], vec!["E VS038 8"]),
        (vec![redirect, rewrite], vec!["E VS039 8"]),
        (vec![redirect, direct], vec!["E VS040 8"]),
        (vec![direct, route], vec!["E VS041 8"]),
        (vec![direct, fault], vec!["E VS042 8"]),
        (vec![direct, rewrite], vec!["E VS043 8"]),
        (vec![delegate, route], vec!["E VS045 8"]),
        (vec![delegate, redirect], vec!["E VS046 8"]),
        (vec![delegate, direct], vec!["E VS036 8"]),
        (
            vec![
                route,
                "mirror: {host: a}",
                "mirrors: [{destination: {host: b}}]",
            ],
            vec!["E VS044 9"],
        ),
        (vec![route, "mirror: {host: a}", "mirrors: []"], vec![]),
    ] {
        rule(&[(&parts.join("\n"), &expected)]);
    }
}

#[test]
fn durations_are_whole_milliseconds() {
    for (field, code) in [
        ("timeout: 1ms", None),
        ("timeout: 1h2m3.004s", None),
        ("timeout: 0s", Some("E CM001 7")),
        ("timeout: 500us", Some("E CM001 7")),
        ("timeout: 1.5ms", Some("E CM002 7")),
        ("timeout: soon", Some("E CM003 7")),
        ("timeout: '5'", Some("E CM003 7")),
        (
            "retries: {attempts: 1, perTryTimeout: 0s}",
            Some("E CM001 7"),
        ),
        (
            "retries: {attempts: 1, perTryTimeout: 2s, backoff: 10ms}",
            None,
        ),
        ("retries: {attempts: 1, backoff: 0s}", Some("E CM001 7")),
        (
            "fault: {delay: {fixedDelay: 0s, percentage: {value: 1}}}",
            Some("E CM001 7"),
        ),
        ("corsPolicy: {maxAge: 0s}", Some("E CM001 7")),
        ("corsPolicy: {maxAge: 1500ms}", Some("E VS092 7")),
        ("corsPolicy: {maxAge: 24h}", None),
    ] {
        let expected: Vec<&str> = code.into_iter().collect();
        with_route(&[(field, &expected)]);
    }
}

#[test]
fn match_blocks_name_headers_and_values() {
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
        ("headers: {a: null}", Some("VS051")),
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
    with_route(&[("match: [null]", &["E CM018 7"])]);
}

#[test]
fn header_edits_have_names_and_values() {
    for (edit, code) in [
        ("request: {set: {x-a: b, Host: c.com}}", None),
        ("request: {add: {':authority': c.com}}", None),
        ("request: {set: {'': b}}", Some("VS060")),
        ("response: {remove: ['']}", Some("VS060")),
        ("request: {add: {'a b': c}}", Some("VS060")),
        ("request: {set: {':path': /a}}", Some("VS061")),
        ("request: {remove: [':path']}", Some("VS062")),
        ("request: {remove: [host]}", Some("VS062")),
        ("request: {remove: [x-host]}", None),
        ("response: {set: {Host: a}}", Some("VS062")),
        ("response: {add: {':status': a}}", Some("VS062")),
        ("response: {remove: [Host]}", Some("VS062")),
        ("response: {set: {x-a: \"b\\tc\"}}", None),
        ("response: {set: {x-a: \"b\\nc\"}}", Some("VS063")),
        ("request: {set: {x-a: 50%}}", Some("VS064")),
        ("request: {set: {x-a: 50%%}}", None),
        ("request: {set: {x-a: '%REQ(x%'}}", Some("VS065")),
        ("request: {set: {x-a: '%REQ(x)%'}}", None),
        ("request: {set: {x-a: '%UPSTREAM_CLUSTR%'}}", Some("VS302")),
        (
            "request: {set: {host: a.com, ':authority': b.com}}",
            Some("VS066"),
        ),
        (
            "request: {set: {host: a.com}, add: {Host: b.com}}",
            Some("VS066"),
        ),
    ] {
        let expected = code.map(|code| format!("E {code} 7"));
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        with_route(&[(&format!("headers: {{{edit}}}"), &expected)]);
        rule(&[(
            &format!("route: [{{destination: {{host: a}}, headers: {{{edit}}}}}]"),
            &expected,
        )]);
    }
    let host = "headers: {request: {set: {Host: a.com}}}";
    with_route(&[
        (
            &format!("rewrite: {{authority: b.com}}\n{host}"),
            &["E VS066 8"],
        ),
        (&format!("rewrite: {{uri: /x}}\n{host}"), &[]),
    ]);
    rule(&[(
        &format!("rewrite: {{authority: b.com}}\nroute: [{{destination: {{host: a}}, {host}}}]"),
        &[],
    )]);
}

#[test]
fn rewrites_change_something_once() {
    for (field, code) in [
        ("rewrite: {uri: /x}", None),
        ("rewrite: {authority: a.com}", None),
        ("rewrite: {}", Some("E VS067")),
        ("rewrite: {uri: ''}", Some("E VS067")),
        (
            "rewrite: {uri: /x, uriRegexRewrite: {match: a, rewrite: b}}",
            Some("E VS068"),
        ),
        (
            "rewrite: {uriRegexRewrite: {match: '/(a)/(.*)', rewrite: '/\\2/\\1'}}",
            None,
        ),
        ("rewrite: {uriRegexRewrite: {match: a}}", Some("E VS069")),
        ("rewrite: {uriRegexRewrite: {rewrite: a}}", Some("E VS069")),
        (
            "rewrite: {uriRegexRewrite: {match: '(?!a)', rewrite: a}}",
            Some("E VS055"),
        ),
        (
            "rewrite: {uriRegexRewrite: {match: '(a)', rewrite: '\\2'}}",
            Some("E VS303"),
        ),
        (
            "rewrite: {uriRegexRewrite: {match: '(a)', rewrite: 'a\\'}}",
            Some("E VS303"),
        ),
        (
            "match: [{uri: {prefix: /foo}}], rewrite: {uri: /}",
            Some("W VS304"),
        ),
        ("match: [{uri: {prefix: /foo/}}], rewrite: {uri: /}", None),
        ("match: [{uri: {prefix: /foo}}], rewrite: {uri: /v2}", None),
        ("match: [{uri: {exact: /foo}}], rewrite: {uri: /}", None),
    ] {
        let expected = code.map(|code| format!("{code} 7"));
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        let field = field.replace("], rewrite", "]\nrewrite");
        let field = if field.contains('\n') {
            let expected: Vec<String> = code.map(|code| format!("{code} 8")).into_iter().collect();
            let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
            with_route(&[(&field, &expected)]);
            continue;
        } else {
            field
        };
        with_route(&[(&field, &expected)]);
    }
}

#[test]
fn redirects_lead_elsewhere() {
    for (fields, code) in [
        ("redirect: {authority: b.com}", None),
        ("redirect: {uri: /a, prefixRewrite: /b}", Some("VS071")),
        ("redirect: {prefixRewrite: /b}", None),
        ("redirect: {}", Some("VS073")),
        ("redirect: {redirectCode: 302}", Some("VS073")),
        ("redirect: {derivePort: FROM_REQUEST_PORT}", None),
        ("redirect: {derivePort: SOMEHOW}", Some("CM017")),
        (
            "redirect: {port: 80, derivePort: FROM_REQUEST_PORT}",
            Some("CM019"),
        ),
        ("redirect: {uri: /a, redirectCode: 307}", None),
        ("redirect: {uri: /a, redirectCode: 304}", Some("VS074")),
        ("redirect: {uri: /a, redirectCode: 200}", Some("VS074")),
        ("redirect: {scheme: https}", None),
        ("redirect: {scheme: ftp}", Some("VS075")),
        ("redirect: {scheme: HTTPS}", Some("VS075")),
        ("redirect: {port: 8443}", None),
        ("redirect: {port: 0}", Some("CM016")),
    ] {
        let expected = code.map(|code| format!("E {code} 7"));
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        rule(&[(fields, &expected)]);
    }
    let rewrite = "redirect: {prefixRewrite: /b}";
    rule(&[
        (&format!("match: [{{uri: {{prefix: /a}}}}]\n{rewrite}"), &[]),
        (
            &format!("match: [{{uri: {{exact: /a}}}}]\n{rewrite}"),
            &["E VS072 8"],
        ),
    ]);
}

#[test]
fn direct_responses_have_a_status_and_a_bounded_body() {
    let body = |bytes: usize| {
        format!(
            "directResponse: {{status: 200, body: {{string: '{}'}}}}",
            "a".repeat(bytes)
        )
    };
    rule(&[
        ("directResponse: {status: 200}", &[]),
        ("directResponse: {status: 599}", &[]),
        ("directResponse: {status: 600}", &["E VS077 7"]),
        ("directResponse: {status: 199}", &["E VS077 7"]),
        ("directResponse: {body: {string: a}}", &["E VS077 7"]),
        ("directResponse: {status: 200, body: {bytes: aGk=}}", &[]),
        (
            "directResponse: {status: 200, body: {bytes: '!'}}",
            &["E CM022 7"],
        ),
        (
            "directResponse: {status: 200, body: {string: a, bytes: aGk=}}",
            &["E CM019 7"],
        ),
        (&body(100 << 10), &[]),
        (&body((100 << 10) + 1), &["W VS305 7"]),
        (&body(1 << 20), &["W VS305 7"]),
        (&body((1 << 20) + 1), &["E VS078 7"]),
    ]);
}

#[test]
fn faults_say_what_happens_how_often() {
    with_route(&[
        (
            "fault: {delay: {fixedDelay: 1s, percentage: {value: 0.0001}}}",
            &[],
        ),
        ("fault: {}", &["E VS079 7"]),
        ("fault: {delay: null}", &["E VS079 7"]),
        (
            "fault: {abort: {httpStatus: 503, percentage: {value: 101}}}",
            &["E VS080 7"],
        ),
        (
            "fault: {abort: {httpStatus: 503, percentage: {value: 0.00001}}}",
            &["E VS080 7"],
        ),
        (
            "fault: {abort: {httpStatus: 503, percentage: {value: 0}}}",
            &[],
        ),
        (
            "fault: {delay: {fixedDelay: 1s, percentage: {value: -1}}}",
            &["E VS080 7"],
        ),
        (
            "fault: {abort: {httpStatus: 199, percentage: {value: 1}}}",
            &["E VS081 7"],
        ),
        (
            "fault: {abort: {httpStatus: 600, percentage: {value: 1}}}",
            &["E VS081 7"],
        ),
        (
            "fault: {abort: {grpcStatus: UNAVAILABLE, percentage: {value: 1}}}",
            &[],
        ),
        (
            "fault: {abort: {grpcStatus: unavailable, percentage: {value: 1}}}",
            &["E VS082 7"],
        ),
        (
            "fault: {abort: {http2Error: PROTOCOL_ERROR, percentage: {value: 1}}}",
            &["E VS083 7"],
        ),
        ("fault: {abort: {percentage: {value: 1}}}", &["W VS084 7"]),
        (
            "fault: {delay: {exponentialDelay: 1s, percentage: {value: 1}}}",
            &["E VS086 7"],
        ),
        ("fault: {delay: {percentage: {value: 1}}}", &["W VS307 7"]),
        (
            "fault: {delay: {fixedDelay: 1s, percent: 50}}",
            &["W VS306 7"],
        ),
        (
            "fault: {delay: {fixedDelay: 1s, percent: 101}}",
            &["E VS080 7", "W VS306 7"],
        ),
        ("fault: {delay: {fixedDelay: 1s}}", &["W VS308 7"]),
        ("fault: {abort: {httpStatus: 503}}", &["W VS308 7"]),
        (
            "fault: {abort: {httpStatus: 503, grpcStatus: OK, percentage: {value: 1}}}",
            &["E CM019 7"],
        ),
    ]);
}

#[test]
fn cors_policies_name_origins_methods_and_headers() {
    with_route(&[
        (
            "corsPolicy: {allowOrigins: [{exact: '*'}, {prefix: 'https://a'}, {regex: '.*'}]}",
            &[],
        ),
        ("corsPolicy: {allowOrigins: [{}]}", &["E VS087 7"]),
        ("corsPolicy: {allowOrigins: [{exact: ''}]}", &["E VS087 7"]),
        ("corsPolicy: {allowOrigins: [{regex: '*'}]}", &["E VS055 7"]),
        ("corsPolicy: {allowOrigin: [https://a.com]}", &["W VS309 7"]),
        ("corsPolicy: {allowMethods: [GET, PATCH, '*']}", &[]),
        ("corsPolicy: {allowMethods: [get]}", &["E VS089 7"]),
        ("corsPolicy: {allowMethods: [PURGE]}", &["E VS089 7"]),
        (
            "corsPolicy: {allowHeaders: [x-a, '*'], exposeHeaders: [x-b]}",
            &[],
        ),
        ("corsPolicy: {allowHeaders: ['']}", &["E VS090 7"]),
        ("corsPolicy: {exposeHeaders: ['x-a, x-b']}", &["E VS090 7"]),
        ("corsPolicy: {unmatchedPreflights: IGNORE}", &[]),
        ("corsPolicy: {unmatchedPreflights: DROP}", &["E CM017 7"]),
    ]);
}

#[test]
fn mirrors_have_shares_and_destinations() {
    with_route(&[
        ("mirror: {host: b}\nmirrorPercentage: {value: 12.5}", &[]),
        (
            "mirror: {host: b}\nmirrorPercentage: {value: 101}",
            &["E VS095 8"],
        ),
        ("mirror: {host: b}\nmirrorPercent: 50", &["W VS094 8"]),
        (
            "mirror: {host: b}\nmirrorPercent: 101",
            &["E VS093 8", "W VS094 8"],
        ),
        (
            "mirror: {host: b}\nmirror_percent: 50",
            &["W CM023 8", "W VS094 8"],
        ),
        (
            "mirrors: [{destination: {host: b}, percentage: {value: 1}}]",
            &[],
        ),
        ("mirrors: [{percentage: {value: 1}}]", &["E VS096 7"]),
        (
            "mirrors: [{destination: {host: b}, percentage: {value: -1}}]",
            &["E VS095 7"],
        ),
        ("mirror: {host: '*'}", &["E VS103 7"]),
    ]);
}

#[test]
fn retries_are_on_or_off() {
    with_route(&[
        ("retries: {}", &[]),
        ("retries: {attempts: 0}", &[]),
        ("retries: {attempts: -1}", &["E VS097 7"]),
        (
            "retries: {attempts: 3, perTryTimeout: 2s, retryOn: '5xx,reset,503,retriable-4xx'}",
            &[],
        ),
        ("retries: {perTryTimeout: 2s}", &["E VS098 7"]),
        ("retries: {attempts: 0, retryOn: 5xx}", &["E VS098 7"]),
        (
            "retries: {attempts: 0, retryRemoteLocalities: true}",
            &["E VS098 7"],
        ),
        (
            "retries: {attempts: 2, retryRemoteLocalities: true, retryIgnorePreviousHosts: false}",
            &[],
        ),
        (
            "retries: {attempts: 1, retryOn: '5xx, reset'}",
            &["E VS101 7"],
        ),
        ("retries: {attempts: 1, retryOn: 5XX}", &["E VS101 7"]),
        ("retries: {attempts: 1, retryOn: '600'}", &["E VS101 7"]),
        ("retries: {attempts: 1, retryOn: '5xx,'}", &["E VS101 7"]),
    ]);
}

#[test]
fn destinations_are_services_with_weights() {
    rule(&[
        (
            "route: [{destination: {host: a, subset: v1, port: {number: 80}}, weight: 0}]",
            &[],
        ),
        ("route: [{weight: 1}]", &["E VS102 7"]),
        ("route: [{destination: null}]", &["E VS102 7"]),
        ("route: [{destination: {}}]", &["E VS103 7"]),
        ("route: [{destination: {host: '*'}}]", &["E VS103 7"]),
        ("route: [{destination: {host: '*.a.com'}}]", &[]),
        ("route: [{destination: {host: 'a.com:80'}}]", &["E VS103 7"]),
        ("route: [{destination: {host: 10.0.0.1}}]", &["E VS103 7"]),
        (
            "route: [{destination: {host: a, subset: v_1}}]",
            &["E VS104 7"],
        ),
        (
            "route: [{destination: {host: a, port: {number: 0}}}]",
            &["E CM016 7"],
        ),
        (
            "route: [{destination: {host: a, port: {}}}]",
            &["E CM016 7"],
        ),
        (
            "route: [{destination: {host: a}, weight: -1}]",
            &["E VS106 7"],
        ),
        (
            "route: [{destination: {host: a}}, {destination: {host: b}}]",
            &["E VS107 7"],
        ),
        (
            "route: [{destination: {host: a}, weight: 1}, {destination: {host: b}}]",
            &[],
        ),
    ]);
}

#[test]
fn tls_and_tcp_rules_say_what_for_and_where_to() {
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
}

#[test]
fn what_an_earlier_rule_takes_is_never_reached() {
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
fn export_to_names_namespaces() {
    let http = format!("hosts: [a.com]\nhttp:\n{GOOD}\nexportTo: ");
    for (entries, code) in [
        ("['.']", None),
        ("['*']", None),
        ("[a, b]", None),
        ("[a, a]", Some("E CM004 8")),
        ("['.', ns]", Some("E CM004 8")),
        ("[a_b]", Some("E CM005 8")),
        ("['~']", Some("E CM006 8")),
        ("['*', a]", Some("E CM007 8")),
    ] {
        let expected: Vec<&str> = code.into_iter().collect();
        service(&[(&format!("{http}{entries}"), &expected)]);
    }
}

#[test]
fn findings_say_what_to_write() {
    let rule = |fields: &str| {
        format!("hosts: [a.com]\nhttp: [{{{fields}, route: [{{destination: {{host: a}}}}]}}]")
    };
    for (fields, message, help) in [
        (
            "timeout: 0s",
            "duration `0s` is shorter than 1ms",
            "remove the field to disable it",
        ),
        (
            "retries: {attempts: 1, retryOn: '5xx, reset'}",
            "` reset` is not a retry condition",
            "write `reset` without blanks around it",
        ),
        (
            "retries: {attempts: 1, retryOn: gateway-eror}",
            "`gateway-eror` is not a retry condition",
            "did you mean `gateway-error`?",
        ),
        (
            "match: [{headers: {a: null}}]",
            "the match of header `a` is null",
            "write `{}` to match any value that is present",
        ),
        (
            "fault: {abort: {grpcStatus: '14', percentage: {value: 1}}}",
            "`14` is not a gRPC status name",
            "did you mean `UNAVAILABLE`?",
        ),
        (
            "corsPolicy: {allowMethods: [get]}",
            "`get` is not an HTTP method",
            "methods are in upper case: write `GET`",
        ),
    ] {
        assert_eq!(
            crate::validate::istio::testing::message("VirtualService", &rule(fields)),
            (message.to_owned(), help.to_owned())
        );
    }
}
