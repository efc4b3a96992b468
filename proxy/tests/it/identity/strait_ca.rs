//! Identity of the workload from Strait's own CA, in the test process: joined by token, renewed by certificate, rotated.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command as Process, Stdio};
use std::sync::Arc;
use std::time::Duration;

use config_server::identities::{Command, Keep, NewJoinToken, Times, commands};
use config_server::store::Store;
use config_server::{IssueIdentities, Settings};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use super::rotation::Mesh;
use crate::support::eventually;
use crate::support::mesh::{gateway, routes};
use crate::support::proxy::{Proxy, Start, free_address};

/// Server of a data directory with a CA.
struct OwnCa {
    data: tempfile::TempDir,
    address: SocketAddr,
    store: Arc<dyn Store>,
    runtime: Runtime,
}

impl OwnCa {
    fn start(life_max: Duration) -> Self {
        let data = tempfile::tempdir().unwrap();
        let listen = "127.0.0.1:0".parse().unwrap();
        let settings = Settings {
            identities: Some(IssueIdentities {
                trust_domain: "cluster.local".to_owned(),
                allows_unbound: false,
                files: None,
                times: Times {
                    life_max,
                    interval: Duration::from_millis(50),
                    margin: Duration::from_secs(1),
                    ..Times::default()
                },
            }),
            ..Settings::new(data.path().to_owned(), listen)
        };
        let runtime = Builder::new_multi_thread().enable_all().build().unwrap();
        let running = runtime.block_on(config_server::start(&settings)).unwrap();
        let (address, store) = (running.address, running.store());
        runtime.spawn(running.serve());
        Self {
            data,
            address,
            store,
            runtime,
        }
    }

    fn run(&self, command: &Command) -> Value {
        let keep = Keep::Store(Arc::clone(&self.store));
        let ran = self.runtime.block_on(commands::run(&keep, command));
        ran.unwrap()
    }

    fn file(&self, name: &str) -> String {
        let path = self.data.path().join(name);
        path.to_str().unwrap().to_owned()
    }

    /// Returns the flags of a workload, and writes its join token.
    fn flags(&self, namespace: &str, account: &str) -> Vec<String> {
        let created = self.run(&Command::CreateToken(NewJoinToken {
            namespace: namespace.to_owned(),
            service_account: account.to_owned(),
            uses: 1,
            expires_in: 3_600,
        }));
        let token = self.file(&format!("{account}.token"));
        std::fs::write(&token, created["token"].as_str().unwrap()).unwrap();
        let flags = [
            ("--identity", "strait-ca".to_owned()),
            ("--control-ca", self.file("ca.crt")),
            ("--ca-token", token),
            ("--namespace", namespace.to_owned()),
            ("--service-account", account.to_owned()),
        ];
        let flags = flags.into_iter();
        flags
            .flat_map(|(flag, value)| [flag.to_owned(), value])
            .collect()
    }

    /// Returns the flags with the address of the CA.
    fn flags_with_address(&self, namespace: &str, account: &str) -> Vec<String> {
        let mut flags = self.flags(namespace, account);
        flags.extend(["--ca-address".to_owned(), self.address.to_string()]);
        flags
    }
}

fn renewals(proxy: &Proxy) -> f64 {
    proxy.metric("strait_identity_renewals_total", &[("result", "succeeded")])
}

#[test]
fn certificates_are_renewed_and_the_root_is_rotated_under_load() {
    let ca = OwnCa::start(Duration::from_secs(4));
    let mesh = Mesh::start(|namespace, account| ca.flags_with_address(namespace, account));
    for account in ["cart", "client"] {
        // a used token is of no more use
        std::fs::remove_file(ca.file(&format!("{account}.token"))).unwrap();
    }
    let proxies = [&mesh.server, &mesh.client];
    let bundles = |expected: f64| {
        for proxy in proxies {
            eventually("the roots are followed", || {
                let labels = [("trust_domain", "cluster.local")];
                proxy.metric("strait_identity_bundle_certificates", &labels) == expected
            });
        }
    };
    bundles(1.0);
    let count = mesh.under_load(|| {
        for proxy in proxies {
            eventually("it is renewed", || renewals(proxy) >= 3.0);
        }
        ca.run(&Command::Rotate);
        bundles(2.0);
        eventually("the rotation is over", || {
            ca.run(&Command::Status)["rotation"].is_null()
        });
        bundles(1.0);
    });
    assert!(count > 500, "{count} requests");
    for proxy in proxies {
        assert!(renewals(proxy) >= 6.0);
        assert_eq!(
            proxy.metric("strait_identity_renewals_total", &[("result", "denied")]),
            0.0
        );
    }
}

/// Returns all texts below a directory.
fn texts(directory: &Path) -> String {
    let entries = std::fs::read_dir(directory).unwrap();
    let texts = entries.map(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => texts(&path),
            false => String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned(),
        }
    });
    texts.collect()
}

#[test]
fn ca_is_at_the_address_of_the_control_server_and_nothing_shows_a_key_or_token() {
    let ca = OwnCa::start(Duration::from_secs(3_600));
    let kubeconfig = std::fs::read_to_string(ca.file("proxy.kubeconfig")).unwrap();
    let control_token = kubeconfig
        .lines()
        .find_map(|line| line.trim().strip_prefix("token: "))
        .unwrap();
    std::fs::write(ca.file("control.token"), control_token).unwrap();
    let state = tempfile::tempdir().unwrap();
    let flags = ca.flags("edge", "client");
    let start = Start::new();
    let text = format!(
        "{}---\n{}",
        gateway(&[start.edge()]),
        routes("a", "['*']", "- {directResponse: {status: 200}}")
    );
    let proxy = start
        .file("mesh.yaml", text)
        .args(flags.iter().cloned())
        .args(["--control", &format!("xds://{}", ca.address)])
        .args(["--control-token", &ca.file("control.token")])
        .args(["--state", state.path().to_str().unwrap()])
        .start();
    let certs = proxy.page("/certs");
    assert!(
        certs.contains("spiffe://cluster.local/ns/edge/sa/client"),
        "{certs}"
    );
    let join_token = std::fs::read_to_string(ca.file("client.token")).unwrap();
    let pages = ["/certs", "/config_dump", "/stats/prometheus"].map(|page| proxy.page(page));
    let audit = std::fs::read_to_string(ca.file("audit.log")).unwrap();
    assert!(audit.contains("spiffe://cluster.local/ns/edge/sa/client"));
    for text in pages
        .into_iter()
        .chain([texts(state.path()), proxy.stderr(), audit])
    {
        assert!(!text.contains(&join_token) && !text.contains("PRIVATE KEY"));
    }
}

#[test]
fn used_join_token_leaves_the_proxy_waiting_until_there_is_another_one() {
    let ca = OwnCa::start(Duration::from_secs(3_600));
    let flags = ca.flags_with_address("edge", "client");
    drop(super::client(&flags, &[]).start());
    let proxy = super::client(&flags, &[]).spawn();
    let log = proxy.has_logged("the join token is used up");
    assert!(log.contains("ID002"), "{log}");
    assert!(!proxy.is_ready());
    ca.flags("edge", "client"); // writes another join token
    eventually("it is ready", || proxy.is_ready());
}

/// Process of `strait control --issue-identities`, killed on drop.
struct ControlProcess(Child);

impl ControlProcess {
    fn start(data: &Path, listen: SocketAddr) -> Self {
        let child = Process::new(env!("CARGO_BIN_EXE_strait"))
            .args([
                "control",
                "--issue-identities",
                "--listen",
                &listen.to_string(),
                "--data",
            ])
            .arg(data)
            .stderr(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }
}

impl Drop for ControlProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs `strait control identity` on a data directory; returns its output, or what it says in an error.
fn identity(data: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Process::new(env!("CARGO_BIN_EXE_strait"))
        .args(["control", "identity"])
        .args(arguments)
        .arg("--data")
        .arg(data)
        .output()
        .unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8(output.stdout).unwrap()),
        false => Err(String::from_utf8(output.stderr).unwrap()),
    }
}

#[test]
fn commands_work_on_a_running_ca_and_on_one_that_was_killed() {
    let data = tempfile::tempdir().unwrap();
    let (data, listen) = (data.path(), free_address());
    let running = ControlProcess::start(data, listen);
    eventually("the CA has its keys", || {
        identity(data, &["status"]).is_ok()
    });
    let create = [
        "token",
        "create",
        "--namespace",
        "edge",
        "--service-account",
        "client",
    ];
    let token = identity(data, &create).unwrap();
    std::fs::write(data.join("client.token"), &token).unwrap();
    let file = |name: &str| data.join(name).to_str().unwrap().to_owned();
    let flags = [
        ["--identity", "strait-ca"],
        ["--ca-address", &listen.to_string()],
        ["--control-ca", &file("ca.crt")],
        ["--ca-token", &file("client.token")],
        ["--namespace", "edge"],
        ["--service-account", "client"],
    ];
    let flags: Vec<String> = flags.concat().into_iter().map(str::to_owned).collect();
    let proxy = super::client(&flags, &[]).start();
    let listed = identity(data, &["token", "list"]).unwrap();
    assert!(
        listed.contains("edge/client") && listed.contains("uses left 0"),
        "{listed}"
    );
    assert!(!listed.contains(token.trim()));
    let status = identity(data, &["status"]).unwrap();
    assert!(status.contains("no rotation goes on"), "{status}");
    assert!(identity(data, &["rotate"]).is_err(), "needs --now");
    let rotated = identity(data, &["rotate", "--now"]).unwrap();
    assert!(rotated.contains("step 1 of 3"), "{rotated}");
    drop(running);
    let shown = identity(data, &["status"]).unwrap();
    assert_eq!(shown, rotated, "read from the store");
    let name = listed.split_whitespace().next().unwrap();
    identity(data, &["token", "revoke", name]).unwrap();
    assert_eq!(identity(data, &["token", "list"]).as_deref(), Ok(""));
    let _running = ControlProcess::start(data, listen);
    eventually("the CA answers again", || {
        identity(data, &["status"]).as_deref() == Ok(&*rotated)
    });
    // a process that has the store open may not listen yet
    eventually("a second rotation is refused", || {
        let again = identity(data, &["rotate", "--now"]);
        again.is_err_and(|error| error.contains("goes on already"))
    });
    assert!(proxy.is_ready());
}
