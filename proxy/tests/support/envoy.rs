//! Envoy beside the proxy, on machines that have it.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use super::eventually;

/// Running Envoy, killed on drop.
pub struct Envoy {
    child: Child,
    _directory: tempfile::TempDir,
}

impl Drop for Envoy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Envoy {
    /// Starts Envoy with a configuration that listens on these addresses; prints the reason and returns `None` if that
    /// is not possible.
    pub fn start(config: &str, listeners: &[SocketAddr]) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("envoy.yaml");
        std::fs::write(&path, config).unwrap();
        let written = directory.path().join("envoy.log");
        let log = std::fs::File::create(&written).unwrap();
        let started = Command::new("envoy")
            .args(["--concurrency", "1", "--disable-hot-restart"])
            .args(["--file-flush-interval-msec", "20", "-l", "warn", "-c"])
            .arg(path)
            .stdin(Stdio::null())
            .stderr(log)
            .spawn();
        let child = match started {
            Ok(child) => child,
            Err(error) => {
                println!("skipped: `envoy` cannot be run: {error}");
                return None;
            }
        };
        let mut envoy = Self {
            child,
            _directory: directory,
        };
        eventually("Envoy listens", || {
            let log = || std::fs::read_to_string(&written).unwrap();
            assert!(envoy.child.try_wait().unwrap().is_none(), "{}", log());
            let mut all = listeners.iter();
            all.all(|address| TcpStream::connect(address).is_ok())
        });
        Some(envoy)
    }
}

/// Returns an address in the form of Envoy's configuration.
pub fn socket(at: SocketAddr) -> String {
    let (ip, port) = (at.ip(), at.port());
    format!("{{socket_address: {{address: {ip}, port_value: {port}}}}}")
}
