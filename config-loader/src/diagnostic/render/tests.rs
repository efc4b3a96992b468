//! Golden file tests of the renderers.

use super::*;
use crate::diagnostic::codes::common::SRC001;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::load_bytes;

/// Sample file with errors of many kinds.
const TEXT: &str = r#"apiVersion: v1
kind: Service
metadata:
  name: Edge
  lables: {a: b}
spec: {ports: [{port: 80}]}
---
apiVersion: networking.istio.io/v7
kind: Sidecar
metadata: {name: a}
---
apiVersion: v1
kind: Endpoints
metadata: {name: a}
---
apiVersion: v1
kind: Service
metadata:
  name: a
  namespace: yes
  labels: {größe: "über, alles: 100%"}
  name: b
spec: {ports: [{port: 80}]}
---
kind: [
"#;

fn found() -> Vec<Diagnostic> {
    let mut found = Diagnostics::default();
    load_bytes("mesh.yaml", TEXT.as_bytes(), &mut found);
    found.into_sorted()
}

#[test]
fn text_shows_the_source_line() {
    insta::assert_snapshot!(text(&found(), Style::Plain));
}

#[test]
fn json_is_one_array_with_stable_keys() {
    let list = json(&found());
    let keys: Vec<&String> = list[0].as_object().expect("an object").keys().collect();
    assert_eq!(
        keys,
        [
            "severity", "code", "object", "file", "line", "column", "length", "field", "message",
            "help", "related"
        ]
    );
    insta::assert_snapshot!(format!("{list:#}"));
    assert_eq!(json(&[]), serde_json::json!([]));
}

#[test]
fn github_commands_are_escaped() {
    insta::assert_snapshot!(github(&found()));
    let file = "a,b:c%.yaml".into();
    let mut odd = Diagnostic::about_file(Severity::Warning, SRC001, file, "50%\r\nof a: b, c");
    odd.help("x\ny");
    assert_eq!(
        github(&[odd]),
        "::warning file=a%2Cb%3Ac%25.yaml,title=SRC001::50%25%0D%0Aof a: b, c%0Ahelp: x%0Ay\n"
    );
}

#[test]
fn whole_files_and_long_lines_are_shown_with_bounded_length() {
    let about = Diagnostic::about_file(
        Severity::Error,
        SRC001,
        "nowhere.yaml".into(),
        "there is no such file",
    );
    assert_eq!(
        text(&[about], Style::Plain),
        "error[SRC001]: there is no such file\n--> nowhere.yaml\n\n"
    );
    let huge = format!(
        "{{\"kind\": \"Nothing\", \"x\": \"{}\", \"y\": [}}",
        "ä".repeat(10_000)
    );
    let mut found = Diagnostics::default();
    load_bytes("huge.json", huge.as_bytes(), &mut found);
    let shown = text(&found.into_sorted(), Style::Plain);
    assert!(shown.contains("huge.json:1:10036"), "{shown}");
    assert!(shown.len() < 2_000, "{shown}");
}

#[test]
fn colors_are_only_for_terminals() {
    assert!(text(&found(), Style::Coloured).contains('\u{1b}'));
    assert!(!text(&found(), Style::Plain).contains('\u{1b}'));
}

#[test]
fn diagnostics_are_counted() {
    assert_eq!(summary(&found()), "9 errors, 1 note");
    assert_eq!(summary(&[]), "no findings");
}
