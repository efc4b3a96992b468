//! Headers for claims, and claims in conditions of routes.

use super::{Edge, Issuer, answered, authorization, policy};

#[test]
fn claims_become_headers_that_clients_cannot_send() {
    let issuer = Issuer::new("i", "k1");
    let fields = "outputPayloadToHeader: X-Payload, forwardOriginalToken: true, outputClaimToHeaders: \
                  [{header: x-role, claim: role}, {header: x-n, claim: number}, {header: x-f, claim: f}, \
                  {header: x-b, claim: a.b}, {header: x-l, claim: l}]";
    let edge = Edge::start(&[policy(&[issuer.rule(fields)])]);
    let forged = "x-role: admin\r\nx_role: admin\r\nX-Payload: e30\r\nx-other: kept\r\n";
    assert_eq!(edge.request("/", forged).status, 200);
    let seen = edge.last();
    for name in ["x-role", "x_role", "x-payload"] {
        assert_eq!(seen.header(name), None, "{name}");
    }
    assert_eq!(seen.header("x-other"), Some("kept"));
    let token = issuer.token(r#""role":"user","number":5,"f":1.5,"a":{"b":true},"l":["a",1]"#);
    let headers = format!("authorization: Bearer {token}\r\nConnection: x-role\r\n{forged}");
    assert_eq!(edge.request("/", &headers).status, 200);
    let seen = edge.last();
    assert_eq!(
        seen.header("authorization"),
        Some(&*format!("Bearer {token}"))
    );
    assert_eq!(seen.header("x-payload"), token.split('.').nth(1));
    for (name, value) in [
        ("x-role", "user"),
        ("x-n", "5"),
        ("x-f", "1.500000"),
        ("x-b", "true"),
        ("x-l", "WyJhIiwxXQ=="),
    ] {
        assert_eq!(seen.header(name), Some(value), "{name}");
    }
    assert_eq!(seen.header("x_role"), None);
    let before = edge.origin.seen().len();
    for role in [r"a\u0000b", r"a\r\nx-forged: 1"] {
        assert_eq!(
            edge.bearer(&issuer.token(&format!(r#""role":"{role}""#))),
            401,
            "{role}"
        );
    }
    assert_eq!(edge.origin.seen().len(), before, "nothing is forwarded");
}

#[test]
fn clients_cannot_send_headers_of_a_policy_that_was_never_valid() {
    let issuer = Issuer::new("i", "k1");
    let fields = "outputClaimToHeaders: [{header: x-tier, claim: tier}]";
    let premium = authorization(
        "ALLOW",
        "when: [{key: 'request.headers[x-tier]', values: [premium]}]",
    );
    let broken = policy(&[issuer.rule(&format!("audience: [a], {fields}"))]);
    let edge = Edge::start(&[broken, premium]);
    for forged in [
        "x-tier: premium\r\n",
        "X_Tier: premium\r\nx-tier: premium\r\n",
    ] {
        assert_eq!(edge.request("/", forged).status, 403, "{forged}");
    }
}

#[test]
fn routes_match_claims_of_verified_tokens_only() {
    let issuer = Issuer::new("i", "k1");
    let rule = |key: &str, value: &str, status: u16| {
        format!(
            "- match: [{{headers: {{'@request.auth.claims{key}': {value}}}}}]\n  directResponse: {{status: {status}}}\n"
        )
    };
    let rules = [
        rule(".sub", "{exact: alice}", 201),
        rule("[a][b]", "{prefix: x}", 202),
        rule("[a.b]", "{regex: 'y+'}", 203),
        rule(".group", "{exact: admin}", 204),
        rule(".any", "{}", 205),
        "- match: [{withoutHeaders: {'@request.auth.claims.tier': {exact: free}}}]\n  directResponse: {status: 206}\n".into(),
        "- directResponse: {status: 299}\n".into(),
    ];
    let policies = [policy(&[issuer.rule("")])];
    let edge = Edge::start_with(&[], &policies, |edge, _| answered(edge, &rules.concat()));
    for (claims, status) in [
        (r#""sub":"alice""#, 201),
        (r#""a":{"b":"xy"}"#, 202),
        (r#""a.b":"yy""#, 203),
        (r#""group":["x","admin"]"#, 204),
        (r#""any":"1""#, 205),
        (r#""any":"","tier":"paid""#, 206),
        (r#""tier":"free""#, 299),
        ("", 206),
    ] {
        assert_eq!(edge.bearer(&issuer.token(claims)), status, "{claims}");
    }
    assert_eq!(edge.request("/", "").status, 206);
    assert_eq!(
        edge.request("/", "request.auth.claims.sub: alice\r\n")
            .status,
        206
    );
    assert_eq!(edge.bearer("a.b.c"), 401);
}

#[test]
fn routes_match_headers_of_tokens_and_never_those_that_clients_send() {
    let issuer = Issuer::new("i", "k1");
    let policies =
        [policy(&[issuer.rule(
            "outputClaimToHeaders: [{header: x-role, claim: role}]",
        )])];
    let rules = "- match: [{headers: {x-role: {exact: admin}}}]\n  directResponse: {status: 201}\n\
                 - directResponse: {status: 299}\n";
    for arguments in [&[][..], &["--rate-limit-before-authorization"]] {
        let edge = Edge::start_with(arguments, &policies, |edge, _| answered(edge, rules));
        assert_eq!(edge.request("/", "x-role: admin\r\n").status, 299);
        let token = |role: &str| issuer.token(&format!(r#""role":"{role}""#));
        assert_eq!(edge.bearer(&token("admin")), 201, "{arguments:?}");
        let forged = format!(
            "x-role: admin\r\nauthorization: Bearer {}\r\n",
            token("user")
        );
        assert_eq!(edge.request("/", &forged).status, 299);
    }
}

#[test]
fn denied_request_is_logged_without_the_route_of_a_forged_header() {
    let issuer = Issuer::new("i", "k1");
    let fields = "outputClaimToHeaders: [{header: x-role, claim: role}]";
    let rules = "- name: admins\n  match: [{headers: {x-role: {exact: admin}}}]\n  directResponse: {status: 201}\n\
                 - name: others\n  directResponse: {status: 299}\n";
    let edge = Edge::start_with(&[], &[policy(&[issuer.rule(fields)])], |edge, _| {
        answered(edge, rules)
    });
    let forged = "x-role: admin\r\nauthorization: Bearer a.b.c\r\n";
    assert_eq!(edge.request("/", forged).status, 401);
    let line = || edge.proxy.access_log().pop();
    crate::support::eventually("the request is logged", || line().is_some());
    assert_eq!(line().unwrap()["route_name"], "others");
}

#[test]
fn explain_sets_the_headers_of_tokens_as_traffic_does() {
    let issuer = Issuer::new("i", "k1");
    let fields = "outputClaimToHeaders: [{header: x-role, claim: role}]";
    let admins = "when: [{key: 'request.headers[x-role]', values: [admin]}]";
    let edge = Edge::start(&[
        policy(&[issuer.rule(fields)]),
        authorization("ALLOW", admins),
    ]);
    let url = format!("http://a.test:{}/", edge.proxy.edge.port());
    let explain = |arguments: [&str; 2]| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_strait"))
            .args(["explain", "--admin", &edge.proxy.admin.to_string()])
            .args(arguments)
            .args(["GET", &url])
            .output()
            .unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let forged = explain(["--header", "x-role: admin"]);
    assert!(forged.contains("rejected with 403"), "{forged}");
    let verified = explain(["--jwt", r#"{"iss": "i", "role": "admin"}"#]);
    assert!(verified.contains("authorization allowed"), "{verified}");
}

#[test]
fn forged_header_of_a_claim_does_not_choose_the_bucket_of_a_rate_limit() {
    let issuer = Issuer::new("i", "k1");
    let limit = "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\n\
        metadata: {name: own, namespace: default}\n\
        spec: {targetRefs: [{group: networking.istio.io, kind: VirtualService, name: all}], rateLimit: {local: {rules: \
        [{clientSelectors: [{headers: [{name: x-user, type: Distinct}]}], limit: {requests: 1, unit: Hour}}]}}}\n";
    let rule = issuer.rule("outputClaimToHeaders: [{header: x-user, claim: user}]");
    let edge = Edge::start(&[policy(&[rule]), limit.to_owned()]);
    let status = |user: &str, forged: &str| {
        let token = issuer.token(&format!(r#""user":"{user}""#));
        let headers = format!("{forged}authorization: Bearer {token}\r\n");
        edge.request("/", &headers).status
    };
    assert_eq!(status("ann", ""), 200);
    for forged in ["", "x-user: bob\r\n", "x-user: eve\r\nX-User: bob\r\n"] {
        assert_eq!(status("ann", forged), 429, "{forged}");
    }
    // nor does a client without a token use up the bucket of another one
    for _ in 0..2 {
        assert_eq!(edge.request("/", "x-user: bob\r\n").status, 200);
    }
    assert_eq!(status("bob", ""), 200);
}
