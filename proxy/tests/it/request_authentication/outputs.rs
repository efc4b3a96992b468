//! Headers for claims, and claims in conditions of routes.

use super::{Edge, Issuer, answered, policy};

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
