use super::*;

fn found(text: &str) -> Vec<String> {
    let found = TestFile::parse(&"cart.test.yaml".into(), text).unwrap_err();
    let line =
        |one: &crate::Diagnostic| format!("{} {} {}", one.location.line, one.code, one.field);
    found.iter().map(line).collect()
}

#[test]
fn whole_file_is_read() {
    let text = "\
config: ../mesh
as: {mode: gateway, labels: {istio: ingressgateway}, cluster: eu/eu-1/prod/c1}
tests:
- name: one
  source: {namespace: web, labels: {app: web}}
  given: {unhealthy: [{cluster: c1}, {endpoint: 10.0.0.1:80}]}
  request: {url: http://a.test/, headers: {X-A: b}, claims: {sub: me}, listener: 8080}
  expect:
    status: 200
    destination: {host: a, subset: v1, port: 80}
    clusters: {c2: 100}
    request-headers: {X-Env: canary, cookie: absent}
    timeout: none
    retries: {attempts: 2, on: [connect-failure], per-try-timeout: 1s}
    redirect: {status: 301, location: https://a.test/}
- name: several
  requests: {count: 7, url: /, vary: {header: x-user}}
  expect: {same-endpoint-for-same: x-user, spread: {min-endpoints: 3}}
- name: connection
  connection: {port: 443, sni: a.test, client-cert: mesh/ns/a/sa/b}
  expect: {status: 200}
";
    let (file, warnings) = TestFile::parse(&"cart.test.yaml".into(), text).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    let [one, several, connection] = &*file.tests else {
        panic!("{file:?}")
    };
    assert_eq!(one.proxy.namespace.as_deref(), Some("web"));
    assert_eq!(one.proxy.is_sidecar, Some(true));
    assert_eq!(several.proxy.is_sidecar, Some(false));
    assert_eq!(several.proxy.cluster.as_deref(), Some("eu/eu-1/prod/c1"));
    assert_eq!(
        one.unhealthy,
        [
            UnhealthyPart::Cluster("c1".into()),
            UnhealthyPart::Endpoint("10.0.0.1:80".into())
        ]
    );
    let fields: Vec<&str> = one.expected.iter().map(|one| &*one.field).collect();
    let expected = [
        "status",
        "destination",
        "clusters",
        "request-headers.x-env",
        "request-headers.cookie",
        "timeout",
        "retries.attempts",
        "retries.on",
        "retries.per-try-timeout",
        "redirect.status",
        "redirect.location",
    ];
    assert_eq!(fields, expected);
    assert_eq!(
        one.expected[4].what,
        Expectation::RequestHeader("cookie".into(), None)
    );
    assert_eq!(one.expected[5].what, Expectation::Timeout(None));
    assert!(matches!(
        &several.subject,
        TestSubject::Requests { count: 7, .. }
    ));
    assert!(matches!(&connection.subject, TestSubject::Connection(one) if one.port == 443));
}

#[test]
fn mistakes_have_locations() {
    for (test, expected) in [
        (
            "{name: a, request: {url: /}, expect: {}}",
            "2 TST002 tests[0].expect",
        ),
        ("{name: a, expect: {status: 200}}", "2 TST002 tests[0]"),
        (
            "{request: {url: /}, expect: {status: 200}}",
            "2 TST002 tests[0].name",
        ),
        (
            "{name: a, request: {url: /, count: 3}, expect: {status: 200}}",
            "2 TST001 tests[0].request.count",
        ),
        (
            "{name: a, request: {url: /}, requests: {url: /}, expect: {status: 200}}",
            "2 CM019 tests[0].requests",
        ),
        (
            "{name: a, requests: {url: /}, expect: {status: 200}}",
            "2 TST002 tests[0].requests.vary",
        ),
        (
            "{name: a, request: {url: /}, expect: {stats: 200}}",
            "2 CM021 tests[0].expect.stats",
        ),
        (
            "{name: a, request: {url: /}, expect: {status: 20}}",
            "2 CM029 tests[0].expect.status",
        ),
        (
            "{name: a, request: {url: /}, expect: {spread: {min-endpoints: 2}}}",
            "2 TST001 tests[0].expect.spread",
        ),
        (
            "{name: a, request: {url: /}, given: {unhealthy: [{}]}, expect: {status: 200}}",
            "2 TST002 tests[0].given.unhealthy[0]",
        ),
        (
            "{name: a, connection: {port: 443}, expect: {status: 200}}",
            "2 TST002 tests[0].connection",
        ),
        (
            "{name: a, request: {url: /}, expect: {clusters: {c1: 101}}}",
            "2 CM029 tests[0].expect.clusters.c1",
        ),
    ] {
        let found = found(&format!("tests:\n- {test}\n"));
        assert!(
            found.iter().any(|one| one == expected),
            "{test}: {expected}: {found:?}"
        );
    }
    let twice = "tests:\n- {name: a, request: {url: /}, expect: {status: 200}}\n- {name: a, request: {url: /}, expect: {status: 200}}\n";
    assert_eq!(found(twice), ["3 TST002 tests[1].name"]);
}
