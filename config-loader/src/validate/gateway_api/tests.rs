//! Tables of documents and their findings. The last test checks that each code has one.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

mod backends;
mod gateways;
mod routes;
mod samples;

use crate::diagnostic::codes;
use crate::resource::gateway_api::{
    BackendVerification, CorsOrigin, Filter, GRPCRoute, HTTPRoute, NamespaceSelection, PathMatch,
    PathModifier,
};
use crate::resource::istio::StringMatch;
use crate::resource::{Object, Percent};
use crate::store::{Change, Store};
use crate::validate::testing;
use crate::{Kind, Name, ResourceSet};

/// Documents of a kind: `spec`, and the codes that it has.
type Cases = &'static [(&'static str, &'static [&'static str])];

/// Returns a document with this `spec`.
fn document(kind: &str, spec: &str) -> String {
    let version = "gateway.networking.k8s.io/v1";
    format!(
        "apiVersion: {version}\nkind: {kind}\nmetadata: {{name: own, namespace: ns}}\nspec: {spec}\n"
    )
}

/// Codes about references between objects, which the documents here lack.
const OF_REFERENCES: &[&str] = &[
    "GA001", "GA002", "GA004", "GA005", "GA011", "GA013", "GA014", "GA020", "GA021", "GA030",
    "GA040", "GA042", "GA043", "GA044", "GA050", "GA051", "GA052", "GA053", "GA060", "GA062",
    "GA063", "GA070", "GA071", "GA072", "GA073",
];

/// Loads a document. Leaves out the warning that the kind has no effect yet, and those about references.
fn load(kind: &str, spec: &str) -> (ResourceSet, Vec<String>) {
    let (set, found) = testing::load(&document(kind, spec));
    let found = found.into_iter();
    (
        set,
        found
            .filter(|found| {
                let code = found.split(' ').nth(1).unwrap_or_default();
                code != "CM037" && !OF_REFERENCES.contains(&code)
            })
            .collect(),
    )
}

/// Checks the codes of each document, and that one without errors is in effect.
fn check(kind: Kind, cases: Cases) {
    let mut wrong = Vec::new();
    for (spec, expected) in cases {
        let (set, found) = load(kind.as_str(), spec);
        let codes = found.iter().filter_map(|found| found.split(' ').nth(1));
        let mut codes: Vec<&str> = codes.collect();
        let mut expected = expected.to_vec();
        codes.sort_unstable();
        expected.sort_unstable();
        let is_rejected = found.iter().any(|found| found.starts_with('E'));
        let count = usize::from(!is_rejected || kind == Kind::BackendTLSPolicy);
        let is_unplaced = found.iter().any(|found| found.contains(" : "));
        if codes != expected || set.count(kind) != count || is_unplaced {
            wrong.push(format!("{spec}\n{expected:?}, but {found:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn gateway_of_each_group_has_its_own_name() {
    let istio = "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {name: own, namespace: ns}\n\
                 spec: {servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}]}\n";
    let own = document("Gateway", gateways::GATEWAY);
    let (set, found) = testing::load(&format!("{istio}---\n{own}"));
    assert_eq!(found.iter().filter(|one| one.starts_with("E")).count(), 0);
    let name = Name::new("ns", "own");
    let (istio, own) = (&set.gateways[&name], &set.kubernetes_gateways[&name]);
    assert_eq!(istio.id.to_string(), own.id.to_string());
    assert_ne!(istio.id, own.id);
    assert_eq!(own.id.to_string(), "Gateway/ns/own");
    assert_eq!(own.spec.listeners[0].namespaces, NamespaceSelection::Same);
}

#[test]
fn kinds_that_are_not_read_are_told() {
    for (version, kind, expected) in [
        ("gateway.networking.k8s.io/v1", "UDPRoute", "W GA008"),
        ("gateway.networking.k8s.io/v1alpha1", "XMesh", "W GA009"),
        (
            "gateway.networking.x-k8s.io/v1alpha1",
            "XListenerSet",
            "W GA009",
        ),
        ("inference.networking.k8s.io/v1", "InferencePool", "W GA009"),
        ("gateway.networking.k8s.io/v1", "HTTPRout", "E CM025"),
        ("gateway.networking.k8s.io/v1alpha2", "GRPCRoute", "E CM025"),
        ("gateway.networking.k8s.io/v1alpha2", "HTTPRoute", "E CM025"),
    ] {
        let text =
            format!("apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\nspec: {{}}\n");
        let (_, found) = testing::load(&text);
        let short = found.first().map_or("", |found| &found[..expected.len()]);
        assert_eq!(short, expected, "{kind}: {found:?}");
    }
}

#[test]
fn older_versions_are_the_same_objects() {
    for (kind, versions, spec) in [
        ("GatewayClass", "v1beta1", "{controllerName: a.example/b}"),
        ("Gateway", "v1beta1", gateways::GATEWAY),
        ("HTTPRoute", "v1beta1", "{}"),
        ("ReferenceGrant", "v1beta1", backends::GRANT),
        ("TLSRoute", "v1alpha3 v1alpha2", routes::TLS),
        ("TCPRoute", "v1alpha2", routes::TCP),
        ("BackendTLSPolicy", "v1alpha3", backends::POLICY),
    ] {
        for version in versions.split(' ') {
            let text = document(kind, spec).replace("/v1\n", &format!("/{version}\n"));
            let (set, found) = testing::load(&text);
            let errors = found.iter().filter(|found| found.starts_with('E'));
            assert_eq!(errors.count(), 0, "{text}{found:?}");
            assert_eq!(set.len(), 1, "{text}");
        }
    }
}

#[test]
fn wrong_version_leaves_the_last_good_one_in_effect() {
    let mut store = Store::new();
    let mut write = |kind: &str, spec: &str| {
        let change = Change::text(&store, "a", &document(kind, spec));
        store.apply(vec![(Arc::from("a"), change)]);
        (store.set().clone(), store.refusals())
    };
    let name = Name::new("ns", "own");
    write("HTTPRoute", "{hostnames: [a.example]}");
    let (set, _) = write("HTTPRoute", "{hostnames: ['a b']}");
    assert_eq!(
        &*set.http_routes[&name].spec.hostnames[0].value,
        "a.example"
    );
    write("BackendTLSPolicy", backends::POLICY);
    let (set, _) = write("BackendTLSPolicy", "{}");
    let policy = &set.backend_tls_policies[&name].spec;
    assert!(matches!(
        policy.verification,
        BackendVerification::Tls { .. }
    ));
    write("GatewayClass", "{controllerName: a.example/b}");
    let (set, refusals) = write("GatewayClass", "{controllerName: a.example/c}");
    assert_eq!(&*set.gateway_classes[&name].spec.controller, "a.example/b");
    let [refused] = &*refusals else {
        panic!("{refusals:?}");
    };
    assert_eq!(
        (refused.code.0, &*refused.field),
        ("GA114", "spec.controllerName")
    );
}

#[test]
fn each_code_has_a_document() {
    let tables = [gateways::ALL, routes::ALL, backends::ALL].concat();
    let tested: BTreeSet<&str> = tables
        .into_iter()
        .flat_map(|(_, cases)| cases.iter())
        .flat_map(|(_, codes)| codes.iter().copied())
        .collect();
    // of other tests
    let elsewhere = ["GA008", "GA009", "GA034", "GA114", "GA118"];
    let missing = codes::all()
        .map(|(code, ..)| code.0)
        .filter(|code| code.starts_with("GA"))
        .filter(|code| !tested.contains(code) && !elsewhere.contains(code))
        .filter(|code| !OF_REFERENCES.contains(code));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
}
