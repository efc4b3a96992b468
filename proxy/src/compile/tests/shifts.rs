//! Traffic shifts of policies for some requests: which requests go where.

use config_loader::{Diagnostics, ResourceSet, Severity, load_bytes};

use crate::compile::tests::world::GATEWAY;
use crate::compile::tests::world::World;
use crate::compile::tests::world::ask;
use crate::compile::tests::world::load;
use crate::snapshot::Snapshot;

const SHIFTED: &str = "75 web.ns1:80/version-v1, 25 web.ns1:80/version-v2";
const WHOLE: &str = "1 web.ns1:80";

/// A Destination of a service of the local cluster with these policies, each with the shift that it asks for.
fn destination(service: &str, policies: &[(&str, &str)]) -> String {
    let (mut applied, mut required) = (Vec::new(), Vec::new());
    for (number, (spec, shares)) in policies.iter().enumerate() {
        applied.push(format!("{{ref: {{name: p{number}}}, spec: {spec}}}"));
        let parts = shares.split(' ').map(|share| {
            let (version, weight) = share.split_once(':').unwrap();
            format!(
                "{{weight: {weight}, kubeService: {{name: {service}, namespace: ns1, clusterName: local, \
                 subset: {{version: {version}}}}}}}"
            )
        });
        let parts = parts.collect::<Vec<_>>().join(", ");
        required.push(format!(
            "{{trafficPolicyRef: {{name: p{number}}}, trafficShift: {{destinations: [{parts}]}}}}"
        ));
    }
    format!(
        "---\napiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\nmetadata: {{name: {service}}}\n\
         spec: {{kubeService: {{ref: {{name: {service}, namespace: ns1, clusterName: local}}, \
         ports: [{{port: 80, name: http, protocol: TCP}}], endpointSubsets: [{{ports: [{{port: 8080, name: http}}], \
         endpoints: [{{ipAddress: 10.0.0.1, labels: {{version: v1}}}}, {{ipAddress: 10.0.0.2, labels: {{version: v2}}}}]}}]}}}}\n\
         status: {{appliedTrafficPolicies: [{}], requiredSubsets: [{}]}}\n",
        applied.join(", "),
        required.join(", ")
    )
}

const ROUTE: &str = "VirtualService default/a {hosts: [a.com], gateways: [gw], http: [\
    {match: [{uri: {prefix: /api}}], route: [{destination: {host: web.ns1.svc.cluster.local}}]}, \
    {match: [{uri: {prefix: /v1}}], route: [{destination: {host: web.ns1.svc.cluster.local, subset: version-v1}}]}, \
    {route: [{destination: {host: web.ns1.svc.cluster.local}}]}]}";

fn resources(rules: &[&str], destinations: &[String]) -> ResourceSet {
    let usual = load(&[&[GATEWAY], rules].concat());
    let mut found = Diagnostics::default();
    let more = load_bytes("d.yaml", destinations.concat().as_bytes(), &mut found);
    let mut errors = found.iter().filter(|one| one.severity == Severity::Error);
    assert!(errors.next().is_none(), "{found:?}");
    ResourceSet {
        destinations: more.destinations,
        ..usual
    }
}

/// Checks the destinations of requests with this policy of a shift of ns1/web.
fn check(spec: &str, rows: &[(&str, &str)]) {
    let mut world = World::empty();
    world.put(&resources(
        &[ROUTE],
        &[destination("web", &[(spec, "v1:75 v2:25")])],
    ));
    for (request, expected) in rows {
        assert_eq!(
            &ask(&world.snapshot, 80, request),
            expected,
            "{spec} {request}"
        );
    }
}

#[test]
fn only_requests_that_match_are_shifted() {
    let matcher = |text: &str| format!("{{httpRequestMatchers: [{text}]}}");
    for (written, taken, left) in [
        ("{uri: {prefix: /x}}", "a.com/xy", "a.com/y"),
        ("{prefix: /x}", "a.com/xy", "a.com/y"),
        ("{uri: {exact: /x}}", "a.com/x", "a.com/xy"),
        (
            "{uri: {exact: /X, ignoreCase: true}}",
            "a.com/x",
            "a.com/xy",
        ),
        ("{uri: {regex: '/x[0-9]+'}}", "a.com/x12", "a.com/x12a"),
        ("{uri: {suffix: .js}}", "a.com/x/y.js?q=.css", "a.com/x.JS"),
        (
            "{uri: {suffix: .js, ignoreCase: true}}",
            "a.com/x.JS",
            "a.com/x.css",
        ),
        ("{method: PUT}", "PUT a.com/", "GET a.com/"),
        ("{headers: [{name: X-A}]}", "a.com/ | x-a: 1", "a.com/"),
        (
            "{headers: [{name: a, value: '1'}]}",
            "a.com/ | a: 1",
            "a.com/ | a: 2",
        ),
        (
            "{headers: [{name: a, value: 'b.', regex: true}]}",
            "a.com/ | a: bc",
            "a.com/ | a: b",
        ),
        (
            "{headers: [{name: a, invertMatch: true}]}",
            "a.com/",
            "a.com/ | a: 1",
        ),
        (
            "{headers: [{name: a, value: '1', invertMatch: true}]}",
            "a.com/ | a: 2",
            "a.com/ | a: 1",
        ),
        ("{queryParameters: [{name: q}]}", "a.com/?q=1", "a.com/?p=1"),
        (
            "{queryParameters: [{name: q, value: '1'}]}",
            "a.com/?q=1",
            "a.com/?q=2",
        ),
        (
            "{queryParameters: [{name: q, value: '[a-c]', regex: true}]}",
            "a.com/?q=b",
            "a.com/?q=d",
        ),
        // all of a matcher must hold, and any one of several
        ("{prefix: /x, method: PUT}", "PUT a.com/x", "GET a.com/x"),
        ("{prefix: /x}, {method: PUT}", "PUT a.com/y", "GET a.com/y"),
        ("{prefix: /x}, {method: PUT}", "GET a.com/x", "GET a.com/y"),
        // a matcher holds on top of what the rule asks
        ("{uri: {suffix: .js}}", "a.com/api/a.js", "a.com/api/a"),
        ("{prefix: /api/x}", "a.com/api/x", "a.com/api/y"),
    ] {
        check(&matcher(written), &[(taken, SHIFTED), (left, WHOLE)]);
    }
    // a rule that names a subset means that
    let subset = "1 web.ns1:80/version-v1";
    check(&matcher("{prefix: /v1}"), &[("a.com/v1/x", subset)]);
    // what takes every request
    check(&matcher("{prefix: /}"), &[("a.com/y", SHIFTED)]);
    // what cannot be told is not followed
    check(&matcher("{prefix: /x, port: 80}"), &[("a.com/x", WHOLE)]);
}

#[test]
fn source_matchers_match_the_proxy() {
    let sources = |text: &str| format!("{{sourceSelector: [{text}]}}");
    for (written, expected) in [
        ("{kubeWorkloadMatcher: {}}", SHIFTED),
        (
            "{kubeWorkloadMatcher: {labels: {istio: ingressgateway}}}",
            SHIFTED,
        ),
        ("{kubeWorkloadMatcher: {labels: {istio: other}}}", WHOLE),
        (
            "{kubeWorkloadMatcher: {namespaces: [a, istio-system]}}",
            SHIFTED,
        ),
        ("{kubeWorkloadMatcher: {namespaces: [ns1]}}", WHOLE),
        ("{kubeWorkloadMatcher: {clusters: [local]}}", SHIFTED),
        (
            "{kubeWorkloadMatcher: {clusters: [default/default/default/local]}}",
            SHIFTED,
        ),
        ("{kubeWorkloadMatcher: {clusters: [c2]}}", WHOLE),
        (
            "{kubeWorkloadMatcher: {labels: {app: edge}, namespaces: [ns1]}}",
            WHOLE,
        ),
        (
            "{kubeWorkloadMatcher: {clusters: [c2]}}, {labels: {app: edge}}",
            SHIFTED,
        ),
    ] {
        check(&sources(written), &[("a.com/", expected)]);
    }
    let both =
        "{sourceSelector: [{namespaces: [istio-system]}], httpRequestMatchers: [{prefix: /x}]}";
    check(both, &[("a.com/x", SHIFTED), ("a.com/y", WHOLE)]);
}

#[test]
fn first_matching_policy_applies_and_catch_all_policies_are_last() {
    let mut world = World::empty();
    let policies = [
        ("{}", "v1:10 v2:90"),
        ("{httpRequestMatchers: [{prefix: /x}]}", "v1:20 v2:80"),
        (
            "{httpRequestMatchers: [{prefix: /xy}, {prefix: /z}]}",
            "v1:30 v2:70",
        ),
    ];
    world.put(&resources(&[ROUTE], &[destination("web", &policies)]));
    let shares = |v1: u8, v2: u8| format!("{v1} web.ns1:80/version-v1, {v2} web.ns1:80/version-v2");
    for (request, expected) in [
        ("a.com/xy", shares(20, 80)),
        ("a.com/z", shares(30, 70)),
        ("a.com/", shares(10, 90)),
    ] {
        assert_eq!(ask(&world.snapshot, 80, request), expected, "{request}");
    }
}

#[test]
fn each_destination_of_a_rule_is_shifted_by_its_own_policies() {
    let rule = "VirtualService default/a {hosts: [a.com], gateways: [gw], http: [{route: [\
                {destination: {host: web.ns1.svc.cluster.local}, weight: 60}, \
                {destination: {host: shop.ns1.svc.cluster.local}, weight: 40}]}]}";
    let mut world = World::empty();
    let web = destination(
        "web",
        &[("{httpRequestMatchers: [{prefix: /w}]}", "v1:50 v2:50")],
    );
    let shop = destination(
        "shop",
        &[("{httpRequestMatchers: [{method: PUT}]}", "v1:100")],
    );
    world.put(&resources(&[rule], &[web, shop]));
    let web = "3000 web.ns1:80/version-v1, 3000 web.ns1:80/version-v2";
    for (request, expected) in [
        ("GET a.com/", "60 web.ns1:80, 40 shop.ns1:80".to_owned()),
        ("GET a.com/w", format!("{web}, 4000 shop.ns1:80")),
        (
            "PUT a.com/",
            "6000 web.ns1:80, 4000 shop.ns1:80/version-v1".to_owned(),
        ),
        ("PUT a.com/w", format!("{web}, 4000 shop.ns1:80/version-v1")),
    ] {
        assert_eq!(ask(&world.snapshot, 80, request), expected, "{request}");
    }
}

#[test]
fn catch_all_rules_stay_after_rules_of_other_services() {
    let first = "VirtualService default/a@2020 {hosts: [a.com], gateways: [gw], http: [\
                 {route: [{destination: {host: web.ns1.svc.cluster.local}}]}]}";
    let second = "VirtualService default/b@2021 {hosts: [a.com], gateways: [gw], http: [\
                  {match: [{uri: {prefix: /x/b}}], directResponse: {status: 418}}]}";
    let mut world = World::empty();
    let web = destination(
        "web",
        &[("{httpRequestMatchers: [{prefix: /x}]}", "v1:75 v2:25")],
    );
    world.put(&resources(&[first, second], &[web]));
    for (request, expected) in [
        ("a.com/x/b", "418 "),
        ("a.com/x", SHIFTED),
        ("a.com/", WHOLE),
    ] {
        assert_eq!(ask(&world.snapshot, 80, request), expected, "{request}");
    }
}

#[test]
fn too_many_matchers_disable_policies_with_a_match() {
    let many = |count: usize| {
        let matchers: Vec<String> = (0..count).map(|n| format!("{{prefix: /{n}}}")).collect();
        format!("{{httpRequestMatchers: [{}]}}", matchers.join(", "))
    };
    let with = |count: usize| {
        let mut world = World::empty();
        let web = destination("web", &[(&many(count), "v1:75 v2:25")]);
        world.put(&resources(&[ROUTE], &[web]));
        ask(&world.snapshot, 80, "a.com/0")
    };
    assert_eq!(with(63), SHIFTED);
    assert_eq!(with(64), WHOLE);
}

#[test]
fn a_changed_policy_changes_its_routes() {
    let mut world = World::empty();
    for (prefix, expected) in [("/x", SHIFTED), ("/y", WHOLE), ("/x", SHIFTED)] {
        let spec = format!("{{httpRequestMatchers: [{{prefix: {prefix}}}]}}");
        let set = resources(&[ROUTE], &[destination("web", &[(&spec, "v1:75 v2:25")])]);
        world.put(&set);
        assert_eq!(ask(&world.snapshot, 80, "a.com/x"), expected);
        let fresh = world.compile(&set, &Snapshot::default());
        assert_eq!(ask(&fresh, 80, "a.com/x"), expected);
    }
}

#[test]
fn a_catch_all_virtual_service_disables_shifts_on_its_listener() {
    let other = "Gateway default/other {servers: [{port: {number: 81, name: http, protocol: HTTP}, hosts: ['*']}]}";
    let narrow = "Gateway default/narrow {servers: [{port: {number: 80, name: http-n, protocol: HTTP}, hosts: ['ns9/*']}]}";
    let every = |gateway: &str| {
        format!(
            "VirtualService default/every {{hosts: ['*'], gateways: [{gateway}], http: [\
             {{route: [{{destination: {{host: web.ns1.svc.cluster.local}}}}]}}]}}"
        )
    };
    for (gateway, at_80, at_81) in [
        ("other", SHIFTED, WHOLE),
        ("gw", WHOLE, "404"),
        // a server that lets nothing of it in
        ("narrow", SHIFTED, "404"),
        ("elsewhere", SHIFTED, "404"),
    ] {
        let mut world = World::empty();
        let set = |more: &[&str]| {
            let web = destination("web", &[("{}", "v1:75 v2:25")]);
            resources(&[&[ROUTE, other, narrow], more].concat(), &[web])
        };
        world.put(&set(&[]));
        assert_eq!(ask(&world.snapshot, 80, "a.com/"), SHIFTED);
        let every = every(gateway);
        let set = set(&[&every]);
        world.put(&set);
        let fresh = world.compile(&set, &Snapshot::default());
        for snapshot in [&*world.snapshot, &fresh] {
            assert_eq!(ask(snapshot, 80, "a.com/"), at_80, "{gateway}");
            assert_eq!(ask(snapshot, 81, "x.com/"), at_81, "{gateway}");
        }
    }
}
