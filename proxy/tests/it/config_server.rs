//! A config server and a proxy that follows it, with traffic.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::support::client::{Client, Front};
use crate::support::mesh::{gateway, routes};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::{eventually, until};

/// `strait control`, killed when this is dropped.
struct Control {
    child: Child,
    listen: String,
}

impl Control {
    fn start(data: &Path, listen: &str) -> Self {
        let child = Command::new(env!("CARGO_BIN_EXE_strait"))
            .args(["control", "--listen", listen, "--data"])
            .arg(data)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let control = Self {
            child,
            listen: listen.to_owned(),
        };
        eventually("the config server answers", || {
            let kubeconfig = data.join("proxy.kubeconfig");
            kubeconfig.exists()
                && kubectl(data, &["get", "--raw", "/readyz"], "")
                    .status
                    .success()
        });
        control
    }

    /// Ends it without a warning, as a crash does, and starts it again.
    fn crash(&mut self, data: &Path) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let listen = self.listen.clone();
        *self = Self::start(data, &listen);
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kubectl(data: &Path, arguments: &[&str], input: &str) -> Output {
    use std::io::Write;
    let mut child = Command::new("kubectl")
        .arg("--kubeconfig")
        .arg(data.join("admin.kubeconfig"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    child.wait_with_output().unwrap()
}

fn apply(data: &Path, text: &str) {
    let output = kubectl(data, &["apply", "-f", "-"], text);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
}

async fn until_says(proxy: &Proxy, text: &str) {
    until(&format!("it answers {text:?}"), async || {
        let Ok(mut client) = Client::try_connect(Front::H1, proxy.edge).await else {
            return false;
        };
        client.get("/").await.text() == text
    })
    .await;
}

fn answers(text: &str) -> String {
    let rule = format!("- directResponse: {{status: 200, body: {{string: \"{text}\"}}}}\n");
    routes("web", "[\"*\"]", &rule)
}

#[tokio::test]
async fn proxy_follows_a_config_server_through_its_crash() {
    if Command::new("kubectl")
        .arg("version")
        .arg("--client")
        .output()
        .is_err()
    {
        eprintln!("skipped: there is no kubectl");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let mut control = Control::start(&data, &free_address().to_string());
    let start = Start::new();
    apply(&data, &gateway(&[start.edge()]));
    apply(&data, &answers("one"));
    let kubeconfig = data.join("proxy.kubeconfig");
    let proxy = start
        .args(["--control", "kubernetes://", "--kubeconfig"])
        .args([kubeconfig.to_str().unwrap()])
        .spawn();
    until_says(&proxy, "one").await;
    apply(&data, &answers("two"));
    until_says(&proxy, "two").await;
    control.crash(&data);
    apply(&data, &answers("three"));
    until_says(&proxy, "three").await;
    let gone = kubectl(
        &data,
        &["delete", "virtualservice", "web", "-n", "default"],
        "",
    );
    assert!(gone.status.success(), "{gone:?}");
    until_says(&proxy, "").await;
}
