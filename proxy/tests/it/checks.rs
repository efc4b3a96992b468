//! `strait check`, and that `strait run` says the same.

use std::process::{Command, Stdio};

use crate::support::client::{Client, Front};
use crate::support::eventually;
use crate::support::mesh::{documents, gateway, routes};
use crate::support::proxy::Start;

/// The exit code of `strait check`, and what it writes to standard output.
fn check(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_strait"))
        .arg("check")
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (output.status.code().unwrap(), text)
}

fn policy(kind: &str) -> String {
    format!("apiVersion: security.istio.io/v1\nkind: {kind}\nmetadata: {{name: all}}\nspec: {{}}\n")
}

#[tokio::test]
async fn security_policies_are_warned_of_and_counted_while_they_are_not_enforced() {
    let start = Start::new();
    let rules = "- directResponse: {status: 204}";
    let mesh = documents([gateway(&[start.edge()]), routes("all", "['*']", rules)]);
    let kinds = [
        "AuthorizationPolicy",
        "PeerAuthentication",
        "RequestAuthentication",
    ];
    let proxy = start
        .file("mesh.yaml", mesh)
        .file("policies.yaml", documents(kinds.map(policy)))
        .start();
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    assert_eq!(client.get("/").await.status, 204);
    assert_eq!(proxy.metric("strait_unenforced_policies", &[]), 3.0);
    let log = proxy.stderr();
    for kind in kinds {
        let line = log
            .lines()
            .find(|line| line.contains(&format!("{kind} is not enforced")));
        assert!(line.is_some_and(|line| line.contains("WARN")), "{log}");
    }

    let path = proxy.mesh();
    let path = path.to_str().unwrap();
    let (code, text) = check(&["--config", path]);
    assert_eq!(
        (code, text.matches("warning[CM036]").count()),
        (0, 3),
        "{text}"
    );
    let (code, text) = check(&["--config", path, "--deny-warnings"]);
    assert_eq!(code, 1, "{text}");

    proxy.remove("policies.yaml");
    eventually("no policy is left", || {
        proxy.metric("strait_unenforced_policies", &[]) == 0.0
    });
    let (code, text) = check(&["--config", path, "--deny-warnings"]);
    assert_eq!(code, 0, "{text}");
}
