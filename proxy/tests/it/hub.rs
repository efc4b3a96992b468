//! Hub in front of a real API server, which `STRAIT_TEST_KUBECONFIG` names, and a proxy that follows it, under traffic.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::kubernetes::until_says;
use crate::support::eventually;
use crate::support::mesh::{gateway, routes};
use crate::support::proxy::{Start, free_address};

/// API server, and a namespace of the test.
struct Cluster {
    kubeconfig: PathBuf,
    namespace: String,
}

impl Cluster {
    /// Runs kubectl in the namespace. Returns its output; empty if it fails.
    fn kubectl(&self, arguments: &[&str], input: &str) -> String {
        let directory = std::env::var_os("STRAIT_TEST_KUBERNETES_DIR").map(PathBuf::from);
        let own = directory.map(|directory| directory.join("bin/kubectl"));
        let program = own.filter(|path| path.exists()).unwrap_or("kubectl".into());
        let mut child = Command::new(program)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(["--namespace", &self.namespace])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        if output.status.success() {
            text
        } else {
            String::new()
        }
    }

    fn says(&self, text: &str) {
        let http = format!("- directResponse: {{status: 200, body: {{string: {text}}}}}");
        let applied = self.kubectl(&["apply", "-f", "-"], &routes("web", "[\"*\"]", &http));
        assert!(applied.contains("virtualservice"), "{applied}");
    }
}

/// Process of the hub, killed on drop.
struct Hub(Child);

impl Hub {
    /// Starts a hub that also injects and writes conditions.
    fn start(cluster: &Cluster, address: SocketAddr, health: SocketAddr, settings: &Path) -> Hub {
        let child = Command::new(env!("CARGO_BIN_EXE_strait"))
            .args(["control", "--serve", "kubernetes://", "--inject"])
            .args(["--status-for", "kubernetes://", "--kubeconfig"])
            .arg(&cluster.kubeconfig)
            .args([
                "--listen",
                &address.to_string(),
                "--health",
                &health.to_string(),
            ])
            .args([
                "--inject-listen",
                &free_address().to_string(),
                "--inject-settings",
            ])
            .arg(settings)
            .args(["--tls-name", &address.ip().to_string()])
            .args(["--lease-namespace", &cluster.namespace])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Hub(child)
    }
}

impl Drop for Hub {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn kubeconfig_of(hub: SocketAddr, ca: &Path, token: &str) -> String {
    let ca = ca.display();
    format!(
        "{{apiVersion: v1, kind: Config, current-context: hub, contexts: [{{name: hub, context: {{cluster: hub, user: hub}}}}], \
         clusters: [{{name: hub, cluster: {{server: \"https://{hub}\", certificate-authority: {ca}}}}}], \
         users: [{{name: hub, user: {{token: \"{token}\"}}}}]}}"
    )
}

#[tokio::test]
async fn proxy_follows_the_hub_and_keeps_its_configuration_without_it() {
    let Some(kubeconfig) = std::env::var_os("STRAIT_TEST_KUBECONFIG") else {
        eprintln!("skipped: STRAIT_TEST_KUBECONFIG names no API server");
        return;
    };
    let cluster = Cluster {
        kubeconfig: kubeconfig.into(),
        namespace: format!("hub-of-proxy-{}", std::process::id()),
    };
    let name = &*cluster.namespace;
    let files = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = files.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let settings = file("settings.yaml", &format!("revision: {name}\n"));
    cluster.kubectl(&["create", "namespace", name], "");
    cluster.kubectl(
        &["label", "namespace", name, &format!("istio.io/rev={name}")],
        "",
    );
    cluster.kubectl(&["create", "serviceaccount", "web"], "");
    let (address, health) = (free_address(), free_address());
    let hub = Hub::start(&cluster, address, health, &settings);

    // as an injected proxy mounts them
    let read = [
        "get",
        "configmap",
        "strait-ca",
        "--output",
        "jsonpath={.data.ca\\.crt}",
    ];
    let mut authority = String::new();
    eventually("the CA is in the namespace", || {
        authority = cluster.kubectl(&read, "");
        !authority.is_empty()
    });
    let ca = file("ca.crt", &authority);
    let token = cluster.kubectl(
        &["create", "token", "web", "--audience", "strait-control"],
        "",
    );
    let token_file = file("token", &token);
    let start = Start::new();
    cluster.kubectl(&["apply", "-f", "-"], &gateway(&[start.edge()]));
    cluster.says("one");
    let server = format!("xds://{address}");
    let proxy = start
        .args(["--namespace", name, "--control", &server])
        .args(["--control-ca", ca.to_str().unwrap()])
        .args(["--control-token", token_file.to_str().unwrap()])
        .spawn();
    until_says(&proxy, "one").await;
    cluster.says("two");
    until_says(&proxy, "two").await;
    let kubeconfig = file("kubeconfig", &kubeconfig_of(address, &ca, token.trim()));
    eventually("the hub knows the proxy", || {
        let output = Command::new(env!("CARGO_BIN_EXE_strait"))
            .args(["control", "status", "--kubeconfig"])
            .arg(&kubeconfig)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).contains(name)
    });

    drop(hub);
    until_says(&proxy, "two").await;
    let _hub = Hub::start(&cluster, address, health, &settings);
    cluster.says("three");
    until_says(&proxy, "three").await;
    cluster.kubectl(&["delete", "namespace", name, "--wait=false"], "");
}
