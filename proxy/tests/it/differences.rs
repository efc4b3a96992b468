//! `strait diff`: which requests a change of the configuration moves.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::tls::files;

fn diff(directory: &Path, args: &[&str]) -> (String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_strait"))
        .current_dir(directory)
        .args(["diff", "--labels", "app=edge", "--namespace", "shop"])
        .args(args)
        .output()
        .unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (text, output.status.code())
}

/// Output for two configurations, and the exit code.
fn between(old: &str, new: &str, args: &[&str]) -> (String, Option<i32>) {
    let directory = tempfile::tempdir().unwrap();
    files(directory.path(), &[("old.yaml", old), ("new.yaml", new)]);
    diff(
        directory.path(),
        &[&["old.yaml", "new.yaml"], args].concat(),
    )
}

const MESH: &str = "
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  selector: {app: edge}
  servers:
  - {port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}
  - {port: {number: 443, name: tls, protocol: TLS}, hosts: ['*.db.example'], tls: {mode: PASSTHROUGH}}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop, namespace: shop}
spec:
  hosts: [shop.example, '*.db.example']
  gateways: [edge]
  tls:
  - match: [{sniHosts: [eu.db.example]}]
    route: [{destination: {host: cart.shop.example, port: {number: 80}}}]
  http:
  - name: old
    match: [{uri: {prefix: /old/}}]
    redirect: {uri: /new/x, redirectCode: 301}
  - name: testers
    match: [{uri: {prefix: /cart}, headers: {x-tester: {exact: 'yes'}}}]
    timeout: 3s
    route: [{destination: {host: cart.shop.example, subset: v2, port: {number: 80}}}]
  - name: all
    match: [{uri: {prefix: /cart}}]
    route: [{destination: {host: cart.shop.example, subset: v1, port: {number: 80}}}]
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: cart, namespace: shop}
spec:
  hosts: [cart.shop.example]
  ports: [{number: 80, name: http, protocol: HTTP}]
  resolution: STATIC
  endpoints:
  - {address: 10.0.0.1, labels: {version: v1}}
  - {address: 10.0.0.3, labels: {version: v2}}
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: cart, namespace: shop}
spec:
  host: cart.shop.example
  trafficPolicy: {connectionPool: {http: {http1MaxPendingRequests: 10}}}
  subsets: [{name: v1, labels: {version: v1}}, {name: v2, labels: {version: v2}}]
";

#[test]
fn each_change_is_shown_with_a_request_and_the_fields_that_differ() {
    for (before, after, expected, breaking) in [
        (
            "timeout: 3s",
            "timeout: 5s",
            &[
                "curl -H 'x-tester: yes' 'http://shop.example:80/cart'",
                "  timeout: 3s -> 5s",
            ][..],
            false,
        ),
        (
            "    timeout: 3s\n",
            "",
            &["breaking  curl -H 'x-tester: yes'", "  timeout: 3s -> none"],
            true,
        ),
        (
            "subset: v1, port: {number: 80}}}]",
            "subset: v1, port: {number: 80}}, weight: 90}, {destination: {host: cart.shop.example, subset: v2, port: {number: 80}}, weight: 10}]",
            &[
                "  destinations: cart.shop.example:80 v1 100 % -> cart.shop.example:80 v1 90 %, cart.shop.example:80 v2 10 %",
            ],
            false,
        ),
        (
            "/new/x",
            "/new/y",
            &[
                "breaking  curl 'http://shop.example:80/old/'",
                "redirect 301 to http://shop.example/new/x -> redirect 301 to http://shop.example/new/y",
            ],
            true,
        ),
        (
            "    match: [{uri: {prefix: /cart}}]",
            "    match: [{uri: {exact: /cart}}]",
            &[
                "curl 'http://shop.example:80/cart",
                "outcome: forwarded -> refused 404 NR",
                "rule    all of VirtualService/shop/shop (old.yaml:",
            ],
            true,
        ),
        (
            "x-tester: {exact: 'yes'}",
            "x-tester: {exact: 'no'}",
            &[
                "curl -H 'x-tester: no' ",
                "curl -H 'x-tester: yes' ",
                "v1 100 % -> cart.shop.example:80 v2 100 %",
            ],
            true, // testers lose their timeout
        ),
        (
            "eu.db.example",
            "us.db.example",
            &[
                "strait explain CONNECT tls://eu.db.example:443",
                "strait explain CONNECT tls://us.db.example:443",
                "outcome: forwarded -> closed NR",
            ],
            true,
        ),
        (
            "http1MaxPendingRequests: 10",
            "http1MaxPendingRequests: 20",
            &["cart.shop.example:80 v1 connection limits: "],
            false,
        ),
        (
            "address: 10.0.0.3",
            "address: 10.0.0.4",
            &[
                "endpoints of outbound|80|v2|cart.shop.example: added 10.0.0.4:80, removed 10.0.0.3:80",
            ],
            false,
        ),
        (
            "number: 80, name: http, protocol: HTTP}, hosts: ['*']",
            "number: 81, name: http, protocol: HTTP}, hosts: ['*']",
            &[
                "listener opened: [::]:81",
                "breaking  listener closed: [::]:80",
            ],
            true,
        ),
        (
            "hosts: [shop.example, ",
            "hosts: [shop.example, other.example, ",
            &[
                "curl 'http://other.example:80/cart'",
                "outcome: refused 404 NR -> forwarded",
            ],
            false,
        ),
    ] {
        assert!(MESH.contains(before), "{before}");
        let new = MESH.replacen(before, after, 1);
        let (text, code) = between(MESH, &new, &[]);
        assert_eq!(code, Some(1), "{after}: {text}");
        for line in expected {
            assert!(text.contains(line), "{after}: {line}\n{text}");
        }
        let (text, code) = between(MESH, &new, &["--fail-on", "breaking"]);
        assert_eq!(code, Some(i32::from(breaking)), "{after}: {text}");
    }
}

#[test]
fn nothing_is_said_to_change_only_if_every_class_was_decided() {
    let reformatted = MESH.replace("  - name: all", "\n\n  - name: all");
    let (text, code) = between(MESH, &reformatted, &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("no request changes: "), "{text}");
    let regex = MESH.replace("{uri: {exact: /cart}}", "");
    let regex = regex.replace(
        "match: [{uri: {prefix: /cart}}]",
        "match: [{uri: {regex: /cart.*}}]",
    );
    let (text, _) = between(MESH, &regex, &[]);
    assert!(!text.contains("no request changes"), "{text}");
    assert!(text.contains(" sampled"), "{text}");
}

/// A gateway between networks, which passes connections to services by the names of their clusters.
const NETWORKS: &str = "
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: east-west, namespace: shop}
spec:
  selector: {app: edge}
  servers:
  - {port: {number: 15443, name: tls, protocol: TLS}, hosts: ['*.local'], tls: {mode: AUTO_PASSTHROUGH}}
---
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {clusterIP: 10.96.0.10, ports: [{name: http, port: 80}]}
";

#[test]
fn connections_by_the_names_of_clusters_are_compared() {
    let gone = NETWORKS.replace("name: cart", "name: basket");
    let (text, code) = between(NETWORKS, &gone, &[]);
    assert_eq!(code, Some(1), "{text}");
    for service in ["cart", "basket"] {
        let name = format!("tls://outbound_.80_._.{service}.shop.svc.cluster.local:15443");
        assert!(text.contains(&name), "{text}");
    }
    let (text, code) = between(NETWORKS, NETWORKS, &[]);
    assert_eq!(code, Some(0), "{text}");
}

#[test]
fn findings_and_several_proxies_are_compared() {
    let new = MESH.replace("subset: v1, port", "subset: v7, port");
    let (text, _) = between(MESH, &new, &[]);
    assert!(text.contains("finding appears: "), "{text}");
    let (text, _) = between(MESH, &new, &["--ignore", "findings,endpoints"]);
    assert!(!text.contains("finding appears"), "{text}");
    let directory = tempfile::tempdir().unwrap();
    let proxies = "edge: {labels: {app: edge}}\nother: {labels: {app: other}}\n";
    let all = [
        ("old.yaml", MESH),
        ("new.yaml", &new),
        ("proxies.yaml", proxies),
    ];
    files(directory.path(), &all);
    let (text, _) = diff(
        directory.path(),
        &["old.yaml", "new.yaml", "--for", "proxies.yaml"],
    );
    let (edge, other) = text.split_once("proxy other\n").unwrap();
    assert!(
        edge.contains("proxy edge\n") && edge.contains("unavailable"),
        "{text}"
    );
    assert!(
        other.contains("nothing was compared: the proxy has no listener"),
        "{text}"
    );
}

#[test]
fn revision_of_git_is_compared_with_files() {
    let directory = tempfile::tempdir().unwrap();
    files(
        directory.path(),
        &[("mesh.yaml", MESH), ("notes.txt", "no resource")],
    );
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@a.test"];
        let output = Command::new("git")
            .current_dir(directory.path())
            .args(identity)
            .args(args)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "mesh"]);
    let new = MESH.replace("timeout: 3s", "timeout: 5s");
    files(directory.path(), &[("mesh.yaml", &new)]);
    for old in ["git:HEAD", "git:HEAD:mesh.yaml"] {
        let (text, code) = diff(directory.path(), &[old, "mesh.yaml"]);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("timeout: 3s -> 5s"), "{text}");
        let place = match old {
            "git:HEAD" => "(git:HEAD:./mesh.yaml:",
            _ => "(git:HEAD:mesh.yaml:",
        };
        assert!(text.contains(place), "{text}");
    }
    let (text, code) = diff(directory.path(), &["git:nothing", "mesh.yaml"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("strait: git:nothing: "), "{text}");
}

#[test]
fn output_is_for_programs_and_pull_requests_too() {
    let new = MESH.replace("    timeout: 3s\n", "");
    let (json, _) = between(MESH, &new, &["-o", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let entry = &json["proxies"][0]["differences"]["requests"][0];
    assert_eq!(entry["breaking"], true);
    assert_eq!(entry["changes"][0]["field"], "timeout");
    assert_eq!(entry["witnesses"][0]["after"]["name"], "testers");
    let (markdown, _) = between(MESH, &new, &["-o", "markdown"]);
    let expected = "<details><summary>**breaking** timeout: 3s -&gt; none</summary>";
    assert!(markdown.contains(expected), "{markdown}");
}
