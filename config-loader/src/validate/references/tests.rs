//! Tests of checks across objects.

use crate::diagnostic::Diagnostics;
use crate::load_bytes;

mod effect;

/// Services, Gateways and rules that the cases refer to.
const WORLD: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: reviews, namespace: shop}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: ratings, namespace: shop}
spec: {ports: [{name: http, port: 80}, {name: grpc, port: 81}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: reviews-1, namespace: shop, labels: {kubernetes.io/service-name: reviews, version: v1}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: [{addresses: [10.0.0.1]}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: external, namespace: shop}
spec:
  hosts: ["*.partner.com", "api.partner.com"]
  ports: [{number: 443, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints: [{address: 1.2.3.4, labels: {zone: a}}]
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: reviews, namespace: shop}
spec:
  host: reviews
  subsets: [{name: v1, labels: {version: v1}}]
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: infra, creationTimestamp: "2024-01-01T00:00:00Z"}
spec:
  selector: {app: edge}
  servers:
  - port: {number: 80, name: http, protocol: HTTP}
    hosts: ["shop/*.example.com", "*/open.com"]
---
"#;

/// Checks the diagnostics that one more document adds, except those about single objects.
fn check(text: &str, wanted: &[&str]) {
    let mut found = Diagnostics::default();
    load_bytes("a.yaml", format!("{WORLD}{text}").as_bytes(), &mut found);
    let errors: Vec<_> = found
        .iter()
        .filter(|found| found.severity == crate::Severity::Error)
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    let first = u32::try_from(WORLD.lines().count()).expect("a short text");
    let mut lines: Vec<String> = Vec::new();
    for found in found
        .into_sorted()
        .iter()
        .filter(|found| found.code.0.starts_with("X2"))
    {
        let help = found
            .help
            .as_ref()
            .map_or_else(String::new, |help| format!(" ({help})"));
        let line = i64::from(found.location.line) - i64::from(first);
        lines.push(format!(
            "{} {line} {}: {}{help}",
            found.code, found.field, found.message
        ));
    }
    assert_eq!(lines, wanted, "{text}");
}

fn virtual_service(spec: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: a, namespace: shop}}\nspec:\n{spec}"
    )
}

/// Returns a VirtualService with one route to a destination.
fn route(destination: &str) -> String {
    virtual_service(&format!(
        "  hosts: [a.com]\n  http:\n  - route:\n    - destination: {destination}\n"
    ))
}

#[test]
fn routes_lead_to_services_that_are_known() {
    check(&route("{host: reviews}"), &[]);
    check(&route("{host: Reviews.shop.svc.cluster.local}"), &[]);
    check(&route("{host: api.partner.com}"), &[]);
    check(&route("{host: any.partner.com}"), &[]);
    check(
        &route("{host: reveiws}"),
        &[
            "X275 8 spec.http[0].route[0].destination.host: `reveiws` is not a known service; requests will get 503 NC \
           (did you mean `reviews.shop.svc.cluster.local`?)",
        ],
    );
    check(
        &route("{host: reviews.shop}"),
        &[
            "X275 8 spec.http[0].route[0].destination.host: `reviews.shop` is not a known service; requests will get \
           503 NC (did you mean `reviews.shop.svc.cluster.local`?)",
        ],
    );
    check(
        &route("{host: other}"),
        &[
            "X275 8 spec.http[0].route[0].destination.host: `other` is not a known service; requests will get 503 NC \
           (the short name means `other.shop.svc.cluster.local`)",
        ],
    );
}

#[test]
fn routes_lead_to_subsets_that_are_defined() {
    check(&route("{host: reviews, subset: v1}"), &[]);
    check(
        &route("{host: reviews, subset: v2}"),
        &[
            "X276 8 spec.http[0].route[0].destination.subset: subset `v2` of reviews does not exist; requests will get \
           503 NC (did you mean `v1`?)",
        ],
    );
    check(
        &route("{host: api.partner.com, subset: v1}"),
        &[
            "X276 8 spec.http[0].route[0].destination.subset: subset `v1` of api.partner.com does not exist; requests \
           will get 503 NC (define it in a DestinationRule for `api.partner.com`)",
        ],
    );
}

#[test]
fn subsets_of_the_cluster_are_those_of_clusters_together_unless_a_rule_names_these() {
    let import = "apiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {name: reviews, namespace: shop}\n\
                  spec: {ports: [{name: http, port: 80, endpoints: [{clusterKey: a/b/c/d, \
                  target: {host: gw, ip: 10.0.0.2, port: 80, path: ''}}]}]}\n---\n";
    let together = "reviews.shop.svc.clusterset.local";
    let named = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: together, namespace: shop}\n\
                 spec: {host: reviews.shop.svc.clusterset.local, subsets: [{name: v3, labels: {version: v1}}]}\n---\n";
    let asked = |subset: &str| route(&format!("{{host: {together}, subset: {subset}}}"));
    let finds = |text: &str| {
        let mut found = Diagnostics::default();
        load_bytes("a.yaml", format!("{WORLD}{text}").as_bytes(), &mut found);
        found.iter().any(|one| one.code.0 == "X276")
    };
    assert!(!finds(&format!("{import}{}", asked("v1"))));
    assert!(finds(&format!("{import}{}", asked("v2"))));
    assert!(finds(&format!("{import}{named}{}", asked("v1"))));
    assert!(!finds(&format!("{import}{named}{}", asked("v3"))));
}

#[test]
fn routes_lead_to_ports_that_are_there() {
    check(&route("{host: ratings, port: {number: 81}}"), &[]);
    check(
        &route("{host: ratings, port: {number: 82}}"),
        &[
            "X277 8 spec.http[0].route[0].destination.port: ratings has no port `82` (its ports are 80 http, 81 grpc)",
        ],
    );
    check(
        &route("{host: ratings}"),
        &[
            "X277 8 spec.http[0].route[0].destination.port: `ratings` has several ports, and the route names none (write \
           port.number; its ports are 80 http, 81 grpc)",
        ],
    );
}

/// Returns a VirtualService with these hosts and gateways.
fn hosts(hosts: &str, gateways: &str) -> String {
    virtual_service(&format!(
        "  hosts: {hosts}\n  gateways: {gateways}\n  http:\n  - route:\n    - destination: {{host: reviews}}\n"
    ))
}

#[test]
fn gateways_exist_and_serve_the_hosts() {
    check(&hosts("[a.example.com, open.com]", "[infra/edge]"), &[]);
    check(&hosts("[\"*\"]", "[infra/edge]"), &[]);
    check(&hosts("[other.com]", "[infra/edge, mesh]"), &[]);
    check(
        &hosts("[a.example.com, other.com]", "[infra/edge]"),
        &[
            "X279 5 spec.hosts[1]: host `other.com` is not served by gateway infra/edge (the gateway serves \
           `*.example.com`, `open.com`)",
        ],
    );
    check(
        &hosts("[a.example.com]", "[edge]"),
        &[
            "X278 6 spec.gateways[0]: gateway `shop/edge` does not exist (did you mean `infra/edge`?)",
        ],
    );
    check(
        &hosts("[a.example.com]", "[infra/egde]"),
        &[
            "X278 6 spec.gateways[0]: gateway `infra/egde` does not exist (did you mean `infra/edge`?)",
        ],
    );
    let elsewhere =
        hosts("[a.example.com]", "[infra/edge]").replace("namespace: shop", "namespace: other");
    check(
        &elsewhere.replace("host: reviews", "host: reviews.shop.svc.cluster.local"),
        &[
            "X279 5 spec.hosts[0]: host `a.example.com` is not served by gateway infra/edge (the gateway serves \
           `*.example.com`, `open.com`)",
        ],
    );
}

#[test]
fn delegates_are_usable() {
    let root = virtual_service("  hosts: [a.com]\n  http:\n  - delegate: {name: b}\n");
    let target = |spec: &str| {
        format!(
            "{root}---\n{}",
            virtual_service(spec).replace("name: a", "name: b")
        )
    };
    let rule = "  http:\n  - route:\n    - destination: {host: reviews}\n";
    check(&target(rule), &[]);
    let unusable = |why: &str| {
        format!(
            "X280 7 spec.http[0].delegate: delegate `shop/b` is not usable: {why} (the rule is skipped: name a \
             VirtualService without hosts that is exported here)"
        )
    };
    check(&root, &[&unusable("there is no such VirtualService")]);
    check(
        &target(&format!("  hosts: [b.com]\n{rule}")),
        &[&unusable("it has hosts of its own")],
    );
    check(
        &target(&format!("  exportTo: [other]\n{rule}")),
        &[&unusable("it is not exported to this namespace")],
    );
}

#[test]
fn a_host_has_one_owner_in_the_mesh() {
    let first = route("{host: reviews}");
    let second = first.replace("name: a", "name: b");
    check(
        &format!("{first}---\n{second}"),
        &[
            "X281 14 spec.hosts[0]: host `a.com` belongs to VirtualService/shop/a; this entry is not used in the mesh \
           (put the rules into that one, or name a gateway under `gateways`)",
        ],
    );
    check(
        &format!("{first}---\n{}", second.replace("a.com", "b.com")),
        &[],
    );
}

/// Returns a newer Gateway with one server.
fn gateway(selector: &str, server: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: late, namespace: infra, creationTimestamp: \
         \"2025-01-01T00:00:00Z\"}}\nspec:\n  selector: {selector}\n  servers:\n  - {server}\n"
    )
}

#[test]
fn servers_do_not_want_the_same_port() {
    check(
        &gateway(
            "{app: edge}",
            "{port: {number: 80, name: http2, protocol: HTTP2}, hosts: [\"*\"]}",
        ),
        &[],
    );
    let tcp = "{port: {number: 80, name: tcp, protocol: TCP}, hosts: [\"*\"]}";
    check(&gateway("{app: other}", tcp), &[]);
    let taken = "X282 7 spec.servers[0]: port `80` is taken by Gateway/infra/edge; this server is not used: it speaks \
                 TCP, and the port HTTP (give it another port, `bind` or hosts, or remove one of the two)";
    check(&gateway("{app: edge}", tcp), &[taken]);
    check(&gateway("{app: edge, zone: a}", tcp), &[taken]);
    let tls =
        "{port: {number: 443, name: NAME, protocol: TLS}, hosts: [HOST], tls: {mode: PASSTHROUGH}}";
    let server = |name: &str, host: &str| tls.replace("NAME", name).replace("HOST", host);
    let two = |host: &str| {
        gateway(
            "{app: edge}",
            &format!("{}\n  - {}", server("one", "a.com"), server("two", host)),
        )
    };
    check(&two("b.com"), &[]);
    check(
        &two("a.com"),
        &[
            "X282 8 spec.servers[1]: port `443` is taken by Gateway/infra/late; this server is not used: it has the host \
           a.com, too (give it another port, `bind` or hosts, or remove one of the two)",
        ],
    );
}

/// Returns a DestinationRule with one subset.
fn rule(name: &str, host: &str, labels: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: {name}, namespace: shop}}\nspec:\n  \
         host: {host}\n  subsets:\n  - {{name: some, labels: {labels}}}\n"
    )
}

#[test]
fn subsets_select_endpoints() {
    check(&rule("b", "api.partner.com", "{zone: a}"), &[]);
    check(
        &rule("b", "api.partner.com", "{topology.istio.io/cluster: c2}"),
        &[],
    );
    check(&rule("b", "ratings", "{version: v9}"), &[]);
    let empty = |host: &str, label: &str| {
        format!(
            "X283 7 spec.subsets[0].labels: subset `some` has no endpoints (no endpoint of {host} has the labels {label})"
        )
    };
    check(
        &rule("b", "api.partner.com", "{zone: b}"),
        &[&empty("api.partner.com", "zone=b")],
    );
    check(
        &rule("b", "reviews", "{version: v2}"),
        &[&empty("reviews.shop.svc.cluster.local", "version=v2")],
    );
}

#[test]
fn rules_for_many_hosts_are_not_hidden() {
    check(
        &rule("wide", "\"*.svc.cluster.local\"", "{}"),
        &[
            "X284 5 spec.host: wide is replaced by reviews for reviews.shop.svc.cluster.local; nothing is inherited \
             (repeat in reviews what is to hold for reviews.shop.svc.cluster.local, too)",
        ],
    );
    check(
        &rule("wide", "\"*.svc.cluster.local\"", "{}")
            .replace("namespace: shop", "namespace: other"),
        &[],
    );
}

/// Returns a DestinationRule in the namespace `shop`.
fn policies(spec: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: z, namespace: shop}}\nspec: {spec}\n"
    )
}

#[test]
fn the_only_endpoint_is_not_ejected() {
    let lone = "X285 4 spec.trafficPolicy.outlierDetection.maxEjectionPercent: with 1 endpoint nothing can be ejected \
        (write 100 to eject the last endpoint too, or remove outlierDetection)";
    let of_one = |outliers: &str| {
        policies(&format!(
            "{{host: '*.partner.com', trafficPolicy: {{outlierDetection: {outliers}}}}}"
        ))
    };
    check(&of_one("{consecutive5xxErrors: 3}"), &[lone]);
    check(&of_one("{maxEjectionPercent: 50}"), &[lone]);
    check(&of_one("{maxEjectionPercent: 100}"), &[]);
    check(
        &policies("{host: ratings, trafficPolicy: {outlierDetection: {}}}"),
        &[],
    );
}

/// Returns line and message of each diagnostic if the ejection limit also applies to the first ejection.
fn capped(text: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.yaml");
    std::fs::write(&path, text).unwrap();
    let options = crate::ReadOptions {
        first_ejection_is_capped: true,
        ..crate::ReadOptions::default()
    };
    let found = crate::load_files(
        &[path],
        crate::LoadOptions {
            read: options,
            ..crate::LoadOptions::default()
        },
    )
    .diagnostics;
    let found = found.iter().filter(|found| found.code.0 == "X285");
    found
        .map(|found| {
            let help = found.help.as_deref().unwrap_or_default();
            format!("{} {} ({help})", found.field, found.message)
        })
        .collect()
}

#[test]
fn under_a_cap_too_few_endpoints_are_never_ejected() {
    let entry = |count: usize| {
        let endpoint = |number: usize| {
            let version = if number == 0 { "v1" } else { "v2" };
            format!("{{address: 10.0.0.{number}, labels: {{version: {version}}}}}")
        };
        let endpoints: Vec<String> = (0..count).map(endpoint).collect();
        format!(
            "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: s}}\nspec: {{hosts: [s.com], \
             resolution: STATIC, ports: [{{number: 80, name: http, protocol: HTTP}}], endpoints: [{}]}}\n",
            endpoints.join(", ")
        )
    };
    let rule = |policy: &str| {
        let rule = policies(&format!("{{host: s.com, {policy}}}"));
        rule.replace("outliers", "outlierDetection")
    };
    let said = |count, policy: &str| capped(&format!("{}---\n{}", entry(count), rule(policy)));
    let of_rule = "spec.trafficPolicy.outlierDetection.maxEjectionPercent";
    let (base, third) = (
        "trafficPolicy: {outliers: {}}",
        "trafficPolicy: {outliers: {maxEjectionPercent: 34}}",
    );
    assert_eq!(
        said(9, base),
        [format!(
            "{of_rule} with 9 endpoints nothing can be ejected (write 12 or more, or leave out \
             --outlier-first-ejection=cap)"
        )]
    );
    assert!(said(10, base).is_empty());
    assert!(said(3, third).is_empty());
    assert_eq!(said(2, third).len(), 1);
    // without the cap one of several may be out
    check(&format!("{}---\n{}", entry(9), rule(base)), &[]);
    // a subset inherits it, and is smaller
    let subset = "subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]";
    assert_eq!(
        said(12, &format!("{base}, {subset}")),
        [format!(
            "{of_rule} with 1 endpoint of subset `v1` nothing can be ejected (write 100 to eject the last endpoint \
             too, or remove outlierDetection)"
        )]
    );
    let own = "subsets: [{name: v2, labels: {version: v2}, trafficPolicy: {outliers: {maxEjectionPercent: 5}}}]";
    let found = said(12, &format!("{base}, {own}"));
    assert!(found[0].starts_with(
        "spec.subsets[0].trafficPolicy.outlierDetection.maxEjectionPercent with 11 endpoints of subset `v2`"
    ));
    // how many addresses names have is unknown
    let names = entry(2)
        .replace("STATIC", "DNS")
        .replace("10.0.0.0", "a.com")
        .replace("10.0.0.1", "b.com");
    assert!(capped(&format!("{names}---\n{}", rule(base))).is_empty());
}

#[test]
fn a_hash_key_of_one_port_is_for_routes_that_name_it() {
    let hash = "{port: {number: 80}, loadBalancer: {consistentHash: {useSourceIp: true}}}";
    let of_port = policies(&format!(
        "{{host: ratings, trafficPolicy: {{portLevelSettings: [{hash}]}}}}"
    ));
    let general = policies(&format!(
        "{{host: ratings, trafficPolicy: {{loadBalancer: {{consistentHash: {{useSourceIp: true}}}}, \
         portLevelSettings: [{hash}]}}}}"
    ));
    let with = |rule: &str, destination: &str| format!("{rule}---\n{}", route(destination));
    let several = "X277 13 spec.http[0].route[0].destination.port: `ratings` has several ports, and the route names none \
        (write port.number; its ports are 80 http, 81 grpc)";
    let lost = "X286 4 spec.trafficPolicy.portLevelSettings[0].loadBalancer.consistentHash: hash key is not used by \
        routes without port (write it beside portLevelSettings, or write the port of the route)";
    check(&with(&of_port, "{host: ratings}"), &[lost, several]);
    check(&with(&of_port, "{host: ratings, port: {number: 80}}"), &[]);
    check(&with(&general, "{host: ratings}"), &[several]);
}

/// Returns the code and both locations of each diagnostic about merged VirtualServices.
fn merged(text: &str) -> Vec<String> {
    let mut found = Diagnostics::default();
    load_bytes("a.yaml", text.as_bytes(), &mut found);
    let found = found.into_sorted();
    let found = found
        .iter()
        .filter(|found| matches!(found.code.0, "X287" | "X288"));
    found
        .map(|found| {
            let other = &found.related[0].0;
            format!(
                "{} {}:{} {} <- {}:{}",
                found.code,
                found.location.file,
                found.location.line,
                found.field,
                other.file,
                other.line
            )
        })
        .collect()
}

/// Returns VirtualServices of decreasing age, one per line from line 2 on.
fn ages(specs: &[&str]) -> String {
    let mut text = String::new();
    for (age, spec) in specs.iter().enumerate() {
        text.push_str(&format!(
            "---\n{{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {{name: v{age}, \
             creationTimestamp: '2024-01-0{}T00:00:00Z'}}, spec: {{{spec}}}}}\n",
            age + 1
        ));
    }
    text
}

#[test]
fn delegate_rule_that_fits_no_match_of_its_root_is_reported_with_both_places() {
    let root = |matches: &str| {
        format!("hosts: [a.com], gateways: [g], http: [{{{matches}delegate: {{name: v1}}}}]")
    };
    let target =
        |matches: &str| format!("http: [{{{matches}route: [{{destination: {{host: a}}}}]}}]");
    let blocks = |blocks: &str| format!("match: [{blocks}], ");
    for (outer, inner, expected) in [
        ("{uri: {prefix: /a}}", "{uri: {prefix: /a/b}}", None),
        ("{uri: {prefix: /a}}", "{headers: {h: {}}}", None),
        (
            "{uri: {prefix: /a}}, {uri: {prefix: /c}}",
            "{uri: {prefix: /c}}",
            None,
        ),
        ("{uri: {prefix: /a}}", "{uri: {prefix: /c}}", Some("uri")),
        ("{uri: {exact: /a}}", "{uri: {prefix: /a}}", Some("uri")),
        ("{uri: {regex: /a.*}}", "{uri: {exact: /a}}", Some("uri")),
        (
            "{method: {exact: GET}}",
            "{method: {exact: PUT}}",
            Some("method"),
        ),
        (
            "{headers: {h: {exact: a}}}",
            "{headers: {h: {exact: b}}}",
            Some("headers"),
        ),
        (
            "{withoutHeaders: {h: {exact: a}}}",
            "{withoutHeaders: {h: {exact: b}}}",
            Some("withoutHeaders"),
        ),
        (
            "{queryParams: {h: {exact: a}}}",
            "{queryParams: {h: {exact: b}}}",
            Some("queryParams"),
        ),
        ("{port: 80}", "{port: 81}", Some("port")),
        (
            "{sourceLabels: {a: b}}",
            "{sourceLabels: {a: c}}",
            Some("sourceLabels"),
        ),
        (
            "{sourceNamespace: ns}",
            "{uri: {prefix: /a}}",
            Some("sourceNamespace"),
        ),
        ("{uri: {prefix: /a}}", "{sourceNamespace: ns}", None),
        ("{gateways: [g]}", "{gateways: [h]}", Some("gateways")),
        (
            "{uri: {prefix: /a}, ignoreUriCase: true}",
            "{uri: {prefix: /a}}",
            Some("ignoreUriCase"),
        ),
        (
            "{uri: {prefix: /a}, ignoreUriCase: true}",
            "{headers: {h: {}}}",
            Some("ignoreUriCase"),
        ),
        (
            "{uri: {prefix: /a}}",
            "{uri: {prefix: /a/b}}, {uri: {prefix: /c}}",
            Some("uri"),
        ),
    ] {
        let text = ages(&[&root(&blocks(outer)), &target(&blocks(inner))]);
        let found = merged(&text);
        match expected {
            None => assert!(found.is_empty(), "{outer} {inner} {found:?}"),
            Some(field) => {
                let [found] = &found[..] else {
                    panic!("{outer} {inner} {found:?}");
                };
                assert!(
                    found.starts_with("X287 a.yaml:4 spec.http[0].match["),
                    "{found}"
                );
                assert!(
                    found.ends_with(&format!("].{field} <- a.yaml:2")),
                    "{found}"
                );
            }
        }
    }
}

#[test]
fn younger_virtual_service_that_repeats_an_older_one_is_reported_with_both_places() {
    let vs = |gateway: &str, host: &str, rules: &str| {
        format!("hosts: [{host}], gateways: [{gateway}], http: [{rules}]")
    };
    let rule = |path: &str| format!("{{match: [{{uri: {{{path}}}}}], redirect: {{uri: /}}}}");
    let all = "{redirect: {uri: /}}";
    for (old, young, expected) in [
        (rule("prefix: /x"), rule("prefix: /y"), None),
        (rule("prefix: /x"), rule("prefix: /x"), Some(".match[0]")),
        (rule("exact: /x"), rule("exact: /x"), Some(".match[0]")),
        (rule("prefix: /x"), rule("exact: /x/y"), Some(".match[0]")),
        (rule("prefix: /x/y"), rule("prefix: /x"), None),
        // a catch-all rule is last, wherever it was written
        (all.to_owned(), rule("prefix: /x"), None),
        (rule("prefix: /"), rule("prefix: /x"), None),
        (all.to_owned(), all.to_owned(), Some("")),
        (rule("prefix: /"), all.to_owned(), Some("")),
        (all.to_owned(), rule("prefix: /"), Some(".match[0]")),
        (rule("prefix: /x"), all.to_owned(), None),
    ] {
        for (gateway, host, shared) in [
            ("g", "a.com", true),
            ("h", "a.com", false),
            ("g", "b.com", false),
        ] {
            let text = ages(&[&vs("g", "a.com", &old), &vs(gateway, host, &young)]);
            let wanted: Vec<String> = expected
                .filter(|_| shared)
                .map(|at| format!("X288 a.yaml:4 spec.http[0]{at} <- a.yaml:2"))
                .into_iter()
                .collect();
            assert_eq!(merged(&text), wanted, "{old} {young}");
        }
    }
}

/// Returns codes and fields of the diagnostics across objects, each object written as `Kind namespace/name spec`.
fn codes(objects: &[&str]) -> Vec<String> {
    let mut text = String::new();
    for (number, object) in (1_u16..).zip(objects) {
        let mut words = object.splitn(3, ' ');
        let mut word = || words.next().expect("kind, name and spec");
        let (kind, name, spec) = (word(), word(), word());
        let (namespace, name) = name.split_once('/').expect("namespace and name");
        let version = match kind {
            "Service" => "v1",
            "GlobalTrafficPolicy" | "ServiceImport" => "flomesh.io/v1alpha1",
            _ => "networking.istio.io/v1",
        };
        text += &format!(
            "---\n{{apiVersion: {version}, kind: {kind}, metadata: {{name: {name}, namespace: {namespace}, \
             creationTimestamp: '{}-01-01T00:00:00Z'}}, spec: {spec}}}\n",
            2000 + number
        );
    }
    let mut found = Diagnostics::default();
    load_bytes("a.yaml", text.as_bytes(), &mut found);
    let found = found.into_sorted().into_iter();
    let found = found.filter(|found| found.code.0.starts_with('X') && found.code.0 != "X275");
    found
        .map(|found| format!("{} {}", found.code, found.field))
        .collect()
}

#[test]
fn endless_aliases_are_found() {
    let alias = |name: &str, of: &str| {
        format!("Service ns/{name} {{type: ExternalName, externalName: {of}.ns.svc.cluster.local}}")
    };
    let (a, b, c) = (alias("a", "b"), alias("b", "a"), alias("c", "web"));
    let web = "Service ns/web {ports: [{name: http, port: 80}]}";
    assert_eq!(
        codes(&[&a, &b]),
        ["X327 spec.externalName", "X327 spec.externalName"]
    );
    assert_eq!(codes(&[&c, web]), [""; 0]);
    let to_c = "VirtualService ns/r {hosts: [a.com], http: [{route: [{destination: {host: c, port: {number: 81}}}]}]}";
    assert_eq!(
        codes(&[&c, web, to_c]),
        ["X277 spec.http[0].route[0].destination.port"]
    );
}

#[test]
fn service_entries_of_one_host_agree() {
    let entry = |name: &str, port: u16, more: &str| {
        format!(
            "ServiceEntry ns/{name} {{hosts: [x.test], ports: [{{number: {port}, name: http, protocol: HTTP}}], resolution: DNS{more}}}"
        )
    };
    let (one, two) = (entry("one", 80, ""), entry("two", 81, ""));
    assert_eq!(codes(&[&one, &two]), [""; 0]);
    let two = entry("two", 81, ", exportTo: [.]");
    assert_eq!(codes(&[&one, &two]), ["X320 spec.exportTo"]);
    let two = entry("two", 81, ", addresses: [10.0.0.1]");
    assert_eq!(codes(&[&one, &two]), ["X320 spec.addresses"]);
    let route = "VirtualService ns/r {hosts: [a.com], http: [{route: [{destination: {host: x.test, port: {number: 81}}}]}]}";
    assert_eq!(codes(&[&one, &entry("two", 81, ""), route]), [""; 0]);
}

#[test]
fn objects_without_effect_are_found() {
    let web = "Service ns/web {ports: [{name: http, port: 80}]}";
    let lent = "VirtualService ns/lent {http: [{directResponse: {status: 200}}]}";
    assert_eq!(codes(&[lent]), ["X323 spec.hosts"]);
    let root = "VirtualService ns/root {hosts: [a.com], http: [{delegate: {name: lent}}]}";
    assert_eq!(codes(&[lent, root]), [""; 0]);
    let rule = |name: &str, rest: &str| format!("DestinationRule ns/{name} {{host: web, {rest}}}");
    let policy = "trafficPolicy: {loadBalancer: {simple: RANDOM}}";
    let (first, second) = (rule("a", policy), rule("b", policy));
    assert_eq!(codes(&[web, &first, &second]), ["X324 spec.trafficPolicy"]);
    let of_others = second.replace("{host", "{exportTo: [.], host");
    assert_eq!(codes(&[web, &first, &of_others]), [""; 0]);
    let subsets = "subsets: [{name: v1}, {name: v2}]";
    let (first, second) = (rule("a", "subsets: [{name: v2}]"), rule("b", subsets));
    assert_eq!(
        codes(&[web, &first, &second]),
        ["X324 spec.subsets[1].name"]
    );
    let wide = |host: &str| format!("DestinationRule ns/w {{host: '{host}', {policy}}}");
    assert_eq!(codes(&[web, &wide("*.ns.svc.cluster.local")]), [""; 0]);
    assert_eq!(codes(&[web, &wide("*.other.test")]), ["X316 spec.host"]);
}

#[test]
fn each_gateway_of_a_list_serves_a_host() {
    let gateway = |name: &str, host: &str| {
        format!(
            "Gateway ns/{name} {{servers: [{{port: {{number: 80, name: http, protocol: HTTP}}, hosts: ['{host}']}}]}}"
        )
    };
    let route = "VirtualService ns/r {hosts: [a.com], gateways: [one, two], http: [{directResponse: {status: 200}}]}";
    assert_eq!(
        codes(&[&gateway("one", "*"), &gateway("two", "b.com"), route]),
        ["X325 spec.gateways[1]"]
    );
    assert_eq!(
        codes(&[&gateway("one", "*.com"), &gateway("two", "a.com"), route]),
        [""; 0]
    );
}

#[test]
fn private_virtual_service_comes_before_public_ones() {
    let route = |name: &str, more: &str| {
        format!(
            "VirtualService ns/{name} {{hosts: [a.com]{more}, http: [{{directResponse: {{status: 200}}}}]}}"
        )
    };
    let (public, private) = (route("public", ""), route("private", ", exportTo: [.]"));
    assert_eq!(codes(&[&public, &private]), [""; 0]);
    assert_eq!(
        codes(&[&public, &route("other", "")]),
        ["X281 spec.hosts[0]"]
    );
}

#[test]
fn service_of_too_many_clusters_is_found() {
    let import = |clusters: usize| {
        let endpoints = (0..clusters).map(|number| {
            format!("{{clusterKey: r/z/g/c{number}, target: {{host: '', ip: 10.0.0.1, port: 80, path: ''}}}}")
        });
        let endpoints: Vec<String> = endpoints.collect();
        format!(
            "ServiceImport ns/web {{ports: [{{name: http, port: 80, endpoints: [{}]}}]}}",
            endpoints.join(", ")
        )
    };
    let policy = "GlobalTrafficPolicy ns/web {lbType: ActiveActive}";
    assert_eq!(codes(&[&import(64), policy]), [""; 0]);
    assert_eq!(codes(&[&import(65), policy]), ["X321 spec.targets"]);
}
