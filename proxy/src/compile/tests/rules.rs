//! Rules to routes: order, blocks that need no request, destinations.

use crate::compile::tests::world::World;

/// A VirtualService for `a.com` with these rules; `R(x)` represents an answer with the body `x`.
fn rules(http: &str) -> String {
    let http = http
        .replace("R(", "directResponse: {status: 200, body: {string: ")
        .replace(')', "}}");
    format!("VirtualService default/a {{hosts: [a.com], gateways: [gw], http: [{http}]}}")
}

fn check(http: &str, rows: &[(&str, &str)]) {
    World::of(&[&rules(http)]).check(rows);
}

#[test]
fn rule_without_match_ends_the_list() {
    check(
        "{R(one)}, {match: [{uri: {prefix: /x}}], R(two)}",
        &[("a.com/x", "200 one")],
    );
}

#[test]
fn catch_all_block_ends_the_list() {
    let http = "{match: [{uri: {prefix: /a}}, {uri: {prefix: /}}], R(one)}, {match: [{uri: {prefix: /b}}], R(two)}";
    check(http, &[("a.com/b", "200 one")]);
}

#[test]
fn all_of_a_block_and_any_of_the_blocks_must_hold() {
    let http =
        "{match: [{uri: {prefix: /x}, headers: {h: {exact: a}}}, {uri: {exact: /y}}], R(one)}";
    check(
        http,
        &[
            ("a.com/x | h: a", "200 one"),
            ("a.com/x", "404"),
            ("a.com/x | h: A", "404"),
            ("a.com/y", "200 one"),
            ("a.com/y/", "404"),
        ],
    );
}

#[test]
fn values_are_matched_literally() {
    for (block, rows) in [
        (
            "uri: {prefix: /foo}",
            &[
                ("a.com/foobar", true),
                ("a.com/Foo", false),
                ("a.com/foo?x", true),
            ][..],
        ),
        (
            "uri: {regex: '/b.*'}",
            &[("a.com/ab", false), ("a.com/b/c", true)],
        ),
        (
            "uri: {regex: /foo}, ignoreUriCase: true",
            &[("a.com/FOO", false), ("a.com/foo", true)],
        ),
        (
            "uri: {exact: /foo}, ignoreUriCase: true",
            &[("a.com/FOO", true), ("a.com/FOO/", false)],
        ),
        (
            "method: {exact: POST}",
            &[("POST a.com/", true), ("a.com/", false)],
        ),
        ("scheme: {exact: http}", &[("a.com/", true)]),
        ("scheme: {exact: https}", &[("a.com/", false)]),
        (
            "authority: {exact: a.com}",
            &[("a.com/", true), ("a.com:80/", false), ("A.com/", false)],
        ),
        (
            "withoutHeaders: {h: {exact: a}}",
            &[
                ("a.com/", true),
                ("a.com/ | h: b", true),
                ("a.com/ | h: a", false),
            ],
        ),
        ("withoutHeaders: {h: {regex: '.*'}}", &[("a.com/", false)]),
        (
            "withoutHeaders: {h: {}}",
            &[("a.com/", true), ("a.com/ | h: ", false)],
        ),
        (
            "headers: {h: {exact: b}}",
            &[
                ("a.com/ | h: a | h: b", true),
                ("a.com/ | H: b", true),
                ("a.com/", false),
            ],
        ),
        (
            "queryParams: {q: {exact: ''}}",
            &[
                ("a.com/?q", true),
                ("a.com/?q=", true),
                ("a.com/?q=1", false),
                ("a.com/", false),
            ],
        ),
        (
            "queryParams: {q: {exact: a}}",
            &[("a.com/?q=a&q=b", true), ("a.com/?q=b&q=a", false)],
        ),
    ] {
        let world = World::of(&[&rules(&format!("{{match: [{{{block}}}], R(ok)}}"))]);
        for (request, held) in rows {
            let expected = if *held { "200 ok" } else { "404" };
            let got = crate::compile::tests::world::ask(&world.snapshot, 80, request);
            assert_eq!(got, expected, "{block}: {request}");
        }
    }
}

#[test]
fn static_conditions_are_evaluated_at_compile_time() {
    for (block, held) in [
        ("port: 80", true),
        ("port: 8080", false),
        ("gateways: [gw]", true),
        ("gateways: [./gw]", true),
        ("gateways: [mesh, gw]", true),
        ("gateways: [mesh]", false),
        ("gateways: [other]", false),
        ("sourceLabels: {app: edge}", true),
        ("sourceLabels: {app: other}", false),
        ("sourceLabels: {app: edge, tier: x}", false),
        ("sourceNamespace: istio-system", true),
        ("sourceNamespace: default", false),
        // gateways switch the other two off
        (
            "gateways: [gw], sourceLabels: {app: other}, sourceNamespace: x",
            true,
        ),
        ("gateways: [gw], port: 8080", false),
    ] {
        let http = format!(
            "{{match: [{{{block}, uri: {{prefix: /x}}}}, {{uri: {{prefix: /y}}}}], R(one)}}"
        );
        let expected = if held { "200 one" } else { "404" };
        let world = World::of(&[&rules(&http)]);
        let got = crate::compile::tests::world::ask(&world.snapshot, 80, "a.com:8080/x");
        assert_eq!(got, expected, "{block}");
        // the rest of the rule lives on
        world.check(&[("a.com/y", "200 one")]);
    }
}

#[test]
fn block_for_the_second_gateway_of_a_port_applies() {
    let server = "{servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [a.com]}]}";
    let (one, two) = (
        format!("Gateway default/one {server}"),
        format!("Gateway default/two {server}"),
    );
    let service = "VirtualService default/a {hosts: [a.com], gateways: [one, two], http: [\
        {match: [{gateways: [two]}], directResponse: {status: 200, body: {string: two}}}]}";
    World::only(&[&one, &two, service]).check(&[("a.com/", "200 two")]);
}

#[test]
fn rules_for_the_first_gateway_of_a_port_precede_those_for_the_second() {
    let server = "{servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: [a.com]}]}";
    let (one, two) = (
        format!("Gateway default/one@2020 {server}"),
        format!("Gateway default/two@2021 {server}"),
    );
    let reply = |name: &str| format!("directResponse: {{status: 200, body: {{string: {name}}}}}");
    let service = format!(
        "VirtualService default/a {{hosts: [a.com], gateways: [one, two], http: [\
            {{match: [{{uri: {{prefix: /two}}, gateways: [two]}}], {}}},\
            {{match: [{{uri: {{regex: '.*'}}, gateways: [two]}}], {}}},\
            {{{}}}]}}",
        reply("two"),
        reply("all of two"),
        reply("one"),
    );
    World::only(&[&one, &two, &service]).check(&[("a.com/two", "200 two"), ("a.com/", "200 one")]);
}

#[test]
fn destinations_are_named_by_service_port_and_subset() {
    let rule = "DestinationRule default/s {host: s, subsets: [{name: v1, labels: {version: v1}}]}";
    let two_ports = "ServiceEntry default/t {hosts: [t.default.svc.cluster.local], resolution: STATIC, \
        ports: [{number: 81, name: a, protocol: HTTP}, {number: 80, name: b, protocol: HTTP}], \
        endpoints: [{address: 10.0.1.1}]}";
    let one_port = "ServiceEntry default/o {hosts: [o.default.svc.cluster.local], resolution: STATIC, \
        ports: [{number: 9080, name: http, protocol: HTTP}], endpoints: [{address: 10.0.2.1}]}";
    for (route, expected) in [
        ("{destination: {host: s}}", "1 s.default:80"),
        ("{destination: {host: S}}", "1 s.default:80"),
        (
            "{destination: {host: s.default.svc.cluster.local}}",
            "1 s.default:80",
        ),
        ("{destination: {host: s.default}}", "1 s.default:80?"),
        ("{destination: {host: s, subset: v1}}", "1 s.default:80/v1"),
        ("{destination: {host: s, subset: v9}}", "1 s.default:80/v9?"),
        (
            "{destination: {host: s, port: {number: 81}}}",
            "1 s.default:81?",
        ),
        ("{destination: {host: o}}", "1 o.default:9080"),
        ("{destination: {host: t}}", "1 t.default:80"), // several ports: the listener's
        (
            "{destination: {host: t, port: {number: 81}}}",
            "1 t.default:81",
        ),
        ("{destination: {host: s}, weight: 0}", "1 s.default:80"),
        (
            "{destination: {host: s}, weight: 3}, {destination: {host: o}, weight: 0}, {destination: {host: t}, weight: 1}",
            "3 s.default:80, 0 o.default:9080, 1 t.default:80",
        ),
        ("{destination: {host: missing}}", "1 missing.default:80?"),
    ] {
        let service = rules(&format!("{{route: [{route}]}}"));
        World::of(&[rule, two_ports, one_port, &service]).check(&[("a.com/", expected)]);
    }
}

#[test]
fn short_names_get_the_namespace_of_their_resource() {
    let other = "ServiceEntry ns1/s {hosts: [s.ns1.svc.cluster.local], resolution: STATIC, \
        ports: [{number: 80, name: http, protocol: HTTP}], endpoints: [{address: 10.0.3.1}]}";
    let service = "VirtualService ns1/a {hosts: [a.com, b], gateways: [default/gw], \
        http: [{route: [{destination: {host: s}}]}]}";
    World::of(&[other, service]).check(&[
        ("a.com/", "1 s.ns1:80"),
        ("b.ns1.svc.cluster.local/", "1 s.ns1:80"),
        ("b/", "404"),
    ]);
}

#[test]
fn rewrite_replaces_the_matched_part_of_the_uri() {
    for (block, rewrite, request, expected) in [
        ("{uri: {prefix: /foo}}", "uri: /", "a.com/foo/bar", "//bar"),
        ("{uri: {prefix: /foo}}", "uri: /", "a.com/foo?x=1", "/?x=1"),
        ("{uri: {prefix: /foo/}}", "uri: /", "a.com/foo/bar", "/bar"),
        ("{headers: {h: {}}}", "uri: /x", "a.com/a | h: 1", "/xa"),
        ("{uri: {exact: /a}}", "uri: /x", "a.com/a", "/x"),
        (
            "{uri: {regex: '/v[0-9]+/.*'}}",
            "uri: /z",
            "a.com/v1/a?q=1",
            "/z?q=1",
        ),
        (
            "{uri: {prefix: /foo}, ignoreUriCase: true}",
            "uri: /x",
            "a.com/FOO/bar",
            "/x/bar",
        ),
        (
            "{uri: {prefix: /}}",
            "uriRegexRewrite: {match: a, rewrite: b}",
            "a.com/aa?a=a",
            "/bb?a=a",
        ),
    ] {
        let http = format!(
            "{{match: [{block}], rewrite: {{{rewrite}}}, route: [{{destination: {{host: s}}}}]}}"
        );
        let expected = format!("1 s.default:80 -> {expected}");
        World::of(&[&rules(&http)]).check(&[(request, &expected)]);
    }
}

#[test]
fn redirect_has_the_configured_location() {
    for (redirect, request, expected) in [
        (
            "uri: /new",
            "a.com/old/deep?q=1",
            "301 http://a.com/new?q=1",
        ),
        ("authority: b.com", "a.com/p?q", "301 http://b.com/p?q"),
        ("scheme: https", "a.com:80/", "301 https://a.com/"),
        ("scheme: https", "a.com:8080/", "301 https://a.com:8080/"),
        (
            "scheme: https, port: 443",
            "a.com:8080/",
            "301 https://a.com/",
        ),
        (
            "derivePort: FROM_REQUEST_PORT",
            "a.com:99/",
            "301 http://a.com/",
        ),
        ("redirectCode: 308, uri: /x", "a.com/", "308 http://a.com/x"),
    ] {
        let http = format!("{{redirect: {{{redirect}}}}}");
        World::of(&[&rules(&http)]).check(&[(request, expected)]);
    }
}
