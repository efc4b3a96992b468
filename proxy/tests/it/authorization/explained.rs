//! Decisions of policies in `strait explain`.

use std::process::Command;

use super::{Edge, of, policy, to};

/// Returns what `strait explain` says of the running proxy.
fn explain(edge: &Edge, arguments: &[&str], method: &str, path: &str) -> String {
    let admin = edge.proxy.admin.to_string();
    let url = format!("http://a.test:{}{path}", edge.proxy.edge.port());
    let output = Command::new(env!("CARGO_BIN_EXE_strait"))
        .args(["explain", "--admin", &admin])
        .args(arguments)
        .args([method, &url])
        .output()
        .unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

#[test]
fn explain_shows_each_policy_and_the_field_that_failed() {
    let edge = Edge::start(&[]);
    let sources = "from: [{source: {principals: ['cluster.local/ns/web/sa/*']}}], to: [{operation: {methods: [GET]}}]";
    let token = "when: [{key: 'request.auth.claims[role]', values: [admin]}]";
    edge.set(&[
        of("DENY", &to("paths: [/admin*]")),
        policy("front", &format!("rules: [{{{sources}}}, {{{token}}}]")),
    ]);
    let denied = explain(&edge, &[], "GET", "/cart");
    for part in [
        "outcome       rejected with 403 -: RBAC: access denied: no rule of an ALLOW policy matches",
        "DENY    default/deny  no match: paths (/admin*): /cart",
        "ALLOW   default/front  no match: principals (cluster.local/ns/web/sa/*): absent",
        "ALLOW   default/front  no match: values of request.auth.claims[role] (admin): absent",
        "policies.yaml:",
    ] {
        assert!(denied.contains(part), "{part}\n{denied}");
    }
    let web = ["--identity", "cluster.local/ns/web/sa/web"];
    let allowed = explain(&edge, &web, "GET", "/cart");
    assert!(allowed.contains("authorization allowed"), "{allowed}");
    assert!(
        allowed.contains("ALLOW   default/front  matched"),
        "{allowed}"
    );
    let other = explain(&edge, &web, "POST", "/cart");
    assert!(other.contains("methods (GET): POST"), "{other}");
    let admin = explain(&edge, &web, "GET", "/admin/x");
    assert!(admin.contains("denied: default/deny, line"), "{admin}");
    let token = explain(&edge, &["--jwt", r#"{"role": ["admin"]}"#], "POST", "/cart");
    assert!(token.contains("authorization allowed"), "{token}");
    let wrong = explain(&edge, &["--identity", "web"], "GET", "/");
    assert!(
        wrong.contains("TRUST-DOMAIN/ns/NAMESPACE/sa/SERVICE-ACCOUNT"),
        "{wrong}"
    );
    // as the request that is explained
    edge.expect("as explained", &[("/cart", 403), ("/admin/x", 403)]);
}
