//! Tests of host precedence, and that an incrementally updated index equals a new one.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::diagnostic::Diagnostics;
use crate::load_bytes;

fn set(documents: &[String]) -> ResourceSet {
    let mut found = Diagnostics::default();
    let set = load_bytes("a.yaml", documents.join("---\n").as_bytes(), &mut found);
    assert!(!found.has_errors(), "{documents:?}");
    set
}

fn services(documents: &[String]) -> Services {
    Services::new(&set(documents), &Arc::from(hostname_domain()))
}

fn hostname_domain() -> &'static str {
    crate::catalog::hostname::DOMAIN
}

/// Writes a ServiceEntry `NAMESPACE/NAME` with this age for a host.
fn entry(id: &str, age: u8, host: &str, export_to: &str) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\n\
         metadata: {{name: {name}, namespace: {namespace}, creationTimestamp: '20{age:02}-01-01T00:00:00Z'}}\n\
         spec:\n  hosts: ['{host}']\n  exportTo: ['{export_to}']\n  resolution: STATIC\n  \
         ports: [{{number: 80{age:02}, name: http, protocol: HTTP}}]\n"
    )
}

fn service(id: &str, export_to: &str) -> String {
    let (namespace, name) = id.split_once('/').unwrap();
    format!(
        "apiVersion: v1\nkind: Service\nmetadata:\n  name: {name}\n  namespace: {namespace}\n  \
         annotations: {{networking.istio.io/exportTo: '{export_to}'}}\nspec: {{ports: [{{port: 80}}]}}\n"
    )
}

/// Formats the view of a host as text.
fn text(seen: Option<Seen<'_>>) -> String {
    let names = |sources: &[&Source]| {
        let ids = sources.iter().map(|source| source.id().to_string());
        ids.collect::<Vec<_>>().join(" ")
    };
    match seen {
        None => "unknown".to_owned(),
        Some(Seen::Hidden(by)) => format!("hidden by {by}"),
        Some(seen @ Seen::Cluster(_)) => format!("cluster {}", names(seen.sources())),
        Some(seen @ Seen::Outside(_)) => format!("outside {}", names(seen.sources())),
    }
}

#[test]
fn service_of_a_cluster_then_own_namespace_then_age_decides() {
    let host = "web.shop.svc.cluster.local";
    let services = services(&[
        service("shop/web", "."),
        entry("a/old", 1, host, "*"),
        entry("b/young", 3, host, "*"),
        entry("b/younger", 4, host, "*"),
        entry("c/private", 2, "*.example.com", "."),
        entry("d/wide", 5, "*.com", "*"),
    ]);
    for (host, namespace, expected) in [
        (host, "shop", "cluster Service/shop/web"),
        (host, "other", "outside ServiceEntry/a/old"),
        (
            host,
            "b",
            "outside ServiceEntry/b/young ServiceEntry/b/younger",
        ),
        ("x.example.com", "c", "outside ServiceEntry/c/private"),
        // a wildcard that is not seen hides no wider one
        ("x.example.com", "d", "outside ServiceEntry/d/wide"),
        ("x.org", "d", "unknown"),
    ] {
        let seen = services.find_from(host, namespace);
        assert_eq!(text(seen), expected, "{host} from {namespace}");
    }
    let seen = services.find_from(host, "b").unwrap();
    // ports are joined, those of the oldest first
    assert_eq!(seen.ports(), [(8003, "http"), (8004, "http")]);
}

#[test]
fn host_that_is_not_exported_is_hidden() {
    let services = services(&[
        service("shop/web", "."),
        entry("c/private", 2, "api.example.com", "."),
    ]);
    let seen = services.find_from("web.shop.svc.cluster.local", "edge");
    assert_eq!(text(seen), "hidden by Service/shop/web");
    let seen = services.find_from("api.example.com", "edge");
    assert_eq!(text(seen), "hidden by ServiceEntry/c/private");
    assert!(services.has("api.example.com", "c"));
    assert!(!services.has("api.example.com", "edge"));
}

/// Generates Services and ServiceEntries with few names and hosts, so that several describe one host.
fn documents() -> impl Strategy<Value = Vec<String>> {
    let host = prop::sample::select(vec![
        "web.a.svc.cluster.local",
        "*.a.svc.cluster.local",
        "x.com",
        "*.com",
    ]);
    let export_to = || prop::sample::select(vec!["*", "."]);
    let namespace = || prop::sample::select(vec!["a", "b"]);
    let entries = (namespace(), 0..4_u8, 1..4_u8, host, export_to());
    let entries = prop::collection::btree_map(
        entries
            .clone()
            .prop_map(|(namespace, name, ..)| format!("{namespace}/e{name}")),
        entries,
        0..6,
    );
    let services = prop::collection::btree_map(
        namespace().prop_map(|namespace| format!("{namespace}/web")),
        export_to(),
        0..2,
    );
    (entries, services).prop_map(|(entries, services)| {
        let entries = entries
            .iter()
            .map(|(id, (_, _, age, host, export_to))| entry(id, *age, host, export_to));
        let services = services
            .iter()
            .map(|(id, export_to)| service(id, export_to));
        entries.chain(services).collect()
    })
}

proptest! {
    #[test]
    fn index_that_follows_a_change_equals_a_fresh_one(before in documents(), now in documents()) {
        let (before, now) = (set(&before), set(&now));
        let domain = Arc::from(hostname_domain());
        let mut followed = Services::new(&before, &domain);
        let touched = followed.update(&before, &now);
        let fresh = Services::new(&now, &domain);
        let all = |services: &Services| {
            let hosts = services.iter().map(|(host, _)| Arc::clone(host));
            let mut hosts: Vec<_> = hosts.collect();
            hosts.sort();
            hosts
        };
        prop_assert_eq!(all(&followed), all(&fresh));
        let old = Services::new(&before, &domain);
        for host in all(&fresh).iter().chain(&all(&old)) {
            for namespace in ["a", "b", "c"] {
                let wanted = text(fresh.find_from(host, namespace));
                prop_assert_eq!(&text(followed.find_from(host, namespace)), &wanted);
                let is_same = text(old.get(host).map(|entry| entry.seen_from(namespace)))
                    == text(fresh.get(host).map(|entry| entry.seen_from(namespace)));
                prop_assert!(is_same || touched.contains_key(host), "{} changed", host);
            }
        }
    }
}
