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

impl Envoy {
    /// Ends Envoy, which writes what waits to its logs.
    pub fn stop(mut self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-s", "TERM", &pid]).status();
        assert!(sent.unwrap().success());
        self.child.wait().unwrap();
    }
}

/// Returns the configuration of an edge that sends everything to an origin, with these further lines of its
/// `HttpConnectionManager`.
pub fn edge_config(edge: SocketAddr, origin: SocketAddr, more: &str) -> String {
    const FILTERS: &str = "\"@type\": type.googleapis.com/envoy.extensions.filters";
    format!(
        "static_resources:
  listeners:
  - address: {edge}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          {FILTERS}.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: edge
{more}
          http_filters: [{{name: router, typed_config: {{{FILTERS}.http.router.v3.Router}}}}]
          route_config:
            virtual_hosts: [{{name: all, domains: ['*'], routes: [{{match: {{prefix: /}}, route: {{cluster: origin}}}}]}}]
  clusters:
  - name: origin
    load_assignment:
      cluster_name: origin
      endpoints: [{{lb_endpoints: [{{endpoint: {{address: {origin}}}}}]}}]
",
        edge = socket(edge),
        origin = socket(origin),
    )
}

/// Returns an address in the form of Envoy's configuration.
fn socket(at: SocketAddr) -> String {
    let (ip, port) = (at.ip(), at.port());
    format!("{{socket_address: {{address: {ip}, port_value: {port}}}}}")
}
