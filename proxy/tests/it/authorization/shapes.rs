//! Selection, actions, and policies with errors.

use super::{Edge, annotated, of, policy, table, to};
use crate::support::raw::Raw;

const DENIED: &[u8] = b"RBAC: access denied";

#[test]
fn actions_decide_in_their_order() {
    let edge = Edge::start(&[]);
    let rows: [(String, &[(&str, u16)]); 5] = [
        (policy("nothing", ""), &[("/", 403)]),
        (policy("all", "rules: [{}]"), &[("/", 200)]),
        (policy("none", "action: DENY, rules: [{}]"), &[("/", 403)]),
        (policy("other/nothing", ""), &[("/", 200)]),
        (of("AUDIT", &to("paths: [/a]")), &[("/a", 200), ("/b", 200)]),
    ];
    table(&edge, &rows);

    let deny = of("DENY", &to("paths: [/a*]"));
    edge.set(&[deny, of("ALLOW", &to("paths: [/a, /b]"))]);
    edge.expect(
        "DENY before ALLOW",
        &[("/a", 403), ("/b", 200), ("/c", 403)],
    );

    let mesh = policy(
        "istio-system/mesh",
        "rules: [{to: [{operation: {paths: [/x]}}]}]",
    );
    edge.set(std::slice::from_ref(&mesh));
    edge.expect("only of the mesh", &[("/x", 200), ("/y", 403)]);
    edge.set(&[mesh, of("ALLOW", &to("paths: [/y]"))]);
    edge.expect(
        "of mesh and namespace",
        &[("/x", 200), ("/y", 200), ("/z", 403)],
    );

    // a request without a route is denied before that shows
    let reply = Raw::connect(edge.proxy.edge)
        .send("GET /z HTTP/1.1\r\nHost: a.test\r\n\r\n")
        .reply();
    assert_eq!((reply.status, &*reply.body), (403, DENIED));
    assert!(reply.has("content-type: text/plain"));
    let line = edge.proxy.logged("/z");
    let details = "rbac_access_denied_matched_policy[none]";
    assert_eq!(line["response_code_details"], details);
    assert_eq!(line["response_flags"], "-");
}

#[test]
fn policies_apply_to_what_they_select() {
    let edge = Edge::start(&[]);
    let deny = "action: DENY, rules: [{}]";
    let rows: [(String, &[(&str, u16)]); 6] = [
        (
            policy(
                "a",
                &format!("selector: {{matchLabels: {{app: edge}}}}, {deny}"),
            ),
            &[("/", 403)],
        ),
        (
            policy(
                "a",
                &format!("selector: {{matchLabels: {{app: edge, version: v2}}}}, {deny}"),
            ),
            &[("/", 200)],
        ),
        (
            policy("a", &format!("selector: {{matchLabels: {{}}}}, {deny}")),
            &[("/", 403)],
        ),
        (
            policy(
                "istio-system/a",
                &format!("selector: {{matchLabels: {{app: edge}}}}, {deny}"),
            ),
            &[("/", 403)],
        ),
        (
            policy(
                "istio-system/a",
                &format!("selector: {{matchLabels: {{app: web}}}}, {deny}"),
            ),
            &[("/", 200)],
        ),
        (
            policy(
                "a",
                &format!(
                    "targetRefs: [{{group: gateway.networking.k8s.io, kind: Gateway, name: g}}], {deny}"
                ),
            ),
            &[("/", 200)],
        ),
    ];
    table(&edge, &rows);
    let labelled = Edge::start(&[
        "--labels",
        "gateway.networking.k8s.io/gateway-name=g,istio=ingressgateway",
    ]);
    let target = |namespace: &str, name: &str| {
        let target = format!("{{group: gateway.networking.k8s.io, kind: Gateway, name: {name}}}");
        policy(
            &format!("{namespace}/a"),
            &format!("targetRefs: [{target}], {deny}"),
        )
    };
    let one = "targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: g}";
    let other = one.replace("name: g", "name: g, namespace: other");
    let rows: [(String, &[(&str, u16)]); 5] = [
        (policy("a", &format!("{other}, {deny}")), &[("/", 200)]),
        (policy("a", &format!("{one}, {deny}")), &[("/", 403)]),
        (target("default", "g"), &[("/", 403)]),
        (target("default", "h"), &[("/", 200)]),
        (target("istio-system", "g"), &[("/", 200)]),
    ];
    table(&labelled, &rows);
}

#[test]
fn rejected_policy_keeps_its_last_version_or_denies_what_it_selects() {
    let edge = Edge::start(&[]);
    let own = "selector: {matchLabels: {app: edge}}";
    let bad = "action: DENY, rules: [{to: [{operation: {paht: [/admin]}}]}]";
    edge.set(&[policy("a", &format!("{own}, {bad}"))]);
    edge.expect("never valid", &[("/", 403)]);
    assert_eq!(
        edge.proxy
            .metric("strait_authz_policies", &[("state", "denying")]),
        1.0
    );
    let reply = edge.request("/quarantined", "a.test", "");
    assert_eq!(reply.status, 403);
    let details = "rbac_access_denied_matched_policy[ns[default]-policy[a]-invalid]";
    assert_eq!(
        edge.proxy.logged("/quarantined")["response_code_details"],
        details
    );

    let good = "action: DENY, rules: [{to: [{operation: {paths: [/admin]}}]}]";
    edge.set(&[policy("a", &format!("{own}, {good}"))]);
    edge.expect("valid", &[("/", 200), ("/admin", 403)]);
    edge.set_rejected(&[policy("a", &format!("{own}, {bad}"))]);
    edge.expect("last good version", &[("/", 200), ("/admin", 403)]);
    let quarantined = || {
        let state = [("state", "quarantined")];
        edge.proxy.metric("strait_authz_policies", &state)
    };
    assert_eq!(quarantined(), 1.0);
    let elsewhere = format!("selector: {{matchLabels: {{app: web}}}}, {bad}");
    edge.set(&[policy("a", &elsewhere), policy("b", "rules: [{}]")]);
    edge.expect(
        "the selector of a version with errors does not count",
        &[("/admin", 403)],
    );
    edge.set(&[]);
    edge.expect("none", &[("/admin", 200)]);
    assert_eq!(quarantined(), 0.0);
    edge.set(&[policy(
        "c",
        &format!("selector: {{matchLabels: {{app: web}}}}, {bad}"),
    )]);
    edge.expect("selects another workload", &[("/", 200)]);
    edge.set(&[policy(
        "c",
        &format!("selector: {{matchlabel: {{app: web}}}}, {bad}"),
    )]);
    edge.expect("its selection is unknown", &[("/", 403)]);
    edge.set(&[policy("d", "action: AUDIT, rules: [{from: []}]")]);
    edge.expect("a broken AUDIT policy", &[("/", 200)]);
}

#[test]
fn unknown_fields_of_a_policy_are_errors_whatever_the_flag_says() {
    let edge = Edge::start(&["--unknown-fields", "warning"]);
    edge.set(&[of("DENY", &to("paths: [/a], notPaht: [/b]"))]);
    edge.expect("a misspelt field", &[("/a", 403), ("/b", 403), ("/c", 403)]);
}

#[test]
fn policies_in_dry_run_decide_nothing_and_are_counted() {
    let edge = Edge::start(&[]);
    let dry = "istio.io/dry-run: 'true'";
    let deny = |annotation: &str| {
        annotated(
            "dry",
            annotation,
            "action: DENY, rules: [{to: [{operation: {paths: [/a]}}]}]",
        )
    };
    edge.set(&[deny(dry)]);
    edge.expect("DENY in dry run", &[("/a", 200), ("/b", 200)]);
    let shadow = |action: &str| {
        let labels = [
            ("namespace", "default"),
            ("policy", "dry"),
            ("action", action),
        ];
        edge.proxy.metric("strait_authz_shadow_total", &labels)
    };
    assert_eq!(shadow("DENY"), 1.0);
    assert_eq!(
        edge.proxy
            .metric("strait_authz_policies", &[("state", "dry_run")]),
        1.0
    );
    edge.set(&[deny("istio.io/dry-run: 'yes'")]);
    edge.expect("no boolean", &[("/a", 403)]);
    let allow = annotated("dry", dry, "rules: [{to: [{operation: {paths: [/a]}}]}]");
    edge.set(std::slice::from_ref(&allow));
    edge.expect("ALLOW in dry run", &[("/a", 200), ("/b", 200)]);
    assert_eq!(shadow("ALLOW"), 1.0);
    let denied = [
        ("stage", "dry_run_allow"),
        ("result", "denied"),
        ("transport", "http"),
    ];
    assert_eq!(
        edge.proxy.metric("strait_authz_decisions_total", &denied),
        1.0
    );
    edge.set(&[
        allow,
        policy("real", "rules: [{to: [{operation: {paths: [/real]}}]}]"),
    ]);
    edge.expect("beside an enforced one", &[("/a", 403), ("/real", 200)]);
}

#[test]
fn policy_changes_apply_to_the_next_request_of_a_connection() {
    let edge = Edge::start(&[]);
    let mut client = Raw::connect(edge.proxy.edge);
    let get = "GET /a HTTP/1.1\r\nHost: a.test\r\n\r\n";
    assert_eq!(client.send(get).reply().status, 200);
    edge.set(&[of("DENY", &to("paths: [/a]"))]);
    assert_eq!(client.send(get).reply().status, 403);
    edge.set(&[]);
    assert_eq!(client.send(get).reply().status, 200);
}

#[test]
fn audit_policy_is_named_in_the_log_and_counted() {
    let edge = Edge::start(&[]);
    edge.set(&[of("AUDIT", &to("paths: [/a]"))]);
    edge.expect("AUDIT", &[("/a", 200), ("/b", 200)]);
    assert_eq!(edge.proxy.logged("/a")["audit"], "audit");
    assert_eq!(edge.proxy.logged("/b")["audit"], serde_json::Value::Null);
    let labels = [
        ("namespace", "default"),
        ("policy", "audit"),
        ("action", "AUDIT"),
    ];
    assert_eq!(
        edge.proxy
            .metric("strait_authz_policy_matches_total", &labels),
        1.0
    );
}

#[test]
fn policy_with_an_unknown_provider_denies_what_it_selects() {
    let edge = Edge::start(&[]);
    edge.set(&[policy(
        "ext",
        "action: CUSTOM, provider: {name: none}, rules: [{to: [{operation: {paths: [/a]}}]}]",
    )]);
    edge.expect("CUSTOM", &[("/a", 403), ("/b", 200)]);
    let details = "rbac_access_denied_matched_policy[ns[default]-policy[ext]-rule[0]-deny-due-to-bad-CUSTOM-action]";
    assert_eq!(edge.proxy.logged("/a")["response_code_details"], details);
}

#[test]
fn sources_operations_and_conditions_of_a_rule_are_combined() {
    let edge = Edge::start(&[]);
    let rule = "from: [{source: {ipBlocks: [10.0.0.1]}}, {source: {ipBlocks: [127.0.0.0/8], notRemoteIpBlocks: [10.0.0.2]}}], \
                to: [{operation: {paths: [/a], methods: [GET]}}, {operation: {paths: [/b]}}], \
                when: [{key: 'request.headers[x]', values: [v, w]}, {key: 'request.headers[y]', notValues: [z]}]";
    edge.set(&[of("ALLOW", rule)]);
    for (target, headers, status) in [
        ("/a", "x: v\r\n", 200),
        ("/b", "x: w\r\n", 200),
        ("PUT /b", "x: w\r\n", 200),
        ("PUT /a", "x: v\r\n", 403),
        ("/c", "x: v\r\n", 403),
        ("/a", "", 403),
        ("/a", "x: u\r\n", 403),
        ("/a", "x: v\r\ny: z\r\n", 403),
        ("/b", "x: v\r\ny: a\r\n", 200),
    ] {
        let reply = edge.request(target, "a.test", headers);
        assert_eq!(reply.status, status, "{target} {headers}");
    }
}

#[test]
fn policies_that_are_errors_deny_what_they_select() {
    let edge = Edge::start(&[]);
    let many = format!("rules: [{}]", vec!["{}"; 513].join(", "));
    let target = "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: g}]";
    let both = format!("selector: {{matchLabels: {{app: edge}}}}, {target}, rules: [{{}}]");
    let mut fields = vec![
        "action: deny, rules: [{}]".to_owned(),
        "action: DENY".to_owned(),
        "action: CUSTOM, rules: [{}]".to_owned(),
        "rules: [{from: []}]".to_owned(),
        "rules: [{to: [{operation: {}}]}]".to_owned(),
        "rules: [null]".to_owned(),
        many,
        both,
    ];
    let paths =
        ["/x/{*}.txt", "/{**}/a/{*}", "/*/{*}"].map(|path| to(&format!("paths: ['{path}']")));
    let accounts = ["a/*", "a/b/c", "x], principals: [y"];
    let accounts = accounts.map(|one| super::from(&format!("serviceAccounts: [{one}]")));
    let rules = paths.into_iter().chain(accounts);
    fields.extend(rules.map(|rule| format!("rules: [{{{rule}}}]")));
    for (number, fields) in fields.iter().enumerate() {
        edge.set(&[policy(&format!("p{number}"), fields)]);
        edge.expect(fields, &[("/", 403)]);
        let denying = [("state", "denying")];
        let count = edge.proxy.metric("strait_authz_policies", &denying);
        assert_eq!(count, 1.0, "{fields}");
    }
}

#[test]
fn pages_of_the_proxy_are_not_subject_to_policies() {
    let edge = Edge::start(&[]);
    edge.set(&[policy("nothing", "")]);
    edge.expect("nothing", &[("/", 403)]);
    for page in ["/healthz/ready", "/stats/prometheus", "/config_dump"] {
        assert_eq!(edge.proxy.try_page("GET", page).unwrap().0, 200, "{page}");
    }
}
