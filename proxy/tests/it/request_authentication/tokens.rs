//! Accepted tokens, and their locations.

use super::{Edge, Issuer, authorization, now, policy};

const FORM: &str =
    "Jwt is not in the form of Header.Payload.Signature with two dots and 3 sections";

#[test]
fn request_without_token_goes_on_and_a_bad_token_is_refused() {
    let issuer = Issuer::new("i", "k1");
    let edge = Edge::start(&[policy(&[issuer.rule("audiences: [shop]")])]);
    let good = issuer.token(r#""sub":"alice""#);
    let get = |headers: &str| edge.request("/a?b=c", headers);
    for headers in [
        "",
        "authorization: Basic x\r\n",
        "authorization: Bearer\r\n",
    ] {
        assert_eq!(get(headers).status, 200, "{headers}");
    }
    for scheme in ["Bearer", "bearer", "BEARER", "Bearer  "] {
        assert_eq!(
            get(&format!("authorization: {scheme} {good}\r\n")).status,
            200,
            "{scheme}"
        );
        assert_eq!(edge.last().header("authorization"), None);
    }
    let twice = format!("authorization: Bearer {good}\r\nauthorization: Bearer {good}\r\n");
    assert_eq!(get(&twice).body, FORM.as_bytes());
    let mixed = format!("authorization: Bearer {good}\r\nauthorization: Basic x\r\n");
    assert_eq!(get(&mixed).status, 401);
    let mixed = format!("authorization: Basic x\r\nauthorization: Bearer {good}\r\n");
    assert_eq!(get(&mixed).status, 401);
    let refused = get("authorization: Bearer a.b\r\n");
    assert_eq!((refused.status, &*refused.body), (401, FORM.as_bytes()));
    assert!(refused.has("content-type: text/plain"), "{refused:?}");
    let challenge = r#"www-authenticate: Bearer realm="http://a.test/a", error="invalid_token""#;
    assert!(refused.has(challenge), "{refused:?}");
    let grpc = get("authorization: Bearer a.b\r\ncontent-type: application/grpc\r\n");
    assert!(grpc.has("grpc-status: 16"), "{grpc:?}");
    let attacker = Issuer::new("i", "k1");
    assert_eq!(edge.bearer(&attacker.token("")), 401);
    assert_eq!(edge.bearer(&Issuer::new("j", "k1").token("")), 401);
    let other = issuer.signed(r#"{"iss":"i","aud":"other"}"#);
    let other = get(&format!("authorization: Bearer {other}\r\n"));
    assert_eq!(
        (other.status, &*other.body),
        (403, &b"Audiences in Jwt are not allowed"[..])
    );
    let preflight = "authorization: Bearer a.b\r\norigin: http://b.test\r\naccess-control-request-method: GET\r\n";
    assert_eq!(edge.request("OPTIONS /", preflight).status, 200);
    let logged = |text: &str| {
        edge.proxy
            .access_log()
            .iter()
            .any(|line| line.to_string().contains(text))
    };
    crate::support::eventually("details are logged", || {
        logged("jwt_authn_access_denied{Audiences_in_Jwt_are_not_allowed}")
    });
}

#[test]
fn tokens_are_found_at_their_locations_and_all_must_be_valid() {
    let (i, j) = (Issuer::new("i", "k1"), Issuer::new("j", "k1"));
    let of_j =
        j.rule("fromHeaders: [{name: x-j, prefix: 'J '}], fromParams: [t], fromCookies: [c]");
    let edge = Edge::start(&[policy(&[i.rule(""), of_j])]);
    let (good, of_j, bad) = (i.token(""), j.token(""), "a.b.c");
    for (target, headers, status) in [
        (format!("/?access_token={good}"), String::new(), 200),
        (format!("/?a=b&access_token={bad}"), String::new(), 401),
        (format!("/?Access_token={bad}"), String::new(), 200),
        (
            format!("/?access_token={}", good.replace('.', "%2E")),
            String::new(),
            200,
        ),
        (
            format!("/?access_token={good}&access_token={bad}"),
            String::new(),
            401,
        ),
        (
            format!("/?access_token=&access_token={bad}"),
            String::new(),
            401,
        ),
        ("/".into(), format!("authorization: Bearer\t{bad}\r\n"), 401),
        ("/".into(), format!("cookie: c={of_j}; c={bad}\r\n"), 401),
        (
            "/".into(),
            format!("cookie: c=\r\ncookie: c={bad}\r\n"),
            401,
        ),
        (
            format!("/?access_token={bad}"),
            format!("authorization: Bearer {good}\r\n"),
            401,
        ),
        (
            format!("/?access_token={good}"),
            format!("authorization: Bearer {bad}\r\n"),
            401,
        ),
        (
            "/".into(),
            format!("authorization: Bearer {good}\r\nx-j: J {bad}\r\n"),
            401,
        ),
        (
            "/".into(),
            format!("authorization: Bearer {good}\r\nx-j: J {of_j}\r\n"),
            200,
        ),
        ("/".into(), format!("authorization: Bearer {of_j}\r\n"), 401),
        ("/".into(), format!("x-j: {bad}\r\n"), 200),
        ("/".into(), format!("x-j: J {good}\r\n"), 401),
        ("/".into(), format!("x-j: J {of_j},x\r\n"), 401),
        (format!("/?t={of_j}"), String::new(), 200),
        (format!("/?t={bad}"), String::new(), 401),
        ("/".into(), format!("cookie: a=b; c={of_j}\r\n"), 200),
        (
            "/".into(),
            format!("cookie: a=b\r\ncookie: c={bad}\r\n"),
            401,
        ),
    ] {
        let reply = edge.request(&target, &headers);
        assert_eq!(reply.status, status, "{target:.60} {headers:.60}");
        let told = format!("{reply:?}");
        assert!(status == 200 || !told.contains("access_token"), "{told}");
    }
    let ended = issuer_with_times(&i);
    for (payload, status) in ended {
        assert_eq!(edge.bearer(&i.signed(&payload)), status, "{payload}");
    }
}

fn issuer_with_times(issuer: &Issuer) -> Vec<(String, u16)> {
    let (name, now) = (issuer.name, now());
    let with = |more: String| format!(r#"{{"iss":"{name}",{more}}}"#);
    vec![
        (with(format!(r#""exp":{}"#, now - 30)), 200),
        (with(format!(r#""exp":{}"#, now - 90)), 401),
        (with(format!(r#""nbf":{}"#, now + 30)), 200),
        (with(format!(r#""nbf":{}"#, now + 90)), 401),
        (with(r#""exp":0"#.into()), 401),
        (with(r#""sub":"a""#.into()), 200),
        (with(r#""sub":"a","sub":"b""#.into()), 401),
        (
            with(format!(r#""a":{}{}"#, "[".repeat(33), "]".repeat(33))),
            401,
        ),
    ]
}

#[test]
fn policies_see_the_claims_of_a_valid_token() {
    let issuer = Issuer::new("i", "k1");
    let rule = policy(&[issuer.rule("spaceDelimitedClaims: [roles]")]);
    let edge = Edge::start(std::slice::from_ref(&rule));
    let principal = |value: &str| format!("from: [{{source: {{requestPrincipals: ['{value}']}}}}]");
    let claim = |key: &str, value: &str| {
        format!("when: [{{key: 'request.auth.claims{key}', values: ['{value}']}}]")
    };
    let alice = r#""sub":"alice""#;
    let mut before = String::new();
    for (rule_of_policy, claims, status) in [
        (principal("i/alice"), alice, 200),
        (principal("i/*"), alice, 200),
        (principal("*"), alice, 200),
        (principal("i/bob"), alice, 403),
        (principal("i/a/b"), r#""sub":"a/b""#, 403),
        (principal("i/*"), r#""sub":"""#, 403),
        (principal("*"), "", 403),
        (claim("[group]", "admin"), r#""group":"admin""#, 200),
        (
            claim("[group]", "admin"),
            r#""group":["other","admin"]"#,
            200,
        ),
        (claim("[group]", "admin"), r#""group":[["admin"]]"#, 403),
        (claim("[group]", "1"), r#""group":1"#, 403),
        (claim("[group]", "true"), r#""group":true"#, 403),
        (claim("[group]", "*"), r#""group":null"#, 403),
        (claim("[group]", "admin"), r#""group":"no admin""#, 403),
        (claim("[scope]", "write"), r#""scope":"read write""#, 200),
        (claim("[roles]", "b"), r#""roles":"a b""#, 200),
        (claim("[a][b]", "x"), r#""a":{"b":"x"}"#, 200),
        (claim("[a][b]", "x"), r#""a.b":"x""#, 403),
        (claim("[a.b]", "x"), r#""a.b":"x""#, 200),
        (claim("[a.b]", "x"), r#""a":{"b":"x"}"#, 403),
    ] {
        if rule_of_policy != before {
            edge.set(&[rule.clone(), authorization("ALLOW", &rule_of_policy)]);
            before.clone_from(&rule_of_policy);
        }
        assert_eq!(
            edge.bearer(&issuer.token(claims)),
            status,
            "{rule_of_policy} {claims}"
        );
        assert_eq!(edge.request("/", "").status, 403);
    }
    let without = "from: [{source: {notRequestPrincipals: ['*']}}]";
    edge.set(&[rule, authorization("DENY", without)]);
    assert_eq!(edge.bearer(&issuer.token(alice)), 200);
    assert_eq!(edge.request("/", "").status, 403);
}

#[test]
fn verified_token_is_cached_until_it_expires_or_its_rules_change() {
    let issuer = Issuer::new("i", "k1");
    let edge = Edge::start(&[policy(&[issuer.rule("")])]);
    let cached = |result: &str| {
        edge.proxy
            .metric("strait_jwt_cache_total", &[("result", result)])
    };
    let token = issuer.token("");
    for _ in 0..20 {
        assert_eq!(edge.bearer(&token), 200);
        assert_eq!(edge.bearer("a.b.c"), 401);
    }
    assert!(cached("hit") >= 10.0, "{}", cached("hit"));
    assert!(cached("miss") >= 20.0, "refused tokens are not kept");
    assert_eq!(
        edge.proxy
            .metric("strait_jwt_verifications_total", &[("result", "verified")]),
        20.0
    );
    assert_eq!(
        edge.proxy
            .metric("strait_jwt_verifications_total", &[("result", "refused")]),
        20.0
    );
    let soon = issuer.signed(&format!(r#"{{"iss":"i","exp":{}}}"#, now() - 58));
    assert_eq!(edge.bearer(&soon), 200);
    crate::support::eventually("it expires", || edge.bearer(&soon) == 401);
    edge.set(&[policy(&[Issuer::new("i", "k1").rule("")])]);
    assert_eq!(edge.bearer(&token), 401, "its key is gone");
    edge.set(&[]);
    assert_eq!(edge.bearer("a.b.c"), 200);
}

#[test]
fn policy_that_was_never_valid_refuses_tokens_only() {
    let issuer = Issuer::new("i", "k1");
    let edge = Edge::start(&[policy(&["{issuer: i, jwks: 'no keys'}".into()])]);
    assert_eq!(edge.bearer(&issuer.token("")), 401);
    assert_eq!(edge.request("/", "").status, 200);
    edge.set(&[policy(&[issuer.rule("")])]);
    assert_eq!(edge.bearer(&issuer.token("")), 200);
    edge.proxy
        .write("policies.yaml", policy(&["{issuer: i, jwk: 'x'}".into()]));
    crate::support::eventually("it is rejected", || {
        let kind = [("kind", "RequestAuthentication")];
        edge.proxy.metric("strait_config_resources_rejected", &kind) == 1.0
    });
    assert_eq!(
        edge.bearer(&issuer.token("")),
        200,
        "the last good version stays"
    );
}
