//! Access policies of Gloo in the status of a Destination, at a sidecar.

use std::process::Command;

use crate::peer_authentication::{CLIENT, Pair};
use crate::support::eventually;
use crate::support::raw::GET;
use crate::support::tls::files;

/// Remote clusters file with a cluster whose workloads have a trust domain of their own.
const CLUSTERS: &str = "clusters: [{key: default/default/default/c2, trustDomain: c2.test}]";

/// Destination of the sidecar's workload.
const REFERENCE: &str = "{name: cart, namespace: shop, clusterName: local}";

/// Returns a Destination of the service with this reference, for workloads with these labels, and this status.
fn destination(reference: &str, labels: &str, status: &str) -> String {
    format!(
        "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\nmetadata: {{name: cart, namespace: gloo-mesh}}\n\
         spec: {{kubeService: {{ref: {reference}, workloadSelectorLabels: {labels}, ports: [{{port: 80, name: http}}]}}}}\n\
         status: {status}\n"
    )
}

fn applied(entries: &str) -> String {
    let status = format!("{{appliedAccessPolicies: [{entries}]}}");
    destination(REFERENCE, "{app: cart}", &status)
}

/// Returns a Destination with one access policy.
fn access(spec: &str) -> String {
    applied(&format!(
        "{{ref: {{name: web, namespace: gloo-mesh}}, spec: {{{spec}}}}}"
    ))
}

/// Returns a sidecar in a fleet, and a client of this identity.
fn fleet(client: &str) -> (Pair, tempfile::TempDir) {
    let directory = tempfile::tempdir().unwrap();
    files(directory.path(), &[("clusters.yaml", CLUSTERS)]);
    let clusters = directory.path().join("clusters.yaml");
    let flags = ["--clusters", clusters.to_str().unwrap()];
    let domain = client.split('/').nth(2).expect("a trust domain");
    let of_client = [
        "--trust-domain",
        domain,
        "--trust-domain-aliases",
        "cluster.local",
    ];
    (
        Pair::start_with(client, [&of_client, &flags], ""),
        directory,
    )
}

/// Puts a Destination into effect.
fn set(pair: &Pair, text: &str) {
    let generation = || pair.sidecar.metric("strait_config_generation", &[]);
    let before = generation();
    pair.sidecar.write("policy.yaml", text);
    eventually("the Destination is in effect", || generation() > before);
}

/// Status of a request over TLS of the mesh, and of one in plain text.
fn statuses(pair: &Pair) -> (u16, u16) {
    let plain = pair.in_plain_text();
    let status = plain.split(' ').nth(1).expect("a status line");
    (pair.over_tls().status, status.parse().unwrap())
}

#[test]
fn sources_of_access_policies_are_identities_of_clusters() {
    let (pair, _directory) = fleet(CLIENT);
    assert_eq!(statuses(&pair), (200, 200));
    let matcher = |fields: &str| format!("sourceSelector: [{{kubeIdentityMatcher: {{{fields}}}}}]");
    let account = |fields: &str| {
        format!("sourceSelector: [{{kubeServiceAccountRefs: {{serviceAccounts: [{{{fields}}}]}}}}]")
    };
    let both = "sourceSelector: [{kubeIdentityMatcher: {namespaces: [shop]}, \
                kubeServiceAccountRefs: {serviceAccounts: [{name: gateway, namespace: edge}]}}]";
    for (spec, expected) in [
        (String::new(), (200, 200)),
        ("sourceSelector: [{}]".to_owned(), (200, 200)),
        (matcher("namespaces: [edge]"), (200, 403)),
        (matcher("namespaces: [shop]"), (403, 403)),
        (matcher("clusters: [local]"), (200, 403)),
        (matcher("clusters: [local], namespaces: [edge]"), (200, 403)),
        (matcher("clusters: [local], namespaces: [ed]"), (403, 403)),
        (matcher("clusters: [c2], namespaces: [edge]"), (403, 403)),
        (matcher("clusters: [c9], namespaces: [edge]"), (403, 403)),
        (matcher("clusters: [local, c9]"), (403, 403)),
        (
            account("name: gateway, namespace: edge, clusterName: local"),
            (200, 403),
        ),
        (account("name: gateway, namespace: edge"), (200, 403)),
        (
            account("name: gateway, namespace: edge, clusterName: c2"),
            (403, 403),
        ),
        (account("name: other, namespace: edge"), (403, 403)),
        (account("namespace: edge"), (403, 403)),
        (account("name: '*', namespace: edge"), (403, 403)),
        (account("name: 'gate*', namespace: edge"), (403, 403)),
        (account("name: gateway, namespace: '*'"), (403, 403)),
        (both.to_owned(), (403, 403)),
    ] {
        set(&pair, &access(&spec));
        assert_eq!(statuses(&pair), expected, "{spec}");
    }
    set(&pair, &applied("{ref: {name: web, namespace: gloo-mesh}}"));
    assert_eq!(
        statuses(&pair),
        (403, 403),
        "a policy without content admits no client"
    );
}

#[test]
fn client_of_another_cluster_is_known_by_its_trust_domain() {
    let (pair, _directory) = fleet("spiffe://c2.test/ns/edge/sa/gateway");
    for (cluster, expected) in [("c2", 200), ("local", 403)] {
        let matcher = format!("clusters: [{cluster}], namespaces: [edge]");
        set(
            &pair,
            &access(&format!(
                "sourceSelector: [{{kubeIdentityMatcher: {{{matcher}}}}}]"
            )),
        );
        assert_eq!(pair.over_tls().status, expected, "{cluster}");
    }
}

#[test]
fn allowed_paths_methods_and_ports_are_one_operation() {
    let (pair, _directory) = fleet(CLIENT);
    let status = |method: &str, path: &str| {
        let request = GET.replacen("GET /", &format!("{method} {path}"), 1);
        pair.send_over_tls(&request).status
    };
    let port = pair.sidecar.edge.port();
    let other = if port == 80 { 81 } else { 80 };
    for (spec, expected) in [
        ("allowedPaths: [/a]".to_owned(), [200, 403, 200]),
        ("allowedPaths: ['/*']".to_owned(), [200, 200, 200]),
        ("allowedMethods: [GET]".to_owned(), [200, 200, 403]),
        (
            "allowedPaths: [/a], allowedMethods: [GET]".to_owned(),
            [200, 403, 403],
        ),
        (format!("allowedPorts: [{port}]"), [200, 200, 200]),
        (format!("allowedPorts: [{other}]"), [403, 403, 403]),
    ] {
        set(&pair, &access(&spec));
        let found = [("GET", "/a"), ("GET", "/b"), ("DELETE", "/a")];
        let found = found.map(|(method, path)| status(method, path));
        assert_eq!(found, expected, "{spec}");
    }
    // entries are alternatives
    set(
        &pair,
        &applied(
            "{spec: {allowedPaths: [/a]}}, {spec: {allowedPaths: [/b], allowedMethods: [POST]}}",
        ),
    );
    let found = [("GET", "/a"), ("POST", "/b"), ("GET", "/b")];
    assert_eq!(
        found.map(|(method, path)| status(method, path)),
        [200, 200, 403]
    );
}

#[test]
fn access_policies_apply_to_the_workloads_of_their_destination() {
    let (pair, _directory) = fleet(CLIENT);
    let closed = "{appliedAccessPolicies: [{}]}";
    for (reference, labels, expected) in [
        (REFERENCE, "{app: cart}", 403),
        (REFERENCE, "{}", 403),
        (REFERENCE, "{app: web}", 200),
        (
            "{name: cart, namespace: shop, clusterName: c2}",
            "{app: cart}",
            200,
        ),
        (
            "{name: cart, namespace: bank, clusterName: local}",
            "{app: cart}",
            200,
        ),
    ] {
        set(&pair, &destination(reference, labels, closed));
        assert_eq!(pair.over_tls().status, expected, "{reference} {labels}");
    }
    set(&pair, &destination(REFERENCE, "{app: cart}", closed));
    assert_eq!(pair.over_tls().status, 403);
    set(&pair, &destination(REFERENCE, "{app: cart}", "{}"));
    assert_eq!(
        pair.over_tls().status,
        200,
        "without a status there are no policies"
    );
    pair.sidecar
        .has_logged("fewer authorization policies apply to this proxy");
}

#[test]
fn access_policy_that_cannot_be_read_admits_no_additional_client() {
    let (pair, _directory) = fleet(CLIENT);
    let rejected = || {
        let kind = [("kind", "Destination")];
        pair.sidecar
            .metric("strait_config_resources_rejected", &kind)
    };
    let broken = [
        access("allowedPath: [/a]"),
        access("allowedPorts: [0]"),
        destination(REFERENCE, "{app: cart}", "{appliedAccessPolicies: 7}"),
        access("").replace("appliedAccessPolicies:", "appliedAcessPolicies:"),
        access("").replace("port: 80", "port: 0"),
        access("").replace("kubeService:", "kubeServices:"),
        access("").replace("name: cart, namespace: gloo-mesh", "namespace: gloo-mesh"),
    ];
    for text in &broken {
        set(&pair, text);
        assert_eq!(rejected(), 1.0, "{text}");
        assert_eq!(statuses(&pair), (403, 403), "{text}");
        let elsewhere = text.replace("clusterName: local", "clusterName: c2");
        if elsewhere != *text && !text.contains("kubeServices") {
            set(&pair, &elsewhere);
            assert_eq!(statuses(&pair), (200, 200), "{elsewhere}");
        }
        let open = destination(REFERENCE, "{app: cart}", "{}");
        set(&pair, &open);
        assert_eq!(statuses(&pair), (200, 200), "no access policy");
        set(&pair, text);
        assert!(rejected() >= 1.0, "{text}");
        assert_eq!(
            statuses(&pair),
            (403, 403),
            "the last good version admits all: {text}"
        );
        set(&pair, &open);
        assert_eq!(statuses(&pair), (200, 200), "corrected");
        set(&pair, "");
        assert_eq!(statuses(&pair), (200, 200));
    }
    set(
        &pair,
        &access("sourceSelector: [{kubeIdentityMatcher: {namespaces: [edge]}}]"),
    );
    assert_eq!(statuses(&pair), (200, 403));
    pair.sidecar.write("policy.yaml", &broken[0]);
    eventually("the Destination is rejected", || rejected() == 1.0);
    assert_eq!(statuses(&pair), (200, 403), "the last good version stays");
}

#[test]
fn explain_and_metrics_name_the_destination() {
    let (pair, _directory) = fleet(CLIENT);
    let unknown = "{ref: {name: far, namespace: gloo-mesh}, spec: {sourceSelector: [{kubeIdentityMatcher: {clusters: [c9]}}]}}";
    set(
        &pair,
        &applied(&format!("{unknown}, {{spec: {{allowedPaths: [/a]}}}}")),
    );
    let (admin, url) = (
        pair.sidecar.admin.to_string(),
        format!("http://{}/a", pair.sidecar.edge),
    );
    let output = Command::new(env!("CARGO_BIN_EXE_strait"))
        .args(["explain", "--admin", &admin, "GET", &url])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "authorization allowed",
        "ALLOW   shop/cart.gloo-mesh  matched",
        "no match: sources (access policy gloo-mesh/far: cluster `c9` is unknown): absent",
        "policy.yaml:",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let enforced = [("state", "enforced")];
    assert_eq!(pair.sidecar.metric("strait_authz_policies", &enforced), 1.0);
    let request = GET.replacen("GET /", "GET /a", 1);
    assert_eq!(pair.send_over_tls(&request).status, 200);
    let labels = [
        ("namespace", "shop"),
        ("policy", "cart.gloo-mesh"),
        ("action", "ALLOW"),
    ];
    assert_eq!(
        pair.sidecar
            .metric("strait_authz_policy_matches_total", &labels),
        1.0
    );
}
