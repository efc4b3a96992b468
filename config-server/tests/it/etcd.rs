//! Real etcd, if installed. All tests of this process share one, each with its own prefix.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};

use config_server::store::etcd::EtcdSettings;
use rand::RngExt;
use tempfile::TempDir;

/// etcd that stops when it is dropped or when this process ends: its shell waits for the end of standard input.
pub struct Etcd {
    pub url: String,
    arguments: Vec<String>,
    shell: Option<Child>,
    data: TempDir,
}

/// Shell command that runs etcd. If etcd exits by itself, so does the shell, and its output ends, so that no test
/// hangs.
const RUN: &str = "\"$@\" 0</dev/null & server=$!; exec 3<&0; (cat <&3 >/dev/null; kill -9 $server) 2>/dev/null & wait $server";
const ANY: &str = "http://127.0.0.1:0";

/// Returns a URL on a free port below 32768. Outgoing connections use ports from 32768 on, and so cannot occupy the
/// port while etcd is down.
pub fn free_url() -> String {
    loop {
        let port = rand::rng().random_range(15_000..32_000);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return format!("http://127.0.0.1:{port}");
        }
    }
}

/// Whether etcd is installed; prints a message if not.
pub fn is_installed() -> bool {
    let is_installed = Command::new("etcd").arg("--version").output().is_ok();
    if !is_installed {
        println!("skipped: etcd is not installed");
    }
    is_installed
}

impl Etcd {
    /// Starts an etcd; `None` if it is not installed.
    pub fn start() -> Option<Etcd> {
        is_installed().then(|| Etcd::start_with(&free_url(), &["--listen-peer-urls", ANY]))
    }

    /// Starts an etcd with this client URL.
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

    /// Starts the process on its data, at its URL. The receiver gets the URL once etcd serves it.
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
        // Unread output would block etcd.
        std::thread::spawn(move || {
            for url in lines.filter_map(|line| serving_at(&line.ok()?)) {
                let _ = sender.send(url);
            }
        });
        serving
    }

    /// Kills the process with SIGKILL.
    pub fn kill(&mut self) {
        if let Some(mut shell) = self.shell.take() {
            drop(shell.stdin.take());
            shell.wait().unwrap();
        }
    }

    /// Returns settings with a prefix that no other test uses.
    pub fn settings(&self) -> EtcdSettings {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        EtcdSettings {
            urls: vec![self.url.clone()],
            prefix: format!("/test{}", NEXT.fetch_add(1, Ordering::Relaxed)),
            ..EtcdSettings::default()
        }
    }
}

/// Returns the client URL in a log line; `None` for other lines.
fn serving_at(line: &str) -> Option<String> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    let message = line["msg"].as_str()?;
    let address = line["address"].as_str()?;
    // The log line of a plaintext listener contains "insecure".
    let scheme = match message.contains("insecure") {
        true => "http",
        false => "https",
    };
    (message.starts_with("serving") && message.contains("client"))
        .then(|| format!("{scheme}://{address}"))
}

/// Returns the etcd that all tests of this process share.
pub fn shared() -> Option<&'static Etcd> {
    static SHARED: OnceLock<Option<Etcd>> = OnceLock::new();
    SHARED.get_or_init(Etcd::start).as_ref()
}
