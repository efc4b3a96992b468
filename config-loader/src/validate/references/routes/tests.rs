//! Visibility of services.

use crate::catalog::{DefaultDomain, Naming};
use crate::diagnostic::Diagnostics;
use crate::diagnostic::codes::references::{X275, X276, X316};
use crate::validate::references::check;
use crate::{Fleet, ReadOptions, load_bytes};

/// Returns the diagnostics about a route in namespace `shop` to `web`, given some objects in that namespace.
fn found(proxy: Option<&str>, gateways: &str, objects: &[String]) -> Vec<String> {
    let route = format!(
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: a, namespace: shop}}\nspec:\n  \
         hosts: [a.com]\n  gateways: {gateways}\n  \
         http: [{{route: [{{destination: {{host: web.shop.svc.cluster.local}}}}]}}]\n"
    );
    let text = format!("{route}---\n{}", objects.join("---\n"));
    let mut errors = Diagnostics::default();
    let set = load_bytes("a.yaml", text.as_bytes(), &mut errors);
    assert!(!errors.has_errors(), "{text}");
    let fleet = Fleet {
        namespace: proxy.map(Into::into),
        ..Fleet::default()
    };
    let found = check(&set, ReadOptions::default(), &fleet);
    let found = found.into_iter().filter(|found| found.code == X275);
    let told = found.map(|found| format!("{} ({})", found.message, found.help.unwrap_or_default()));
    told.collect()
}

/// Returns a Service with this annotation.
fn service(export_to: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\n  namespace: shop\n  \
         annotations: {{networking.istio.io/exportTo: '{export_to}'}}\nspec: {{ports: [{{port: 80}}]}}\n"
    )
}

/// Returns a ServiceEntry for a host with this `exportTo`.
fn entry(host: &str, export_to: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: web, namespace: shop}}\nspec:\n  \
         hosts: ['{host}']\n  exportTo: [{export_to}]\n  resolution: STATIC\n  \
         ports: [{{number: 80, name: http, protocol: HTTP}}]\n"
    )
}

const HOST: &str = "web.shop.svc.cluster.local";

#[test]
fn route_of_a_gateway_leads_to_what_its_namespace_sees() {
    let edge = |objects: &[String]| found(Some("edge"), "[edge/gw]", objects);
    for seen in ["", "*", "edge", "other, edge", "., *, ~"] {
        assert!(edge(&[service(seen)]).is_empty(), "{seen:?}");
    }
    for hidden in [".", "other", "~", "edge, ~", ".,shop"] {
        assert_eq!(
            edge(&[service(hidden)]),
            [
                "`web.shop.svc.cluster.local` is not exported to namespace `edge`; requests will get 503 NC \
                 (add `edge` to the annotation networking.istio.io/exportTo of Service/shop/web)"
            ],
            "{hidden:?}"
        );
    }
    for seen in ["'*'", "edge", "'.', edge"] {
        assert!(edge(&[entry(HOST, seen)]).is_empty(), "{seen}");
    }
    for hidden in ["'.'", "other", "'~'"] {
        let told = edge(&[entry(HOST, hidden)]);
        assert!(
            told[0].ends_with("(add `edge` to exportTo of ServiceEntry/shop/web)"),
            "{told:?}"
        );
    }
    // One that is seen is enough, a wildcard included.
    assert!(edge(&[service("."), entry(HOST, "'*'")]).is_empty());
    assert!(edge(&[service("."), entry("*.shop.svc.cluster.local", "edge")]).is_empty());
    assert_eq!(edge(&[service("."), entry("*.com", "edge")]).len(), 1);
}

#[test]
fn route_of_the_mesh_leads_to_what_its_own_namespace_sees() {
    for (proxy, gateways) in [(Some("edge"), "[mesh]"), (None, "[edge/gw]")] {
        assert!(found(proxy, gateways, &[service(".")]).is_empty());
        assert!(found(proxy, gateways, &[entry(HOST, "shop")]).is_empty());
        assert_eq!(found(proxy, gateways, &[service("other")]).len(), 1);
    }
}

/// Returns the codes of the diagnostics about a route in namespace `shop` to this destination, given these objects.
fn codes_of(destination: &str, naming: &Naming, objects: &[String]) -> Vec<&'static str> {
    let route = format!(
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: a, namespace: shop}}\nspec:\n  \
         hosts: [a.com]\n  gateways: [mesh]\n  http: [{{route: [{{destination: {destination}}}]}}]\n"
    );
    let text = format!("{route}---\n{}", objects.join("---\n"));
    let mut errors = Diagnostics::default();
    let set = load_bytes("a.yaml", text.as_bytes(), &mut errors);
    assert!(!errors.has_errors(), "{text}");
    let fleet = Fleet {
        naming: naming.clone(),
        ..Fleet::default()
    };
    let found = check(&set, ReadOptions::default(), &fleet);
    let found = found.iter().filter(|found| found.code != X316);
    found.map(|found| found.code.0).collect()
}

#[test]
fn short_destination_is_expanded_with_the_domain_of_the_proxy() {
    let other = Naming {
        domain: "mesh.example".into(),
        ..Naming::default()
    };
    let service = [service("*")];
    let codes = |host: &str, naming| codes_of(&format!("{{host: {host}}}"), naming, &service);
    for host in ["web", "web.shop.svc.mesh.example"] {
        assert!(codes(host, &other).is_empty(), "{host}");
    }
    assert_eq!(codes(HOST, &other), ["X275"]);
    assert_eq!(
        codes("web.shop.svc.mesh.example", &Naming::default()),
        ["X275"]
    );
}

#[test]
fn short_destination_can_be_the_host_of_the_cluster_set() {
    let of_cluster_set = Naming {
        default_domain: DefaultDomain::ClusterSet,
        ..Naming::default()
    };
    let import = "apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\n\
                  metadata: {name: web, namespace: ns1}\nspec: {types: [CrossCluster]}\n"
        .to_owned();
    let codes = |naming| codes_of("{host: web.ns1}", naming, std::slice::from_ref(&import));
    assert!(codes(&of_cluster_set).is_empty());
    assert_eq!(codes(&Naming::default()), ["X275"]);
}

#[test]
fn short_destination_is_never_the_host_of_a_service_entry() {
    let entry = [entry("backend", "'*'")];
    let codes = |host: &str| codes_of(&format!("{{host: {host}}}"), &Naming::default(), &entry);
    assert_eq!(codes("backend"), ["X275"]);
    assert_eq!(
        codes("backend."),
        ["X275"],
        "a label with a dot is not short"
    );
}

#[test]
fn longest_wildcard_describes_the_ports_of_a_destination() {
    let entry = |name: &str, host: &str, port: u16| {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: {name}, namespace: shop}}\nspec:\n  \
             hosts: ['{host}']\n  resolution: STATIC\n  endpoints: [{{address: 10.0.0.1}}]\n  \
             ports: [{{number: {port}, name: http, protocol: HTTP}}]\n"
        )
    };
    let entries = [
        entry("a", "*.example.com", 80),
        entry("b", "*.api.example.com", 81),
    ];
    for entries in [entries.clone(), [entries[1].clone(), entries[0].clone()]] {
        let codes = |port: u16| {
            let destination = format!("{{host: v1.api.example.com, port: {{number: {port}}}}}");
            codes_of(&destination, &Naming::default(), &entries)
        };
        assert!(codes(81).is_empty());
        assert_eq!(codes(80), ["X277"]);
    }
}

/// Whether a gateway's route to subset `v1` of `web` is reported, given DestinationRules with a namespace, host and
/// `exportTo` each.
fn misses_subset(proxy: Option<&str>, rules: &[(&str, &str, &str)]) -> bool {
    let mut text = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a, namespace: shop}\n\
                    spec:\n  hosts: [a.com]\n  gateways: [edge/gw]\n  \
                    http: [{route: [{destination: {host: web.shop.svc.cluster.local, subset: v1}}]}]\n---\n"
        .to_owned();
    text.push_str(&service("*"));
    for (number, (namespace, host, export_to)) in rules.iter().enumerate() {
        // a host after `-` has a rule without subsets
        let subsets = match host.strip_prefix('-') {
            None => ", subsets: [{name: v1, labels: {version: v1}}]",
            Some(_) => ", trafficPolicy: {loadBalancer: {simple: RANDOM}}",
        };
        text.push_str(&format!(
            "---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\n\
             metadata: {{name: r{number}, namespace: {namespace}}}\n\
             spec: {{host: '{}', exportTo: ['{export_to}']{subsets}}}\n",
            host.trim_start_matches('-')
        ));
    }
    let mut errors = Diagnostics::default();
    let set = load_bytes("a.yaml", text.as_bytes(), &mut errors);
    assert!(!errors.has_errors(), "{text}");
    let fleet = Fleet {
        namespace: proxy.map(Into::into),
        ..Fleet::default()
    };
    let found = check(&set, ReadOptions::default(), &fleet);
    found.iter().any(|found| found.code == X276)
}

#[test]
fn subset_of_a_rule_that_does_not_apply_is_reported() {
    let edge = Some("edge");
    for (proxy, rules, is_missing) in [
        (None, &[("shop", HOST, "*")][..], false),
        // a less specific rule adds nothing
        (
            None,
            &[("shop", "*.local", "*"), ("shop", "-web", "*")],
            true,
        ),
        (
            None,
            &[("shop", "*.local", "*"), ("shop", "-web", "x")],
            false,
        ),
        // nor does the namespace of the service where that of the client has a rule
        (
            edge,
            &[("shop", HOST, "*"), ("edge", "-*.local", "*")],
            true,
        ),
        (
            None,
            &[("shop", HOST, "*"), ("edge", "-*.local", "*")],
            false,
        ),
        // rules count that the client sees, of its namespace, that of the service, and the root namespace
        (edge, &[("shop", HOST, "shop")], true),
        (None, &[("shop", HOST, "shop")], false),
        (edge, &[("other", HOST, "*")], true),
        (None, &[("other", HOST, "*")], false),
        (edge, &[("istio-system", HOST, "*")], false),
    ] {
        assert_eq!(
            misses_subset(proxy, rules),
            is_missing,
            "{proxy:?} {rules:?}"
        );
    }
}
