//! `strait test`: tests of routes, whose answers are those of traffic.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::tls::files;

/// Output of `strait test` in a directory with these files, and its exit code.
fn test(all: &[(&str, &str)], flags: &[&str]) -> (String, Option<i32>) {
    let directory = tempfile::tempdir().unwrap();
    files(directory.path(), all);
    run(directory.path(), flags)
}

fn run(directory: &Path, flags: &[&str]) -> (String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_strait"))
        .current_dir(directory)
        .arg("test")
        .args(flags)
        .output()
        .unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (text, output.status.code())
}

const MESH: &str = "
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  selector: {app: edge}
  servers:
  - {port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}
  - {port: {number: 443, name: tls, protocol: TLS}, hosts: [db.shop.example], tls: {mode: PASSTHROUGH}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop, namespace: shop}
spec:
  hosts: [shop.example, db.shop.example]
  gateways: [edge]
  tls:
  - match: [{sniHosts: [db.shop.example]}]
    route: [{destination: {host: cart.shop.example, port: {number: 80}}}]
  http:
  - name: old
    match: [{uri: {prefix: /old/}}]
    redirect: {uri: /new/x, redirectCode: 301}
  - name: testers
    match: [{uri: {prefix: /cart}, headers: {x-tester: {exact: 'yes'}}}]
    rewrite: {uri: /v2/cart}
    headers:
      request: {set: {x-env: canary}, remove: [cookie]}
      response: {add: {x-served: strait}}
    timeout: 3s
    retries: {attempts: 2, retryOn: connect-failure, perTryTimeout: 1s}
    route: [{destination: {host: cart.shop.example, subset: v2, port: {number: 80}}}]
  - name: all
    match: [{uri: {prefix: /cart}}]
    mirrors: [{destination: {host: cart.shop.example, subset: v2, port: {number: 80}}, percentage: {value: 5}}]
    route:
    - {destination: {host: cart.shop.example, subset: v1, port: {number: 80}}, weight: 90}
    - {destination: {host: cart.shop.example, subset: v2, port: {number: 80}}, weight: 10}
  - name: admin
    match: [{uri: {prefix: /admin}}]
    directResponse: {status: 403}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.shop.example]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints:
  - {address: 10.0.0.1, labels: {version: v1}, locality: eu/eu-1a}
  - {address: 10.0.0.2, labels: {version: v1}, locality: eu/eu-1b}
  - {address: 10.0.0.3, labels: {version: v2}, locality: eu/eu-1a}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart, namespace: shop}
spec:
  host: cart.shop.example
  trafficPolicy: {loadBalancer: {consistentHash: {httpHeaderName: x-user}}}
  subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: no-deletes, namespace: shop}
spec:
  action: DENY
  rules: [{to: [{operation: {methods: [DELETE], ports: ['80']}}]}]
";

const AS: &str = "as: {namespace: shop, labels: {app: edge}}\ntests:\n";

const PASSING: &str = "
- name: testers get v2
  request: {url: 'http://shop.example/cart?page=2', headers: {x-tester: 'yes', cookie: a=b}}
  expect:
    status: 200
    flags: '-'
    rule: testers
    allowed: true
    destination: {host: cart.shop.example, subset: v2, port: 80}
    path: /v2/cart?page=2
    authority: shop.example
    request-headers: {x-env: canary, cookie: absent, x-tester: 'yes'}
    response-headers: {x-served: strait}
    timeout: 3s
    retries: {attempts: 2, on: [connect-failure], per-try-timeout: 1s}
    endpoints: {10.0.0.3:80: 100}
- name: others are split
  request: {url: http://shop.example/cart}
  expect:
    rule: VirtualService/shop/shop
    destinations:
    - {host: cart.shop.example, subset: v1, weight: 90}
    - {host: cart.shop.example, subset: v2, weight: 10}
    mirrors: [{host: cart.shop.example, subset: v2, weight: 5}]
    clusters: {local: 100}
    timeout: none
- name: old paths are redirected
  request: {url: http://shop.example/old/y}
  expect: {redirect: {status: 301, location: http://shop.example/new/x}, status: 301}
- name: nobody reaches the admin path
  request: {url: http://shop.example/admin}
  expect: {status: 403}
- name: nothing is deleted
  request: {method: DELETE, url: http://shop.example/cart}
  expect: {status: 403, allowed: false}
- name: unknown path
  request: {url: http://shop.example/}
  expect: {status: 404, flags: NR}
- name: the other zone takes over
  given: {unhealthy: [{zone: eu-1b}, {endpoint: '10.0.0.3:80'}]}
  request: {url: http://shop.example/cart, headers: {x-tester: 'no'}}
  expect: {status: 200}
- name: nothing is left
  given: {unhealthy: [{host: cart.shop.example}]}
  request: {url: http://shop.example/cart, headers: {x-tester: 'yes', x-user: me}}
  expect: {status: 200, endpoints: {10.0.0.3:80: 100}}
- name: users stay
  requests: {count: 50, url: http://shop.example/cart, vary: {header: x-user}, headers: {x-tester: 'yes'}}
  expect: {same-endpoint-for-same: x-user, spread: {min-endpoints: 1}}
- name: database by its name
  connection: {port: 443, sni: db.shop.example}
  expect: {status: 200, destination: {host: cart.shop.example}}
- name: no other database
  connection: {port: 443, sni: other.shop.example}
  expect: {flags: NR}
";

#[test]
fn tests_pass_where_traffic_goes_as_they_expect() {
    let tests = [AS, PASSING].concat();
    let all = [("mesh.yaml", MESH), ("shop.test.yaml", &tests)];
    let (text, code) = test(&all, &[]);
    assert!(text.ends_with("11 tests passed, 0 failed\n"), "{text}");
    assert_eq!(code, Some(0));
    // a file of tests is no resource
    let directory = tempfile::tempdir().unwrap();
    files(directory.path(), &all);
    let mut check = Command::new(env!("CARGO_BIN_EXE_strait"));
    let check = check.current_dir(directory.path()).args(["check", "."]);
    let output = String::from_utf8(check.output().unwrap().stderr).unwrap();
    assert!(!output.contains("test.yaml"), "{output}");
}

#[test]
fn failing_tests_name_the_field_the_line_and_the_walk() {
    let cases = [
        ("status: 404", "status: expected 404, got 200"),
        ("flags: NR", "flags: expected NR, got -"),
        (
            "rule: testers",
            "rule: expected testers, got all of VirtualService/shop/shop (./mesh.yaml:",
        ),
        ("allowed: false", "allowed: expected denied, got allowed"),
        (
            "destination: {host: cart.shop.example, subset: v1}",
            "destination: expected cart.shop.example subset v1, got cart.shop.example:80 subset v1 90 %, \
             cart.shop.example:80 subset v2 10 %",
        ),
        (
            "mirrors: []",
            "mirrors: expected nothing, got cart.shop.example:80 subset v2 5 %",
        ),
        ("clusters: {c2: 100}", "clusters: expected c2 100 %, got "),
        (
            "endpoints: {10.0.0.3:80: 100}",
            "endpoints: expected 10.0.0.3:80 100 %, got ",
        ),
        ("path: /x", "path: expected /x, got /cart"),
        ("authority: a", "authority: expected a, got shop.example"),
        (
            "request-headers: {x-env: a}",
            "request-headers.x-env: expected a, got absent",
        ),
        (
            "response-headers: {x-env: a}",
            "response-headers.x-env: expected a, got absent",
        ),
        ("timeout: 3s", "timeout: expected 3s, got none"),
        (
            "retries: {attempts: 7}",
            "retries.attempts: expected 7, got 2",
        ),
        ("retries: {on: [reset]}", "retries.on: expected reset, got "),
        (
            "retries: {per-try-timeout: 1s}",
            "retries.per-try-timeout: expected 1s, got none",
        ),
        (
            "redirect: {status: 301}",
            "redirect.status: expected 301, got no redirect",
        ),
        (
            "redirect: {location: /}",
            "redirect.location: expected /, got no redirect",
        ),
    ];
    let one = |(number, (expect, _)): (usize, &(&str, &str))| {
        format!(
            "- name: case {number}\n  request: {{url: http://shop.example/cart}}\n  expect: {{{expect}}}\n"
        )
    };
    let tests: String = cases.iter().enumerate().map(one).collect();
    let varied = "- name: varied\n  requests: {count: 3, url: http://shop.example/cart, vary: {header: x-other}}\n  \
                  expect: {same-endpoint-for-same: x-other, spread: {min-endpoints: 3}}\n";
    let tests = [AS, &tests, varied].concat();
    let all = [("mesh.yaml", MESH), ("shop.test.yaml", &tests)];
    let (text, code) = test(&all, &[]);
    assert_eq!(code, Some(1), "{text}");
    for (number, (_, expected)) in cases.iter().enumerate() {
        let line = format!("FAIL  case {number}  shop.test.yaml:{}", 3 + 3 * number);
        assert!(text.contains(&line), "{line}\n{text}");
        let line = format!("      line {}: {expected}", 5 + 3 * number);
        assert!(text.contains(&line), "{line}\n{text}");
    }
    for line in [
        "same-endpoint-for-same: expected each value goes to one endpoint, got 3 of 3 go to several",
        "spread.min-endpoints: expected at least 3 endpoints, got 0",
        "      | outcome       forwarded", // the walk of `strait explain`
        "0 tests passed, 19 failed",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let (json, _) = test(&all, &["-o", "json", "--filter", "case 0"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["failed"], &json["passed"]), (&1.into(), &0.into()));
    let found = &json["tests"][0];
    assert_eq!(found["differences"][0]["field"], "status");
    assert_eq!(found["explanation"]["request"]["host"], "shop.example");
    let (github, _) = test(&all, &["-o", "github", "--filter", "case 0"]);
    let expected =
        "::error file=shop.test.yaml,line=5,title=case 0::status: expected 404, got 200\n";
    assert_eq!(github, expected);
    let (junit, _) = test(&all, &["-o", "junit", "--filter", "case 1"]);
    for part in [
        "<testsuite name=\"shop.test.yaml\" tests=\"9\" failures=\"9\">",
        "<testcase classname=\"shop.test.yaml\" name=\"case 1\" line=\"6\"><failure message=\"flags: expected NR, got -\">",
    ] {
        assert!(junit.contains(part), "{part}\n{junit}");
    }
}

#[test]
fn expectations_of_forwarding_fail_where_nothing_is_forwarded() {
    let tests = "
- name: denied
  request: {method: DELETE, url: http://shop.example/cart, headers: {x-tester: 'yes'}}
  expect: {destination: {host: cart.shop.example, subset: v2}, path: /v2/cart, timeout: 3s, endpoints: {10.0.0.3:80: 100}}
- name: no such port
  request: {url: http://shop.example:9999/cart}
  expect: {status: 200}
- name: no such zone
  given: {unhealthy: [{zone: nowhere}]}
  request: {url: http://shop.example/cart}
  expect: {status: 200}
";
    let tests = [AS, tests].concat();
    let all = [("mesh.yaml", MESH), ("shop.test.yaml", &tests)];
    let (text, code) = test(&all, &[]);
    assert_eq!(code, Some(1));
    for line in [
        "destination: expected a request that is forwarded, got status 403",
        "path: expected a request that is forwarded, got status 403",
        "timeout: expected a request that is forwarded, got status 403",
        "endpoints: expected a request that is forwarded, got status 403",
        "url: expected a listener on port 9999, got none; one is [::]:80",
        "given.unhealthy: expected an endpoint, zone, cluster or host of the configuration, got none is Zone",
        "0 tests passed, 3 failed",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let (text, code) = test(&all, &["--filter", "nothing"]);
    assert_eq!(code, Some(1));
    assert!(
        text.contains("no test has \"nothing\" in its name"),
        "{text}"
    );
    let broken = [MESH, "---\nfoo: bar\n"].concat();
    let passing = [AS, PASSING].concat();
    let (text, code) = test(&[("mesh.yaml", &broken), ("a.test.yaml", &passing)], &[]);
    assert_eq!(code, Some(1), "{text}");
}

#[test]
fn coverage_lists_what_no_test_reaches() {
    let tests = [
        AS,
        "- {name: a, request: {url: http://shop.example/admin}, expect: {status: 403}}\n",
    ]
    .concat();
    let all = [("mesh.yaml", MESH), ("shop.test.yaml", &tests)];
    let (text, code) = test(&all, &["--coverage"]);
    assert_eq!(code, Some(0));
    for line in [
        "untested policy rule AuthorizationPolicy/shop/no-deletes  ./mesh.yaml:",
        "untested rule old of VirtualService/shop/shop  ./mesh.yaml:",
        "untested rule testers of VirtualService/shop/shop  ./mesh.yaml:",
        "untested subset v1 of VirtualService/shop/shop  ./mesh.yaml:",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("untested rule admin"), "{text}");
    let (text, code) = test(&all, &["--min-coverage", "90"]);
    assert_eq!(code, Some(1));
    assert!(text.contains("is below --min-coverage 90"), "{text}");
    let tests = [AS, PASSING].concat();
    let all = [("mesh.yaml", MESH), ("shop.test.yaml", &tests)];
    let (text, code) = test(&all, &["--min-coverage", "100"]);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn mistakes_of_a_test_file_fail_with_their_location() {
    let tests = "tests:\n- {name: a, request: {url: 'ftp://a/'}, expect: {status: 200}}\n";
    let (text, code) = test(&[("mesh.yaml", MESH), ("a.test.yaml", tests)], &[]);
    assert_eq!(code, Some(1));
    let expected = "line 2: request: expected one that can be asked, got url: expected http://";
    assert!(text.contains(expected), "{text}");
    let tests = "tests:\n- {name: a, request: {url: /}, expect: {stats: 200}}\n";
    let (text, code) = test(&[("mesh.yaml", MESH), ("a.test.yaml", tests)], &[]);
    assert_eq!(code, Some(1));
    assert!(text.contains("a.test.yaml:2:"), "{text}");
    let (text, code) = test(&[("mesh.yaml", MESH)], &[]);
    assert_eq!(code, Some(2));
    assert!(text.contains("no file is named *.test.yaml"), "{text}");
}

#[test]
fn schema_has_the_fields_that_are_read() {
    let (schema, code) = test(&[], &["--schema"]);
    assert_eq!(code, Some(0));
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let fields = |of: &Value| -> Vec<String> {
        let fields = of["properties"].as_object().unwrap();
        fields.keys().cloned().collect()
    };
    let expect = fields(&schema["$defs"]["expect"]);
    // an unknown field is an error that names it
    for field in &expect {
        let tests = format!("tests:\n- {{name: a, request: {{url: /}}, expect: {{{field}: }}}}\n");
        let (text, _) = test(&[("mesh.yaml", MESH), ("a.test.yaml", &tests)], &[]);
        assert!(!text.contains("CM021"), "{field}: {text}");
    }
    assert_eq!(expect.len(), 18, "a new field belongs into the schema");
}

#[test]
fn written_tests_pass_and_reach_every_rule() {
    let directory = tempfile::tempdir().unwrap();
    files(directory.path(), &[("mesh.yaml", MESH)]);
    let proxy = ["--labels", "app=edge", "--namespace", "shop"];
    let (tests, code) = run(directory.path(), &[&["--init"], &proxy[..]].concat());
    assert_eq!(code, Some(0), "{tests}");
    files(directory.path(), &[("routes.test.yaml", &tests)]);
    let (text, code) = run(directory.path(), &["--coverage"]);
    assert_eq!(code, Some(0), "{text}\n{tests}");
    // rules of connections have none
    let untested = text
        .lines()
        .filter(|line| line.starts_with("untested rule "));
    assert_eq!(untested.count(), 1, "{text}");
    // a change of a rule is found by its test
    files(
        directory.path(),
        &[("mesh.yaml", &MESH.replace("timeout: 3s", "timeout: 4s"))],
    );
    let (text, code) = run(directory.path(), &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("FAIL  testers of shop.example"), "{text}");
}

#[test]
fn tests_of_a_log_are_one_for_each_rule_without_credentials() {
    let directory = tempfile::tempdir().unwrap();
    let line = |path: &str| {
        format!(
            "{{\"method\":\"GET\",\"path\":\"{path}\",\"authority\":\"shop.example\",\"response_code\":200}}\n"
        )
    };
    let log = [
        line("/cart?token=abc&page=2"),
        line("/cart/7"),
        line("/admin"),
        "no JSON\n".to_owned(),
    ];
    files(
        directory.path(),
        &[("mesh.yaml", MESH), ("access.log", &log.concat())],
    );
    let flags = [
        "--record",
        "access.log",
        "--labels",
        "app=edge",
        "--namespace",
        "shop",
    ];
    let (tests, code) = run(directory.path(), &flags);
    assert_eq!(code, Some(0), "{tests}");
    assert!(tests.contains("access.log: 1 line left out"), "{tests}");
    let tests: String = tests
        .lines()
        .filter(|line| !line.starts_with("strait: "))
        .fold(String::new(), |all, line| all + line + "\n");
    assert!(tests.contains("\"http://shop.example/cart\""), "{tests}");
    assert!(!tests.contains("abc"), "{tests}");
    files(directory.path(), &[("today.test.yaml", &tests)]);
    let (text, code) = run(directory.path(), &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.ends_with("2 tests passed, 0 failed\n"),
        "{text}\n{tests}"
    );
}
