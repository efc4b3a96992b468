mod unsupported;

use crate::diagnostic::Diagnostics;
use crate::load_bytes;

fn found(text: &str) -> Vec<String> {
    let documents = text.lines().map(|line| format!("---\n{line}\n"));
    let text: String = documents.collect();
    let text = text.replace("GATEWAY-API", "gateway.networking.k8s.io/v1");
    let mut found = Diagnostics::default();
    load_bytes("a.yaml", text.as_bytes(), &mut found);
    let ours = found.into_sorted().into_iter();
    let ours = ours.filter(|found| found.code.0.starts_with("GA") && found.code.0 != "GA000");
    ours.map(|found| {
        let help = found
            .help
            .map(|help| format!(" ({help})"))
            .unwrap_or_default();
        format!("{} {}: {}{help}", found.code, found.field, found.message)
    })
    .collect()
}

#[test]
fn gateways_that_are_not_served_are_notes() {
    let text = "\
{apiVersion: GATEWAY-API, kind: Gateway, metadata: {name: a}, spec: {gatewayClassName: none, listeners: [{name: a, protocol: HTTP, port: 80}]}}
{apiVersion: GATEWAY-API, kind: Gateway, metadata: {name: b}, spec: {gatewayClassName: other, listeners: [{name: a, protocol: HTTP, port: 80}]}}
{apiVersion: GATEWAY-API, kind: GatewayClass, metadata: {name: other}, spec: {controllerName: a.b/c}}";
    assert_eq!(
        found(text),
        [
            "GA001 spec.gatewayClassName: no GatewayClass has the name `none`: the Gateway is not served (write `strait`, or add \
             a GatewayClass `none` with `controllerName: strait.io/gateway-controller`)",
            "GA002 spec.gatewayClassName: the class `other` is of the controller `a.b/c` (leave it to that controller, or write a \
             class of this one)",
        ]
    );
}

#[test]
fn listeners_and_references_that_do_not_hold_are_reported() {
    let text = "\
{apiVersion: GATEWAY-API, kind: Gateway, metadata: {name: a}, spec: {gatewayClassName: strait, listeners: [{name: one, protocol: HTTP, port: 80}, {name: two, protocol: TCP, port: 80}, {name: tls, protocol: HTTPS, port: 443, tls: {certificateRefs: [{name: cert, namespace: web}]}}]}}";
    let found = found(text);
    assert_eq!(found.len(), 3, "{found:#?}");
    assert!(found[0].starts_with("GA020 spec.listeners[one]: listener `one` is not accepted: listener `two` of Gateway/default/a has port 80, and cannot share it with HTTP"));
    assert!(found[1].starts_with("GA020 spec.listeners[two]: "));
    assert_eq!(
        found[2],
        r#"GA021 spec.listeners[tls].tls.certificateRefs: no ReferenceGrant permits this reference to Secret web/cert (apply {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "ReferenceGrant", "metadata": {"name": "default-to-cert", "namespace": "web"}, "spec": {"from": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": "default"}], "to": [{"group": "", "kind": "Secret", "name": "cert"}]}})"#
    );
}

#[test]
fn routes_that_attach_to_nothing_and_backends_that_do_not_exist_are_reported() {
    let text = "\
{apiVersion: GATEWAY-API, kind: Gateway, metadata: {name: a}, spec: {gatewayClassName: strait, listeners: [{name: web, protocol: HTTP, port: 80, hostname: shop.test}, {name: raw, protocol: TCP, port: 90}]}}
{apiVersion: GATEWAY-API, kind: HTTPRoute, metadata: {name: r}, spec: {parentRefs: [{name: a, sectionName: wep}, {name: b}, {name: a, sectionName: web}], hostnames: [x.test], rules: [{backendRefs: [{name: none, port: 80}]}]}}
{apiVersion: GATEWAY-API, kind: TCPRoute, metadata: {name: old}, spec: {parentRefs: [{name: a}], rules: [{backendRefs: [{name: db, port: 80}]}]}}
{apiVersion: GATEWAY-API, kind: TCPRoute, metadata: {name: young}, spec: {parentRefs: [{name: a}], rules: [{backendRefs: [{name: db, port: 80}]}]}}
{apiVersion: v1, kind: Service, metadata: {name: db}, spec: {ports: [{port: 80}]}}";
    assert_eq!(
        found(text),
        [
            "GA044 spec.parentRefs[0]: the route is not attached to Gateway default/a: it has no listener with this section and \
             port (did you mean `sectionName: web`?)",
            "GA044 spec.parentRefs[2]: the route is not attached to Gateway default/a: its listeners have other hosts (their \
             hosts are: shop.test)",
            "GA071 spec.rules[0].backendRefs[0]: Service default/none does not exist: its share of the requests gets a response \
             with status 500 (write a Service or ServiceImport that exists, and one of its ports)",
            "GA004 spec.parentRefs[1]: Gateway default/b does not exist: the route is not attached to it (write the name and \
             namespace of one that exists, or add it)",
            "GA042 spec.parentRefs: TCPRoute/default/old is older, and gets every connection of the listener (attach the route to \
             another listener, or remove the older one)",
        ]
    );
}

#[test]
fn policies_that_decide_nothing_or_too_much_are_reported() {
    let policy = |name: &str, rest: &str| {
        format!(
            "{{apiVersion: GATEWAY-API, kind: BackendTLSPolicy, metadata: {{name: {name}}}, spec: {{targetRefs: [{rest}, hostname: a.test}}}}}}\n"
        )
    };
    let system = "validation: {wellKnownCACertificates: System";
    let text = [
        policy("a", &format!("{{group: '', kind: Service, name: db}}], {system}")),
        policy("b", &format!("{{group: '', kind: Service, name: db}}, {{group: '', kind: Service, name: none}}], {system}")),
        policy("c", "{group: '', kind: Service, name: web}], validation: {caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]"),
        "{apiVersion: networking.istio.io/v1, kind: DestinationRule, metadata: {name: db}, spec: {host: db, trafficPolicy: {tls: {mode: SIMPLE}}}}\n".to_owned(),
        "{apiVersion: v1, kind: Service, metadata: {name: db}, spec: {ports: [{port: 80}]}}\n".to_owned(),
        "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{port: 80, name: a, appProtocol: kubernetes.io/wss}]}}\n".to_owned(),
        "{apiVersion: v1, kind: Service, metadata: {name: wss}, spec: {ports: [{port: 80, name: a, appProtocol: kubernetes.io/wss}]}}\n".to_owned(),
        "{apiVersion: GATEWAY-API, kind: Gateway, metadata: {name: a}, spec: {gatewayClassName: strait, listeners: [{name: web, protocol: HTTP, port: 80}]}}\n".to_owned(),
        "{apiVersion: GATEWAY-API, kind: HTTPRoute, metadata: {name: r}, spec: {parentRefs: [{name: a}], rules: [{backendRefs: [{name: web, port: 80}, {name: wss, port: 80}]}]}}\n".to_owned(),
    ];
    let found = found(&text.concat());
    let short = found.iter().map(|line| line.split(" (").next().unwrap());
    assert_eq!(
        short.collect::<Vec<_>>(),
        [
            "GA060 spec.targetRefs: routes of the Gateway API send to port 80 by this policy, not by `tls` of DestinationRule/default/db",
            "GA062 spec.targetRefs[0]: BackendTLSPolicy/default/a is older, and has the same target",
            "GA005 spec.targetRefs[1]: Service default/none does not exist: the target has no effect",
            "GA030 spec.validation.caCertificateRefs: ConfigMap default/ca does not exist",
            "GA063 spec.rules[0].backendRefs[0]: BackendTLSPolicy/default/c applies, which has no usable CA certificate: its share of the requests gets a response with status 500",
            "GA073 spec.rules[0].backendRefs[1]: `kubernetes.io/wss` needs a BackendTLSPolicy for the port: its share of the requests gets a response with status 500",
        ]
    );
}

#[test]
fn routes_of_services_are_reported_where_they_have_no_effect() {
    let text = "\
{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{name: http, port: 80}]}}
{apiVersion: GATEWAY-API, kind: HTTPRoute, metadata: {name: r}, spec: {parentRefs: [{group: '', kind: Service, name: a, sectionName: http}], hostnames: [x.test], rules: [{backendRefs: [{name: none, namespace: other, port: 80}]}]}}
{apiVersion: GATEWAY-API, kind: HTTPRoute, metadata: {name: s}, spec: {parentRefs: [{group: '', kind: Service, name: a, port: 81}, {group: '', kind: Service, name: b}], rules: [{backendRefs: [{name: a, port: 80}]}]}}
{apiVersion: GATEWAY-API, kind: TCPRoute, metadata: {name: t}, spec: {parentRefs: [{group: '', kind: Service, name: a}], rules: [{backendRefs: [{name: a, port: 80}]}]}}";
    let no_effect = "it has no effect for Service default/a: requests have its routes by its address, whatever their host \
                     (leave it out; `port` of the parent limits a route to a port of the Service)";
    assert_eq!(
        found(text),
        [
            "GA071 spec.rules[0].backendRefs[0]: Service other/none does not exist: its share of the requests gets a response with \
             status 500 (write a Service or ServiceImport that exists, and one of its ports)"
                .to_owned(),
            format!("GA050 spec.hostnames: {no_effect}"),
            format!("GA050 spec.parentRefs[].sectionName: {no_effect}"),
            "GA053 spec.parentRefs[0]: Service default/a has no port 81: the route is not attached to it (write the name, \
             namespace and port of one that exists, or add it)"
                .to_owned(),
            "GA053 spec.parentRefs[1]: Service default/b does not exist: the route is not attached to it (write the name, \
             namespace and port of one that exists, or add it)"
                .to_owned(),
            "GA052 spec.parentRefs[0]: a TCPRoute is not applied to connections to a Service (write a VirtualService with `tcp` \
             or `tls` rules for the host of the Service)"
                .to_owned(),
        ]
    );
}

#[test]
fn loser_of_a_virtual_service_and_routes_of_a_service_is_reported() {
    let service = "{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{name: http, port: 80}, {name: alt, port: 81}]}}";
    let route = |namespace: &str, name: &str, port: &str| {
        format!(
            "\n{{apiVersion: GATEWAY-API, kind: HTTPRoute, metadata: {{name: {name}, namespace: {namespace}}}, spec: {{parentRefs: \
             [{{group: '', kind: Service, name: a, namespace: default{port}}}], rules: [{{backendRefs: [{{name: a, namespace: \
             default, port: 80}}]}}]}}}}"
        )
    };
    let virtual_service = |name: &str, rest: &str| {
        format!(
            "\n{{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {{name: {name}}}, spec: {{hosts: [a], \
             http: [{{{rest}route: [{{destination: {{host: a, port: {{number: 80}}}}}}]}}]}}}}"
        )
    };
    let help = "(write all rules for the host in one of them)";
    let host = "`a.default.svc.cluster.local`";
    let shadowed = |why: &str| {
        format!(
            "GA051 spec.hosts: {host} has routes of its Service: {why}, and not this VirtualService {help}"
        )
    };
    let (old, new) = (virtual_service("la", ""), virtual_service("na", ""));
    let other_port = virtual_service("na", "match: [{port: 81}], ");
    let loses = format!(
        "GA051 spec.parentRefs: VirtualService/default/la has requests for {host}, and not this route: it is older, or exported \
         to fewer namespaces {help}"
    );
    for (documents, expected) in [
        // without times, the names decide
        (
            [route("default", "m", ""), new],
            vec![shadowed("HTTPRoute/default/m is older, and is used")],
        ),
        ([route("default", "m", ""), old.clone()], vec![loses]),
        (
            [route("shop", "m", ""), old],
            vec![shadowed("in namespace shop, HTTPRoute/shop/m is used")],
        ),
        ([route("default", "m", ", port: 80"), other_port], vec![]),
    ] {
        let text = format!("{service}{}", documents.concat());
        assert_eq!(found(&text), expected, "{text}");
    }
}

#[test]
fn rules_that_no_request_reaches_and_ties_of_age_are_reported() {
    let gateway = "{apiVersion: GATEWAY-API, kind: Gateway, metadata: {name: a}, spec: {gatewayClassName: strait, listeners: [{name: web, protocol: HTTP, port: 80}]}}";
    let route = |name: &str, spec: &str| {
        let created = if name == "old" { "2024" } else { "2025" };
        format!(
            "{{apiVersion: GATEWAY-API, kind: HTTPRoute, metadata: {{name: {name}, creationTimestamp: {created}-01-01T00:00:00Z}}, spec: {{parentRefs: [{{name: a}}], {spec}}}}}"
        )
    };
    let header = |name: &str, value: &str| {
        format!("{{path: {{value: /h}}, headers: [{{name: {name}, value: {value}}}]}}")
    };
    let rules = |matches: &[String]| {
        let rules = matches.iter().map(|one| format!("{{matches: [{one}]}}"));
        format!("rules: [{}]", rules.collect::<Vec<_>>().join(", "))
    };
    let path = |path: &str| format!("{{path: {{value: {path}}}}}");
    let unreached = |rule: usize, of: &str| {
        format!(
            "GA043 spec.rules[{rule}]: no request reaches the rule: earlier ones have its matches, such as {of} (remove one of \
             the rules, or change its matches or the hosts)"
        )
    };
    let tied = |rule: usize, of: &str| {
        format!(
            "GA040 spec.rules[{rule}]: {of} is as specific, and requests can match both: the older route gets them (put both \
             rules into one route, whose order counts, or add a condition)"
        )
    };
    for (old, young, expected) in [
        (
            rules(&[path("/a"), path("/a")]),
            rules(&[path("/b")]),
            vec![unreached(1, "rule 0 of HTTPRoute/default/old")],
        ),
        (
            rules(&[path("/a")]),
            rules(&[path("/a/"), path("/b")]),
            vec![unreached(0, "rule 0 of HTTPRoute/default/old")],
        ),
        // one host of the younger route is its own
        (
            format!("hostnames: [a.test], {}", rules(&[path("/a")])),
            format!("hostnames: [a.test, b.test], {}", rules(&[path("/a")])),
            vec![tied(0, "rule 0 of HTTPRoute/default/old")],
        ),
        (
            rules(&[header("one", "a")]),
            rules(&[header("two", "a")]),
            vec![tied(0, "rule 0 of HTTPRoute/default/old")],
        ),
        // the two exclude each other, by the value of one header or by their path
        (
            rules(&[header("one", "a")]),
            rules(&[header("one", "b")]),
            vec![],
        ),
        (rules(&[path("/a")]), rules(&[path("/a/b")]), vec![]),
        // a rule without conditions takes all that no other prefix does, even if its route is younger
        (
            rules(&["{path: {type: RegularExpression, value: /p.*}}".to_owned(), path("/a")]),
            rules(&[path("/")]),
            vec![
                "GA043 spec.rules[0]: no request reaches the rule: a regular expression comes after all prefixes, and a rule \
                 without conditions takes what is left, such as rule 0 of HTTPRoute/default/young (write the paths as `Exact` or \
                 `PathPrefix`)"
                    .to_owned(),
            ],
        ),
        (
            rules(&["{path: {type: RegularExpression, value: /p.*}}".to_owned()]),
            rules(&["{path: {value: /}, method: GET}".to_owned()]),
            vec![],
        ),
        // order within a route is written down
        (
            rules(&[header("one", "a"), header("two", "a")]),
            rules(&[path("/b")]),
            vec![],
        ),
    ] {
        let text = [gateway, &route("young", &young), &route("old", &old)].join("\n");
        let mut found = found(&text);
        found.retain(|one| !one.starts_with("GA072"));
        assert_eq!(found, expected, "{old}\n{young}");
    }
}

#[test]
fn what_never_serves_is_reported() {
    let text = "\
{apiVersion: GATEWAY-API, kind: Gateway, metadata: {name: a}, spec: {gatewayClassName: strait, listeners: [{name: web, protocol: HTTP, port: 80}, {name: tls, protocol: HTTPS, port: 443, hostname: a.test}]}}
{apiVersion: GATEWAY-API, kind: Gateway, metadata: {name: b}, spec: {gatewayClassName: strait, addresses: [{type: Hostname, value: a.test}], listeners: [{name: web, protocol: HTTP, port: 80}]}}
{apiVersion: GATEWAY-API, kind: HTTPRoute, metadata: {name: r}, spec: {parentRefs: [{name: a, sectionName: web}], rules: [{matches: [{path: {value: /a}}]}, {matches: [{path: {value: /b}}], backendRefs: [{name: s, port: 80, weight: 0}], filters: [{type: RequestMirror, requestMirror: {backendRef: {name: none, port: 80}}}]}]}}
{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}";
    assert_eq!(
        found(text),
        [
            "GA020 spec.listeners[tls]: listener `tls` is not opened: it has no certificate (write `tls.certificateRefs`)",
            "GA020 spec.addresses: the address `Hostname a.test` is not supported: no listener is opened (write an address of type \
             IPAddress, or none)",
            "GA071 spec.rules[1].filters: Service default/none does not exist: requests are served, and no copies are sent (write a \
             Service or ServiceImport that exists, and one of its ports)",
            "GA072 spec.rules[0]: the rule has no backends: requests get a response with status 500 (write a backend with a weight \
             of at least 1, or a filter RequestRedirect)",
            "GA072 spec.rules[1]: all backends have the weight 0: requests get a response with status 500 (write a backend with a \
             weight of at least 1, or a filter RequestRedirect)",
        ]
    );
}

#[test]
fn routes_beyond_the_limit_are_not_compared() {
    let listeners = (0..64).map(|number| {
        format!("{{name: l{number}, protocol: HTTP, port: 80, hostname: '*.l{number}.test'}}")
    });
    let listeners = listeners.collect::<Vec<_>>().join(", ");
    let gateway = format!(
        "{{apiVersion: GATEWAY-API, kind: Gateway, metadata: {{name: a}}, spec: {{gatewayClassName: strait, listeners: [{listeners}]}}}}"
    );
    let matches = (0..64).map(|number| format!("{{path: {{value: /{number}}}}}"));
    let matches = matches.collect::<Vec<_>>().join(", ");
    // every listener has the matches of other routes than the next one, so that nothing is shared
    let routes = (0..40).map(|number| {
        let parents = (0..=number).map(|section| format!("{{name: a, sectionName: l{section}}}"));
        let parents = parents.take(32).collect::<Vec<_>>().join(", ");
        format!(
            "{{apiVersion: GATEWAY-API, kind: HTTPRoute, metadata: {{name: r{number:03}}}, spec: {{parentRefs: [{parents}], rules: [\
             {{matches: [{matches}]}}, {{matches: [{matches}]}}]}}}}"
        )
    });
    let text = std::iter::once(gateway).chain(routes).collect::<Vec<_>>();
    let found = found(&text.join("\n"));
    let of_matches = found.iter().filter(|one| one.starts_with("GA043"));
    // one of each of the first 32, which have a listener without older ones, and two of each of the next 7
    assert_eq!(of_matches.count(), 46);
}
