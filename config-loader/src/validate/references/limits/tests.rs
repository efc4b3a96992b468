use crate::diagnostic::Diagnostics;
use crate::load_bytes;

const WORLD: &str = "\
{apiVersion: networking.istio.io/v1, kind: Gateway, metadata: {name: edge}, spec: {selector: {a: b}, servers: [{port: {number: 80, name: http, protocol: HTTP}, hosts: ['*']}]}}
---
{apiVersion: networking.istio.io/v1, kind: VirtualService, metadata: {name: shop}, spec: {hosts: [shop.test], gateways: [edge], http: [{name: old, match: [{uri: {exact: /a}}], redirect: {uri: /b}}, {name: api, route: [{destination: {host: web}}]}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web}, spec: {ports: [{name: grpc, port: 80}]}}
---
{apiVersion: security.istio.io/v1, kind: RequestAuthentication, metadata: {name: own}, spec: {jwtRules: [{issuer: 'https://a.example', outputClaimToHeaders: [{header: x-user, claim: sub}]}]}}
---
";

/// Returns code, field and message of the diagnostics about limits.
fn found(policies: &[(&str, &str)]) -> Vec<String> {
    let policies = policies.iter().map(|(name, spec)| {
        format!(
            "---\n{{apiVersion: gateway.envoyproxy.io/v1alpha1, kind: BackendTrafficPolicy, metadata: {{name: {name}}}, spec: {{{spec}}}}}\n"
        )
    });
    let text = policies.fold(WORLD.to_owned(), |text, policy| text + &policy);
    let mut found = Diagnostics::default();
    load_bytes("a.yaml", text.as_bytes(), &mut found);
    let ours = found
        .into_sorted()
        .into_iter()
        .filter(|found| found.code.0.starts_with("RL"));
    ours.map(|found| {
        assert!(found.help.is_some(), "{}", found.message);
        format!("{} {}: {}", found.code, found.field, found.message)
    })
    .collect()
}

fn to(kind: &str, name: &str) -> String {
    let group = if kind == "Service" {
        "''"
    } else {
        "networking.istio.io"
    };
    format!(
        "targetRefs: [{{group: {group}, kind: {kind}, name: {name}}}], requestBuffer: {{limit: 1Ki}}"
    )
}

#[test]
fn targets_exist_and_forward() {
    let section = |name: &str| to("VirtualService", &format!("shop, sectionName: {name}"));
    for (spec, expected) in [
        (to("Gateway", "edge"), vec![]),
        (to("VirtualService", "shop"), vec![]),
        (section("api"), vec![]),
        (
            to("Gateway", "edg"),
            vec![
                "RL102 spec.targetRefs[0]: no Gateway has the name `default/edg`: the limits apply to nothing",
            ],
        ),
        (
            section("apis"),
            vec![
                "RL102 spec.targetRefs[0]: no http rule of VirtualService/default/shop has the name `apis`",
            ],
        ),
        (
            section("old"),
            vec!["RL105 spec.targetRefs[0]: redirects and direct responses are not limited"],
        ),
        (
            to("Service", "web"),
            vec!["RL107 spec.targetRefs[0]: bodies of gRPC requests are not limited"],
        ),
    ] {
        assert_eq!(found(&[("own", &spec)]), expected, "{spec}");
    }
}

#[test]
fn target_has_one_policy() {
    let spec = to("Gateway", "edge");
    let expected = "RL103 spec.targetRefs[0]: BackendTrafficPolicy/default/a is older, and has the same target";
    assert_eq!(found(&[("a", &spec), ("b", &spec)]), [expected]);
}

#[test]
fn clients_do_not_choose_what_tells_them_apart() {
    let with = |selectors: &str| {
        let target = "targetRefs: [{group: networking.istio.io, kind: Gateway, name: edge}]";
        let limit = "limit: {requests: 1, unit: Second}";
        format!(
            "{target}, rateLimit: {{local: {{rules: [{{clientSelectors: [{selectors}], {limit}}}]}}}}"
        )
    };
    let address = "{sourceCIDR: {type: Distinct, value: 0.0.0.0/0}}";
    let message = |what: &str| {
        vec![format!(
            "RL106 spec.rateLimit: a client that changes the {what} has a limit of its own again"
        )]
    };
    for (selectors, expected) in [
        (address, vec![]),
        ("{headers: [{name: X-User, type: Distinct}]}", vec![]),
        (
            "{headers: [{name: x-key, type: Distinct}]}",
            message("header `x-key`"),
        ),
        (
            "{queryParams: [{name: key, type: Distinct}]}",
            message("query parameter `key`"),
        ),
        (
            &*format!("{{headers: [{{name: x-key, type: Distinct}}]}}, {address}"),
            vec![],
        ),
        ("{headers: [{name: x-key, value: a}]}", vec![]),
    ] {
        assert_eq!(found(&[("own", &with(selectors))]), expected, "{selectors}");
    }
}
