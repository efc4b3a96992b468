//! `strait imports`: imports that one cluster generates from the exports of others, and their use.

use std::path::Path;
use std::process::{Command, Output};

use super::exports::{export, gateway_of};
use super::*;

/// Runs `strait imports` with these arguments.
fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_strait"))
        .arg("imports")
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Creates a directory with files.
fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

fn at(directory: &Path, name: &str) -> String {
    directory.join(name).display().to_string()
}

/// Returns a remote clusters file with the gateway of c1.
fn told(host: &str, port: u16) -> String {
    format!(
        "clusters: [{{key: default/default/default/c1, gateway: {{host: {host}, port: {port}}}}}]\n"
    )
}

const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: web}\nspec: {ports: [{name: http, port: 80}]}\n";

#[test]
fn generated_imports_route_to_the_exporting_cluster() {
    let world = World::new();
    let exported = |targets: &str| {
        let rules = "rules: [{portNumber: 80, path: /c1/web, pathType: Prefix}], pathRewrite: {from: '^/c1/web/?', to: '/'}";
        export("web", &format!("{{targetClusters: [{targets}], {rules}}}"))
    };
    let c3 = "default/default/default/c3";
    let of_c1 = gateway_of(&world, 1, &[exported(c3)]);
    let told = told(&of_c1.edge.ip().to_string(), of_c1.edge.port());
    let files = directory(&[("clusters.yaml", &told)]);
    let clusters = at(files.path(), "clusters.yaml");
    let start = Start::new();
    let mesh = documents([
        gateway(&[start.edge()]),
        routes(
            "all",
            "['*']",
            "- {route: [{destination: {host: web.ns1.svc.clusterset.local, port: {number: 80}}}]}",
        ),
    ]);
    let of_c3 = start
        .args(["--cluster", "c3"])
        .file("mesh.yaml", mesh)
        .start();
    let source = format!("c1={}", of_c1.mesh().display());
    let to = at(&of_c3.mesh(), "imports.yaml");
    let write = || {
        let arguments = [
            "--for",
            "c3",
            "--from",
            &source,
            "--clusters",
            &clusters,
            "--to",
            &to,
        ];
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    };
    let get = || {
        let mut client = Raw::connect(of_c3.edge);
        who(&ask(
            &mut client,
            "GET /items HTTP/1.1\r\nHost: web.example\r\n\r\n",
        ))
    };
    assert_eq!(get(), "503");
    write();
    eventually("the import is in effect", || get() == "L1");
    assert!(world.l1.paths().iter().all(|path| path == "/items"));
    // scenario 56: another target takes its place
    let changed = std::fs::read_to_string(of_c1.mesh().join("mesh.yaml")).unwrap();
    let changed = changed.replace(&exported(c3), &exported("default/default/default/c2"));
    of_c1.write("mesh.yaml", changed);
    write();
    eventually("the import is withdrawn", || get() == "503");
}

#[test]
fn imports_prints_yaml_and_reports_diagnostics_on_standard_error() {
    let rules = "[{portNumber: 80, path: /exact, pathType: Exact}, {portNumber: 80, path: /c1/web/, pathType: Prefix}, \
                 {portNumber: 81, path: /none, pathType: Prefix}]";
    let export = export(
        "web",
        &format!("{{serviceAccountName: web, rules: {rules}}}"),
    );
    let broken = "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: x}\nspec: {hosts: 1}\n";
    let files = directory(&[
        ("a.yaml", &documents([SERVICE, &export, broken])),
        ("clusters.yaml", &told("gw.c1.example", 443)),
    ]);
    let source = format!("c1={}", at(files.path(), "a.yaml"));
    let clusters = at(files.path(), "clusters.yaml");
    let output = run(&["--for", "c3", "--from", &source, "--clusters", &clusters]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert_eq!(
        text(&output.stdout),
        "\
# Made by `strait imports --for default/default/default/c3` from what other clusters export: change that.
apiVersion: flomesh.io/v1alpha1
kind: ServiceImport
metadata:
  name: web
  namespace: ns1
spec:
  type: ClusterSetIP
  serviceAccountName: web
  ports:
    - name: http
      port: 80
      protocol: TCP
      endpoints:
        - clusterKey: default/default/default/c1
          target:
            host: gw.c1.example
            ip: \"\"
            port: 443
            path: /c1/web
"
    );
    for expected in [
        "warning[X298]",
        "warning[X299]",
        "1 import, 0 errors, 2 warnings",
    ] {
        assert!(told.contains(expected), "{told}");
    }
    assert!(
        !told.contains("VirtualService"),
        "another command's: {told}"
    );
    let own = run(&["--for", "c1", "--from", &source]);
    assert_eq!(own.status.code(), Some(0));
    assert_eq!(text(&own.stdout).lines().count(), 1, "a comment only");
}

#[test]
fn an_empty_cluster_directory_keeps_its_imports() {
    let files = directory(&[
        ("mesh.yaml", &documents([SERVICE])),
        ("clusters.yaml", &told("10.1.0.9", 80)),
        ("imports.yaml", "# as it was\n"),
    ]);
    let empty = at(files.path(), "empty");
    std::fs::create_dir(&empty).unwrap();
    let to = at(files.path(), "imports.yaml");
    let (c1, c2) = (
        format!("c1={empty}"),
        format!("c2={}", at(files.path(), "mesh.yaml")),
    );
    let fixed = ["--for", "c3", "--from", &c1, "--from", &c2, "--to", &to];
    let output = run(&fixed);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("error[IM004]: nothing is there of cluster `default/default/default/c1`"),
        "{told}"
    );
    assert!(
        told.contains("help: see whether the directory is the right one"),
        "{told}"
    );
    assert!(
        told.ends_with("1 error, 1 warning: nothing was written\n"),
        "{told}"
    );
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "# as it was\n");
    // one that exports nothing is fine, and so is what is asked for
    let full = ["--for", "c3", "--from", &c2, "--to", &to];
    assert_eq!(run(&full).status.code(), Some(0));
    std::fs::write(&to, "# as it was\n").unwrap();
    let output = run(&[&fixed[..], &["--allow-empty"]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(!std::fs::read_to_string(&to).unwrap().contains("as it was"));
}

#[test]
fn an_error_writes_no_imports() {
    let good = export(
        "web",
        "{rules: [{portNumber: 80, path: /c1/web, pathType: Prefix}]}",
    );
    let bad = good.replace("/c1/web", "web");
    let files = directory(&[
        ("good.yaml", &documents([SERVICE, &good])),
        ("bad.yaml", &documents([SERVICE, &bad])),
        ("torn.yaml", "a: [\n"),
        ("clusters.yaml", &told("10.1.0.9", 80)),
        ("imports.yaml", "# as it was\n"),
    ]);
    let clusters = at(files.path(), "clusters.yaml");
    let to = at(files.path(), "imports.yaml");
    let fails = |file: &str, more: &[&str], expected: &str| {
        let source = format!("c1={}", at(files.path(), file));
        let output = run(&[&["--for", "c3", "--from", &source, "--to", &to], more].concat());
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains(expected), "{told}");
        assert_eq!(std::fs::read_to_string(&to).unwrap(), "# as it was\n");
    };
    fails("good.yaml", &[], "error[IM002]");
    fails(
        "good.yaml",
        &[],
        "help: name the gateway in the file of --clusters",
    );
    let told = ["--clusters", &*clusters];
    fails("bad.yaml", &told, "error[SX002]");
    fails("torn.yaml", &told, "error[YAML");
    fails("missing.yaml", &told, "missing.yaml");
    let source = format!("c1={}", at(files.path(), "good.yaml"));
    for wrong in [
        &["--for", "c3"][..],
        &["--from", &source],
        &["--for", "a/b", "--from", &source],
        &["--for", "c3", "--from", "c1"],
    ] {
        assert_eq!(run(wrong).status.code(), Some(2), "{wrong:?}");
    }
}
