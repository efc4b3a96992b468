//! A real etcd, where it is installed. All tests of this process share one, each with a prefix of its own.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};

use config_server::store::etcd::EtcdSettings;
use rand::RngExt;
use tempfile::TempDir;

/// An etcd that ends with this value, or with this process: the shell that runs it waits for the end of its input.
pub struct Etcd {
    pub url: String,
    arguments: Vec<String>,
    shell: Option<Child>,
    data: TempDir,
}

/// When etcd ends by itself, the shell does, and its output with it, so that no test waits for ever.
const RUN: &str = "\"$@\" 0</dev/null & server=$!; exec 3<&0; (cat <&3 >/dev/null; kill -9 $server) 2>/dev/null & wait $server";
const ANY: &str = "http://127.0.0.1:0";

/// A URL on a port that is free, and that no connection takes for its own end while etcd does not listen there: those have
/// ports from 32768 on.
pub fn free_url() -> String {
    loop {
        let port = rand::rng().random_range(15_000..32_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return format!("http://127.0.0.1:{port}");
        }
    }
}

/// Whether etcd is installed; says so if not.
pub fn is_installed() -> bool {
    let is_installed = Command::new("etcd").arg("--version").output().is_ok();
    if !is_installed {
        println!("skipped: etcd is not installed");
    }
    is_installed
}

impl Etcd {
    /// Starts one; none if etcd is not installed.
    pub fn start() -> Option<Etcd> {
        is_installed().then(|| Etcd::start_with(&free_url(), &["--listen-peer-urls", ANY]))
    }

    /// Starts one that listens at this URL for clients.
    pub fn start_with(client_url: &str, arguments: &[&str]) -> Etcd {
        let mut etcd = Etcd {
            url: client_url.to_owned(),
            arguments: arguments
                .iter()
                .map(|&argument| argument.to_owned())
                .collect(),
            shell: None,
            data: tempfile::tempdir().unwrap(),
        };
        let serving = etcd.run();
        etcd.url = serving.recv().expect("etcd tells where it serves");
        etcd
    }

    /// Starts the process on its data, at its URL. The result tells where it serves, once it does.
    pub fn run(&mut self) -> Receiver<String> {
        let mut shell = Command::new("sh")
            .args(["-c", RUN, "sh", "etcd", "--logger", "zap", "--data-dir"])
            .arg(self.data.path().join("etcd"))
            .args(["--listen-client-urls", &self.url])
            .args(["--advertise-client-urls", &self.url])
            .args(&self.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(shell.stderr.take().unwrap()).lines();
        self.shell = Some(shell);
        let (sender, serving) = channel();
        // What nobody reads would stop etcd.
        std::thread::spawn(move || {
            for url in lines.filter_map(|line| serving_at(&line.ok()?)) {
                let _ = sender.send(url);
            }
        });
        serving
    }

    /// Kills it as `kill -9` does.
    pub fn kill(&mut self) {
        if let Some(mut shell) = self.shell.take() {
            drop(shell.stdin.take());
            shell.wait().unwrap();
        }
    }

    /// Settings for a prefix that no other test has.
    pub fn settings(&self) -> EtcdSettings {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        EtcdSettings {
            urls: vec![self.url.clone()],
            prefix: format!("/test{}", NEXT.fetch_add(1, Ordering::Relaxed)),
            ..EtcdSettings::default()
        }
    }
}

/// The URL in the line of the log that tells it.
fn serving_at(line: &str) -> Option<String> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    let message = line["msg"].as_str()?;
    let address = line["address"].as_str()?;
    // One of them says that it is insecure.
    let scheme = match message.contains("insecure") {
        true => "http",
        false => "https",
    };
    (message.starts_with("serving") && message.contains("client"))
        .then(|| format!("{scheme}://{address}"))
}

/// The etcd of this process.
pub fn shared() -> Option<&'static Etcd> {
    static SHARED: OnceLock<Option<Etcd>> = OnceLock::new();
    SHARED.get_or_init(Etcd::start).as_ref()
}
