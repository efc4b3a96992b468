//! A real etcd, where it is installed. All tests of this process share one, each with a prefix of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use config_server::store::etcd::EtcdSettings;
use tempfile::TempDir;

/// An etcd that ends with this value, or with this process: the shell that runs it waits for the end of its input.
pub struct Etcd {
    pub url: String,
    _shell: Child,
    _data: TempDir,
}

const RUN: &str = "\"$@\" & server=$!; cat >/dev/null; kill -9 $server";

impl Etcd {
    /// Starts one; none if etcd is not installed.
    pub fn start() -> Option<Etcd> {
        if Command::new("etcd").arg("--version").output().is_err() {
            println!("skipped: etcd is not installed");
            return None;
        }
        let data = tempfile::tempdir().unwrap();
        let any = "http://127.0.0.1:0";
        let mut shell = Command::new("sh")
            .args(["-c", RUN, "sh", "etcd", "--data-dir"])
            .arg(data.path().join("etcd"))
            .args(["--listen-client-urls", any, "--listen-peer-urls", any])
            .args(["--advertise-client-urls", any, "--logger", "zap"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(shell.stderr.take().unwrap()).lines();
        let url = lines.by_ref().find_map(|line| serving_at(&line.unwrap()));
        let url = url.expect("etcd tells where it serves");
        // What nobody reads would stop etcd.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Etcd {
            url,
            _shell: shell,
            _data: data,
        })
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
    (message.starts_with("serving") && message.contains("client"))
        .then(|| format!("http://{address}"))
}

/// The etcd of this process.
pub fn shared() -> Option<&'static Etcd> {
    static SHARED: OnceLock<Option<Etcd>> = OnceLock::new();
    SHARED.get_or_init(Etcd::start).as_ref()
}
