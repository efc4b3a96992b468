//! `strait inject` and `strait uninject`, as a shell runs them.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const POD: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n  - {name: web, image: web}\n";

/// Runs a command with this standard input.
fn strait(arguments: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_strait"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // a command that reads no input may have ended
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn pipe_is_injected_and_goes_back() {
    let injected = strait(&["inject"], POD);
    assert_eq!(injected.status.code(), Some(0), "{}", stderr(&injected));
    let report = "strait: pod/web in default: injected (native sidecar, capture init, identity none, probes 0)\n";
    assert_eq!(stderr(&injected), report);
    let again = strait(&["inject", "--quiet"], &stdout(&injected));
    assert_eq!(
        (stdout(&again), stderr(&again)),
        (stdout(&injected), String::new())
    );
    let back = strait(&["uninject", "-o", "json"], &stdout(&injected));
    let back: serde_json::Value = serde_json::from_str(&stdout(&back)).unwrap();
    let original = serde_json::json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"},
        "spec": {"containers": [{"name": "web", "image": "web"}]},
    });
    assert_eq!(back, original);
}

#[test]
fn directory_is_read_in_order_and_written_as_documents() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
    write("b.yaml", POD);
    write(
        "a.yml",
        "kind: Service\napiVersion: v1\nmetadata: {name: web}",
    );
    write("notes.txt", "not: [yaml");
    let path = directory.path().to_str().unwrap();
    let out = strait(
        &[
            "inject",
            "-f",
            path,
            "--namespace",
            "shop",
            "--annotate-only",
        ],
        "",
    );
    let expected = "kind: Service\napiVersion: v1\nmetadata: {name: web}\n---\napiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  \
                    labels:\n    strait.io/inject: enabled\nspec:\n";
    assert!(stdout(&out).starts_with(expected), "{}", stdout(&out));
    assert!(
        stderr(&out).contains("pod/web in shop: labelled"),
        "{}",
        stderr(&out)
    );
}

#[test]
fn errors_write_nothing_and_have_an_exit_code() {
    let host = POD.replace("spec:\n", "spec:\n  hostNetwork: true\n");
    let service = "kind: Service\napiVersion: v1\n";
    for (arguments, input, code, part) in [
        (
            &["inject"][..],
            format!("{POD}---\na: [\n"),
            1,
            "standard input:",
        ),
        (
            &["inject", "-f", "/gone.yaml"],
            String::new(),
            1,
            "/gone.yaml: ",
        ),
        (
            &["inject", "--set", "captur=none"],
            POD.to_owned(),
            1,
            "did you mean `capture`?",
        ),
        (
            &["inject", "--settings", "/gone.yaml"],
            POD.to_owned(),
            1,
            "/gone.yaml: ",
        ),
        (
            &["inject", "--require"],
            service.to_owned(),
            1,
            "no workload was injected",
        ),
        (
            &["inject", "--require"],
            host.clone(),
            1,
            "no workload was injected",
        ),
        (
            &["inject", "--warnings", "error"],
            host,
            1,
            "skipped: hostNetwork",
        ),
        (
            &["inject", "--kubernetes-version", "new"],
            POD.to_owned(),
            2,
            "such as 1.31",
        ),
        (&["inject", "--fly"], POD.to_owned(), 2, "--fly"),
    ] {
        let out = strait(arguments, &input);
        assert_eq!(
            out.status.code(),
            Some(code),
            "{arguments:?}: {}",
            stderr(&out)
        );
        assert_eq!(stdout(&out), "", "{arguments:?}");
        assert!(
            stderr(&out).contains(part),
            "{arguments:?}: {}",
            stderr(&out)
        );
    }
}

#[test]
fn settings_are_shown_as_they_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("settings.yaml");
    let show = |arguments: &[&str]| {
        let arguments = [&["inject", "--show-settings"], arguments].concat();
        let out = strait(&arguments, "");
        assert_eq!(out.status.code(), Some(0), "{}", stderr(&out));
        stdout(&out)
    };
    let shown = show(&["--set", "capture=none", "--image", "a/b:1"]);
    assert!(
        shown.contains("capture: none\n") && shown.contains("image: \"a/b:1\"\n"),
        "{shown}"
    );
    fs::write(&file, &shown).unwrap();
    assert_eq!(show(&["--settings", name(&file)]), shown);
    fs::write(&file, "control:\n  uri: x\n").unwrap();
    let wrong = strait(&["inject", "--settings", name(&file)], POD);
    assert!(
        stderr(&wrong).contains("settings.yaml:2:3: control.uri: unknown setting"),
        "{}",
        stderr(&wrong)
    );
}

fn name(path: &Path) -> &str {
    path.to_str().unwrap()
}
