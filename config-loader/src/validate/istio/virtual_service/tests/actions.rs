//! Actions of HTTP rules, and changes to requests and responses.

use super::{rule, with_route};

#[test]
fn a_rule_has_exactly_one_action() {
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
fn durations_must_be_whole_milliseconds() {
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
fn header_edits_need_valid_names_and_values() {
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
    with_route(&[
        (
            "headers: {response: {set: {x-a: 'a %DYNAMIC_METADATA(x:y)% %CEL(a)%'}}}",
            &["W VS312 7", "W VS312 7"],
        ),
        (
            "headers: {request: {add: {x-a: '%DOWNSTREAM_PEER_URI_SAN%'}}}",
            &[],
        ),
    ]);
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
fn empty_and_conflicting_rewrites_are_rejected() {
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
fn empty_redirects_are_rejected() {
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
fn direct_responses_need_a_status_and_a_bounded_body() {
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
fn faults_need_an_action_and_a_percentage() {
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
            &["W VS306 7", "W VS317 7"],
        ),
        (
            "fault: {delay: {fixedDelay: 1s, percent: -1}}",
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
fn cors_policies_are_checked() {
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
fn mirrors_need_percentages_and_destinations() {
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
fn retry_settings_without_attempts_are_reported() {
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
fn destinations_need_services_and_weights() {
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
