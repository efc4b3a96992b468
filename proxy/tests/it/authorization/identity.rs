//! Identities of clients at a sidecar, which judges inbound traffic only.

use super::policy;
use crate::peer_authentication::{CLIENT, Pair};
use crate::support::eventually;
use crate::support::mesh::documents;

/// Status of a request over TLS of the mesh, and of one in plain text.
fn statuses(pair: &Pair) -> (u16, u16) {
    let plain = pair.in_plain_text();
    let status = plain.split(' ').nth(1).expect("a status line");
    (pair.over_tls().status, status.parse().unwrap())
}

/// Puts a policy into effect.
fn set(pair: &Pair, text: &str) {
    let generation = || pair.sidecar.metric("strait_config_generation", &[]);
    let before = generation();
    pair.sidecar.write("policy.yaml", documents([text]));
    eventually("the policy is in effect", || generation() > before);
}

#[test]
fn identities_are_those_that_the_handshake_has_proved() {
    let pair = Pair::start(CLIENT, "");
    assert_eq!(statuses(&pair), (200, 200));
    let source = |action: &str, fields: &str| {
        let rule = format!("rules: [{{from: [{{source: {{{fields}}}}}]}}]");
        policy(
            "shop/cart",
            &format!("selector: {{matchLabels: {{app: cart}}}}, action: {action}, {rule}"),
        )
    };
    for (action, fields, expected) in [
        (
            "ALLOW",
            "principals: [cluster.local/ns/edge/sa/gateway]",
            (200, 403),
        ),
        (
            "ALLOW",
            "principals: [cluster.local/ns/edge/sa/gate]",
            (403, 403),
        ),
        (
            "ALLOW",
            "principals: ['cluster.local/ns/edge/*']",
            (200, 403),
        ),
        ("ALLOW", "principals: ['*/sa/gateway']", (200, 403)),
        (
            "ALLOW",
            "principals: ['spiffe://cluster.local/ns/edge/sa/gateway']",
            (403, 403),
        ),
        (
            "ALLOW",
            "principals: [CLUSTER.LOCAL/ns/edge/sa/gateway]",
            (403, 403),
        ),
        ("ALLOW", "principals: ['*']", (200, 403)),
        (
            "ALLOW",
            "principals: [cluster.local/ns/bank/sa/admin]",
            (403, 403),
        ),
        ("DENY", "notPrincipals: ['*']", (200, 403)),
        ("DENY", "principals: ['*']", (403, 200)),
        ("ALLOW", "namespaces: [edge]", (200, 403)),
        ("ALLOW", "namespaces: ['e*ge']", (200, 403)),
        ("ALLOW", "namespaces: [ed]", (403, 403)),
        ("DENY", "notNamespaces: [edge]", (200, 403)),
        ("ALLOW", "serviceAccounts: [edge/gateway]", (200, 403)),
        ("ALLOW", "serviceAccounts: [gateway]", (403, 403)),
        ("DENY", "notServiceAccounts: [edge/gateway]", (200, 403)),
        ("ALLOW", "trustDomains: [cluster.local]", (200, 403)),
        ("ALLOW", "trustDomains: ['cluster*']", (200, 403)),
        ("DENY", "notTrustDomains: [else.example]", (403, 403)),
    ] {
        set(&pair, &source(action, fields));
        assert_eq!(statuses(&pair), expected, "{action} {fields}");
    }
    let condition = "selector: {matchLabels: {app: cart}}, rules: [{when: [{key: source.principal, values: ['*']}]}]";
    set(&pair, &policy("shop/cart", condition));
    assert_eq!(statuses(&pair), (200, 403));
}

#[test]
fn denied_request_does_not_reach_the_workload() {
    let deny = "selector: {matchLabels: {app: cart}}, action: DENY, rules: [{}]";
    let pair = Pair::start(CLIENT, &policy("shop/cart", deny));
    assert_eq!(statuses(&pair), (403, 403));
    assert!(pair.workload.seen().is_empty());
    let labels = [("reporter", "destination"), ("response_code", "403")];
    assert_eq!(pair.sidecar.metric("istio_requests_total", &labels), 2.0);
}
