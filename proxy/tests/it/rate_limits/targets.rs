//! Targets of policies, and which of several applies.

use super::{ALL, Edge, hourly, policy};
use crate::support::eventually;
use crate::support::mesh::{documents, gateway, routes, service};
use crate::support::origin::{Back, Origin};
use crate::support::proxy::Start;
use crate::support::raw::{GET, Raw};

const GATEWAY: &str = "{group: networking.istio.io, kind: Gateway, name: edge}";
const RULE: &str =
    "{group: networking.istio.io, kind: VirtualService, name: all, sectionName: api}";

/// Returns a policy that lets no request of its targets pass, and adds a header condition that tells it apart.
fn nothing(name: &str, targets: &str) -> String {
    let rule = hourly(
        0,
        &format!("{{headers: [{{name: x-policy, value: {name}}}]}}"),
    );
    policy(
        name,
        targets,
        &format!("rateLimit: {{local: {{rules: [{{{rule}}}]}}}}"),
    )
}

fn two_routes(edge: &Edge) {
    let to = "route: [{destination: {host: web.test}}]";
    let rules = format!(
        "- {{name: api, match: [{{uri: {{prefix: /api}}}}], {to}}}\n- {{name: rest, {to}}}"
    );
    let other = format!("- {{{to}}}");
    let mesh = [
        gateway(&[edge.proxy.edge]),
        service("web", Back::H1, &[(edge.origin.address, "v1")]),
        routes("all", "[a.test]", &rules),
        routes("other", "[b.test]", &other),
    ];
    edge.proxy.write("mesh.yaml", documents(mesh));
    eventually("the routes are in effect", || {
        status(edge, "c.test", "/", "") == 404
    });
}

fn status(edge: &Edge, host: &str, path: &str, policy: &str) -> u16 {
    let text = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nx-policy: {policy}\r\n\r\n");
    edge.send(&text).status
}

#[test]
fn most_specific_policy_applies() {
    let edge = Edge::start(&[]);
    two_routes(&edge);
    let policies = [
        nothing("gateway", GATEWAY),
        nothing("route", ALL),
        nothing("rule", RULE),
    ];
    let places = [("a.test", "/api"), ("a.test", "/"), ("b.test", "/")];
    for (count, expected) in [
        (1, ["gateway", "gateway", "gateway"]),
        (2, ["route", "route", "gateway"]),
        (3, ["rule", "route", "gateway"]),
    ] {
        edge.set(&policies[..count]);
        for ((host, path), applies) in places.iter().zip(expected) {
            for name in ["gateway", "route", "rule"] {
                let limited = if name == applies { 429 } else { 200 };
                assert_eq!(
                    status(&edge, host, path, name),
                    limited,
                    "{count} {host}{path} {name}"
                );
            }
        }
    }
}

#[test]
fn one_target_is_enough() {
    let edge = Edge::start(&[]);
    let text = nothing("own", ALL);
    edge.set(&[text
        .replace("targetRefs: [", "targetRef: ")
        .replace("all}],", "all},")]);
    assert_eq!(status(&edge, "a.test", "/", "own"), 429);
}

#[test]
fn routes_of_a_gateway_have_limits_of_their_own_unless_shared() {
    let edge = Edge::start(&[]);
    two_routes(&edge);
    let with = |fields: &str| {
        let rule = format!("{}, {fields}", hourly(1, "{path: {value: /}}"));
        policy(
            "own",
            GATEWAY,
            &format!("rateLimit: {{local: {{rules: [{{{rule}}}]}}}}"),
        )
    };
    let get = |host, path| status(&edge, host, path, "");
    edge.set(&[with("shared: false")]);
    assert_eq!(
        [
            get("a.test", "/"),
            get("a.test", "/api"),
            get("b.test", "/")
        ],
        [200, 429, 200]
    );
    edge.set(&[with("shared: true")]);
    assert_eq!(
        [
            get("a.test", "/"),
            get("a.test", "/api"),
            get("b.test", "/")
        ],
        [200, 429, 429]
    );
}

#[test]
fn delegated_rules_have_the_limits_of_their_root() {
    let edge = Edge::start(&[]);
    let to = "route: [{destination: {host: web.test}}]";
    let root = "- {name: cart, match: [{uri: {prefix: /cart}}], delegate: {name: cart}}";
    let delegate = format!(
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: cart}}\n\
         spec: {{http: [{{name: items, {to}}}]}}\n"
    );
    let mesh = [
        gateway(&[edge.proxy.edge]),
        service("web", Back::H1, &[(edge.origin.address, "v1")]),
        routes("all", "['*']", root),
        delegate,
    ];
    edge.proxy.write("mesh.yaml", documents(mesh));
    let own = "{group: networking.istio.io, kind: VirtualService, name: cart, sectionName: items}";
    let of_root =
        "{group: networking.istio.io, kind: VirtualService, name: all, sectionName: cart}";
    let policies = [
        nothing("root", ALL),
        nothing("rule", of_root),
        nothing("own", own),
    ];
    for (count, applies) in [(1, "root"), (2, "rule"), (3, "own")] {
        edge.set(&policies[..count]);
        for name in ["root", "rule", "own"] {
            let limited = if name == applies { 429 } else { 200 };
            eventually("the delegate is in effect", || {
                status(&edge, "a.test", "/cart", name) == limited
            });
        }
    }
}

#[test]
fn service_has_limits_at_its_sidecar() {
    let workload = Origin::named(Back::H1, "cart");
    let start = Start::new();
    let inbound = start.edge();
    let (ip, port) = (inbound.ip(), inbound.port());
    let sidecar = format!(
        "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {{name: cart, namespace: shop}}\nspec:\n  \
         ingress:\n  - {{port: {{number: {port}, name: http, protocol: HTTP}}, bind: {ip}, captureMode: NONE, \
         defaultEndpoint: {}}}\n",
        workload.address
    );
    let service = format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: cart, namespace: shop}}\nspec:\n  \
         selector: {{app: cart}}\n  ports: [{{name: http, port: 80, targetPort: {port}}}]\n"
    );
    let proxy = start
        .args([
            "--mode",
            "sidecar",
            "--labels",
            "app=cart",
            "--namespace",
            "shop",
        ])
        .args(["--outbound-listener", "off", "--inbound-listener", "off"])
        .file("mesh.yaml", documents([sidecar, service]))
        .file("policy.yaml", "")
        .start();
    let status = || Raw::connect(proxy.edge).send(GET).reply().status;
    assert_eq!(status(), 200);
    let set = |requests| {
        let generation = || proxy.metric("strait_config_generation", &[]);
        let before = generation();
        let rule = hourly(requests, "");
        let fields = format!("rateLimit: {{local: {{rules: [{{{rule}}}]}}}}");
        let text = policy("own", "{kind: Service, name: cart}", &fields);
        proxy.write(
            "policy.yaml",
            text.replace("{name: own}", "{name: own, namespace: shop}"),
        );
        eventually("the policy is in effect", || generation() > before);
    };
    set(2);
    assert_eq!([status(), status(), status()], [200, 200, 429]);
    set(3);
    assert_eq!(status(), 200);
}
