//! `strait control --imports-between`: a request between clusters by a generated import. Everything runs as users run
//! it: a config server and a gateway for each cluster, and the process that writes imports.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::exports::export;
use super::*;
use crate::config_server::{Control, apply, has_kubectl, kubectl};

const KEYS: [&str; 2] = ["eu/a/prod/c1", "eu/b/prod/c2"];

/// Child process, ended on drop.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a gateway that follows the config server of its cluster.
fn gateway_following(data: &Path, number: usize, more: &[String]) -> Proxy {
    let start = Start::new();
    let mut all = vec![gateway(&[start.edge()])];
    all.extend(more.iter().cloned());
    apply(data, &documents(all));
    let kubeconfig = data.join("proxy.kubeconfig");
    let kubeconfig = kubeconfig.to_str().unwrap();
    start
        .args(["--control", "kubernetes://", "--kubeconfig", kubeconfig])
        .args(["--cluster", KEYS[number]])
        .spawn()
}

/// Starts the process that writes imports between the two clusters.
fn writer(directory: &Path, gateway: SocketAddr) -> Ended {
    let told = format!(
        "clusters: [{{key: {}, gateway: {{host: {}, port: {}}}}}]\n",
        KEYS[0],
        gateway.ip(),
        gateway.port()
    );
    std::fs::write(directory.join("clusters.yaml"), told).unwrap();
    let kubeconfigs = ["c1", "c2"].map(|name| directory.join(name).join("admin.kubeconfig"));
    let between = format!("kubernetes://c1={},kubernetes://c2={}", KEYS[0], KEYS[1]);
    let child = Command::new(env!("CARGO_BIN_EXE_strait"))
        .args(["control", "--imports-between", &between, "--clusters"])
        .arg(directory.join("clusters.yaml"))
        .env("KUBECONFIG", std::env::join_paths(kubeconfigs).unwrap())
        .stderr(Stdio::null())
        .spawn();
    Ended(child.unwrap())
}

#[test]
fn request_takes_an_import_that_strait_control_wrote() {
    if !has_kubectl() {
        eprintln!("skipped: there is no kubectl");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let world = World::new();
    let data = ["c1", "c2"].map(|name| directory.join(name));
    let _servers = ["c1", "c2"].map(|name| {
        let listen = free_address().to_string();
        Control::start_with(&directory.join(name), &listen, &["--context", name])
    });
    let service = "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: web}\n\
                   spec: {ports: [{name: http, port: 80}]}\n";
    let exported = |targets: &str| {
        let rules = "rules: [{portNumber: 80, path: /c1/web, pathType: Prefix}], pathRewrite: {from: '^/c1/web/?', to: '/'}";
        export("web", &format!("{{targetClusters: [{targets}], {rules}}}"))
    };
    let of_c1 = [
        service.to_owned(),
        slice(0, "", world.l1.address()),
        exported(KEYS[1]),
    ];
    let of_c1 = gateway_following(&data[0], 0, &of_c1);
    let rule =
        "- {route: [{destination: {host: web.ns1.svc.clusterset.local, port: {number: 80}}}]}";
    let of_c2 = gateway_following(&data[1], 1, &[routes("all", "['*']", rule)]);
    let writer = writer(directory, of_c1.edge);

    let get = || {
        if std::net::TcpStream::connect(of_c2.edge).is_err() {
            return "not listening yet".to_owned();
        }
        let mut client = Raw::connect(of_c2.edge);
        who(&ask(
            &mut client,
            "GET /items HTTP/1.1\r\nHost: web.example\r\n\r\n",
        ))
    };
    eventually("c2 uses the import", || get() == "L1");
    assert!(world.l1.paths().iter().all(|path| path == "/items"));
    let own = kubectl(&data[0], &["get", "serviceimports", "-A", "-o", "name"], "");
    assert_eq!(String::from_utf8_lossy(&own.stdout), "", "not its own");
    let told = [
        "get",
        "serviceexports",
        "web",
        "-n",
        "ns1",
        "-o",
        "jsonpath={.status.conditions[*].type}",
    ];
    eventually("c1 has its conditions", || {
        let told = kubectl(&data[0], &told, "");
        String::from_utf8_lossy(&told.stdout).contains("Conflict")
    });

    // what was written stays without the one that wrote it
    drop(writer);
    assert_eq!(get(), "L1");
    let _writer = self::writer(directory, of_c1.edge);
    apply(&data[0], &exported("eu/b/prod/c3"));
    eventually("the import is withdrawn", || get() != "L1");
    let left = kubectl(&data[1], &["get", "serviceimports", "-A", "-o", "name"], "");
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
}
