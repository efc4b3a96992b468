//! `strait check --access`: decisions as a table, which are those of traffic.

use std::process::Command;

use super::{Edge, from, of, policy, to};
use crate::support::mesh::documents;
use crate::support::tls::files;

/// Output of `strait check --access`, and whether it succeeded.
fn check(policies: &[String], access: &str, flags: &[&str]) -> (String, bool) {
    let directory = tempfile::tempdir().unwrap();
    let policies = documents(policies);
    files(
        directory.path(),
        &[("mesh.yaml", &policies), ("access.yaml", access)],
    );
    let output = Command::new(env!("CARGO_BIN_EXE_strait"))
        .current_dir(directory.path())
        .args(["check", "mesh.yaml", "--access", "access.yaml"])
        .args(flags)
        .output()
        .unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (text, output.status.success())
}

/// Policies, with one for another workload.
fn policies() -> Vec<String> {
    let web = format!(
        "{}, {}",
        from("principals: ['cluster.local/ns/web/sa/*']"),
        to("methods: [GET]")
    );
    let admin = "when: [{key: 'request.auth.claims[role]', values: [admin]}]";
    let office = from("ipBlocks: [10.1.0.0/16]");
    vec![
        of("DENY", &to("paths: [/secret*]")),
        policy(
            "front",
            &format!("rules: [{{{web}}}, {{{admin}}}, {{{office}}}]"),
        ),
        policy(
            "other",
            "selector: {matchLabels: {app: other}}, action: DENY, rules: [{}]",
        ),
    ]
}

const TABLE: &str = "
as: {labels: {app: edge}}
identities:
  web: {principal: cluster.local/ns/web/sa/web}
  admin: {claims: {role: admin}}
  office: {address: 10.1.2.3}
  none: {}
requests:
  read: GET /cart
  write: POST /cart
  secret: GET /a/../secret/x
  raw: tcp://a.test:9000
";

#[test]
fn table_shows_who_may_do_what_and_by_which_rule() {
    let (text, succeeded) = check(&policies(), TABLE, &[]);
    assert!(succeeded, "{text}");
    for line in [
        "        read   write  secret  raw",
        "web     allow  deny   deny    deny",
        "admin   allow  allow  deny    deny",
        "office  allow  allow  deny    deny",
        "none    deny   deny   deny    deny",
        "web     write (POST /cart)           deny   no rule of an ALLOW policy matches",
        "office  raw (tcp://a.test:9000)      deny   default/deny, line 5 matches",
        "office  read (GET /cart)             allow  default/front, line 10 matches",
        "none    secret (GET /a/../secret/x)  deny   default/deny, line 5 matches",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let everyone = check(&[], TABLE, &[]).0;
    assert!(
        everyone.contains("no policy applies to the proxy"),
        "{everyone}"
    );
}

#[test]
fn difference_from_what_is_expected_is_an_error_with_its_location() {
    let right =
        format!("{TABLE}expect: {{web: {{read: allow, write: deny}}, none: {{raw: deny}}}}\n");
    let (text, succeeded) = check(&policies(), &right, &[]);
    assert!(succeeded, "{text}");
    let wrong = right.replace("write: deny", "write: allow");
    let (text, succeeded) = check(&policies(), &wrong, &[]);
    assert!(!succeeded, "{text}");
    for part in [
        "error[ACC003]: `write` of `web` gets deny: no rule of an ALLOW policy matches",
        "access.yaml:13:36",
        "web     allow  deny (not expected)  deny    deny",
        "1 error, ",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let (json, succeeded) = check(&policies(), &wrong, &["-o", "json"]);
    assert!(!succeeded);
    let found: serde_json::Value = serde_json::from_str(&json).expect("only findings");
    let mut found = found["findings"].as_array().unwrap().iter();
    assert!(found.any(|one| one["code"] == "ACC003"), "{json}");
    let (text, succeeded) = check(&policies(), &wrong.replace("ns/web", "web"), &[]);
    assert!(!succeeded && text.contains("error[ACC002]"), "{text}");
    let (text, succeeded) = check(&policies(), "identities: [web]\n", &[]);
    assert!(!succeeded && text.contains("error[CM022]"), "{text}");
}

#[test]
fn decisions_of_the_table_are_those_of_traffic() {
    let edge = Edge::start(&[]);
    edge.set(&policies());
    let (text, _) = check(&policies(), TABLE, &["--labels", "app=edge"]);
    let row = text.lines().find(|line| line.starts_with("none ")).unwrap();
    let decisions: Vec<&str> = row.split_whitespace().skip(1).take(3).collect();
    for (target, decision) in ["/cart", "POST /cart", "/a/../secret/x"]
        .iter()
        .zip(decisions)
    {
        let expected = if decision == "allow" { 200 } else { 403 };
        assert_eq!(
            edge.request(target, "a.test", "").status,
            expected,
            "{target}"
        );
    }
}
