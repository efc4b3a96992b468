//! SPIRE server and agent of one trust domain.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::support::eventually;
use crate::support::proxy::free_address;

/// Life of a certificate, in seconds. SPIRE renews it 10 s before its middle, since it begins 10 s early.
pub(super) const LIFE: u32 = 20;

const NODE: &str = "spiffe://cluster.local/node";

/// Both programs, ended on drop.
pub(super) struct Spire {
    programs: PathBuf,
    directory: tempfile::TempDir,
    server: Child,
    agent: Option<Child>,
}

impl Drop for Spire {
    fn drop(&mut self) {
        self.stop_agent();
        end(&mut self.server);
    }
}

impl Spire {
    /// Starts both; `None` without SPIRE.
    #[expect(clippy::print_stderr, reason = "a test that is skipped says why")]
    pub(super) fn start() -> Option<Self> {
        let Some(programs) = std::env::var_os("SPIRE").map(PathBuf::from) else {
            eprintln!("skipped: SPIRE names no folder with spire-server and spire-agent");
            return None;
        };
        let directory = tempfile::tempdir().unwrap();
        let at = free_address();
        let root = directory.path().display();
        let (ip, port) = (at.ip(), at.port());
        let server = format!(
            "server {{\n  bind_address = \"{ip}\"\n  bind_port = \"{port}\"\n  socket_path = \"{root}/server.sock\"\n  \
             trust_domain = \"cluster.local\"\n  data_dir = \"{root}/server\"\n  default_x509_svid_ttl = \"1h\"\n}}\n\
             plugins {{\n  DataStore \"sql\" {{ plugin_data {{ database_type = \"sqlite3\", \
             connection_string = \"{root}/server/data.sqlite3\" }} }}\n  NodeAttestor \"join_token\" {{ plugin_data {{}} }}\n  \
             KeyManager \"memory\" {{ plugin_data {{}} }}\n}}\n"
        );
        let agent = format!(
            "agent {{\n  data_dir = \"{root}/agent\"\n  server_address = \"{ip}\"\n  server_port = \"{port}\"\n  \
             socket_path = \"{root}/agent.sock\"\n  trust_domain = \"cluster.local\"\n  insecure_bootstrap = true\n  \
             experimental {{ sync_interval = \"1s\" }}\n}}\n\
             plugins {{\n  NodeAttestor \"join_token\" {{ plugin_data {{}} }}\n  \
             KeyManager \"disk\" {{ plugin_data {{ directory = \"{root}/agent\" }} }}\n  \
             WorkloadAttestor \"unix\" {{ plugin_data {{}} }}\n}}\n"
        );
        for (name, config) in [("server", server), ("agent", agent)] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
            std::fs::write(directory.path().join(format!("{name}.conf")), config).unwrap();
        }
        let server = run(&programs, &directory, "server", &[]);
        let mut spire = Self {
            programs,
            directory,
            server,
            agent: None,
        };
        eventually("the server answers", || {
            spire.server(&["healthcheck"]).is_some()
        });
        let token = spire.server(&["token", "generate", "-spiffeID", NODE]);
        let token = token.unwrap().trim().replace("Token: ", "");
        spire.agent = Some(run(
            &spire.programs,
            &spire.directory,
            "agent",
            &["-joinToken", &token],
        ));
        spire.awaits_agent();
        Some(spire)
    }

    /// Starts the agent again, which has its key and its certificate still.
    pub(super) fn start_agent(&mut self) {
        self.agent = Some(run(&self.programs, &self.directory, "agent", &[]));
        self.awaits_agent();
    }

    pub(super) fn stop_agent(&mut self) {
        if let Some(mut agent) = self.agent.take() {
            end(&mut agent);
        }
    }

    fn awaits_agent(&self) {
        let socket = self.directory.path().join("agent.sock");
        eventually("the agent listens", || {
            std::os::unix::net::UnixStream::connect(&socket).is_ok()
        });
    }

    /// Runs a command of the server, and returns its output; `None` if it fails.
    fn server(&self, arguments: &[&str]) -> Option<String> {
        let socket = self.directory.path().join("server.sock");
        let output = Command::new(self.programs.join("spire-server"))
            .args(arguments)
            .arg("-socketPath")
            .arg(socket)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        output.status.success().then_some(text)
    }

    /// Registers an identity for the processes with this selector, with the bundles of other trust domains.
    pub(super) fn register(&self, entry: &str, id: &str, selector: &str, others: &[&str]) {
        let ttl = LIFE.to_string();
        let mut arguments = vec!["entry", "create", "-entryID", entry, "-parentID", NODE];
        arguments.extend(["-spiffeID", id, "-selector", selector, "-x509SVIDTTL", &ttl]);
        for other in others {
            arguments.extend(["-federatesWith", other]);
        }
        self.server(&arguments).unwrap();
    }

    pub(super) fn unregister(&self, entry: &str) {
        self.server(&["entry", "delete", "-entryID", entry])
            .unwrap();
    }

    /// Adds the bundle of another trust domain.
    pub(super) fn trusts(&self, domain: &str, pem: &str) {
        let path = self.directory.path().join("bundle.pem");
        std::fs::write(&path, pem).unwrap();
        let path = path.to_str().unwrap();
        self.server(&["bundle", "set", "-id", domain, "-path", path])
            .unwrap();
    }

    /// Runs a step of the rotation of the authority, and returns the id of the authority in a field of its answer.
    pub(super) fn authority(&self, verb: &str, arguments: &[&str], field: &str) -> String {
        let mut all = vec!["localauthority", "x509", verb, "-output", "json"];
        all.extend(arguments);
        let answer: Value = serde_json::from_str(&self.server(&all).unwrap()).unwrap();
        let id = answer[field]["authority_id"].as_str();
        id.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Returns the flags of a workload.
    pub(super) fn flags(&self, namespace: &str, account: &str) -> Vec<String> {
        let socket = format!("unix://{}/agent.sock", self.directory.path().display());
        [
            ("--identity", "workload-api"),
            ("--workload-api", &socket),
            ("--namespace", namespace),
            ("--service-account", account),
        ]
        .into_iter()
        .flat_map(|(flag, value)| [flag.to_owned(), value.to_owned()])
        .collect()
    }
}

/// Starts a program with its configuration; its log is in the directory.
fn run(
    programs: &std::path::Path,
    directory: &tempfile::TempDir,
    name: &str,
    arguments: &[&str],
) -> Child {
    let file = |suffix: &str| directory.path().join(format!("{name}.{suffix}"));
    let log = File::create(file("log")).unwrap();
    Command::new(programs.join(format!("spire-{name}")))
        .args(["run", "-config"])
        .arg(file("conf"))
        .args(arguments)
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}
