//! Workload with its sidecar in a node of a lab, and the services that the tests use.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::{Child, Command, Stdio};
use std::thread;

use super::lab::{Node, PROXY};
use crate::support::mesh::documents;
use crate::support::{DEADLINE, eventually};

/// Ports of the service `web`: name, service port, workload port.
const PORTS: [(&str, u16, u16); 6] = [
    ("http", 80, 8080),
    ("http2", 81, 8081),
    ("tcp", 5000, 5001),
    ("mysql", 3306, 3307),
    ("https", 443, 8443),
    ("undeclared", 7000, 7001),
];

/// Addresses of the services `web` and `web6`, for IPv4 and IPv6.
pub const VIPS: [&str; 2] = ["10.96.0.10", "fd00:96::10"];

/// Returns an address of the service `web` with a port.
pub fn vip(index: usize, port: u16) -> SocketAddr {
    SocketAddr::new(VIPS[index].parse().unwrap(), port)
}

/// Returns the services `web` (IPv4), `web6` and the headless `db` at a node, and a workload `client` without ports.
pub fn services(node: &Node) -> String {
    let ports = PORTS.map(|(name, port, target)| {
        format!("{{name: {name}, port: {port}, targetPort: {target}}}")
    });
    let slice_ports = PORTS.map(|(name, _, target)| format!("{{name: {name}, port: {target}}}"));
    let service = |name: &str, ip: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}, namespace: default}}\nspec:\n  clusterIP: {ip}\n  \
             selector: {{app: web}}\n  ports: [{}]\n",
            ports.join(", ")
        )
    };
    let slice = |name: &str, kind: &str, ip: String| {
        format!(
            "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: {name}-1, namespace: default, labels: \
             {{kubernetes.io/service-name: {name}}}}}\naddressType: {kind}\nports: [{}]\nendpoints: [{{addresses: ['{ip}']}}]\n",
            slice_ports.join(", ")
        )
    };
    documents([
        service("web", VIPS[0]),
        slice("web", "IPv4", node.v4.to_string()),
        service("web6", &format!("'{}'", VIPS[1])),
        slice("web6", "IPv6", node.v6.to_string()),
        service("db", "None"),
        slice("db", "IPv4", node.v4.to_string()),
    ])
}

/// Running sidecar, stopped on drop.
pub struct Sidecar<'a> {
    node: &'a Node,
    child: Child,
    directory: tempfile::TempDir,
}

/// Interception mode of a sidecar for inbound connections, which determines its user as well.
#[derive(Clone, Copy)]
pub enum Interception {
    Redirect,
    Transparent,
}

impl<'a> Sidecar<'a> {
    /// Installs the capture rules of a node, and starts its sidecar.
    pub fn start(node: &'a Node, app: &str, mesh: &str, flags: &[&str]) -> Self {
        Self::start_with(node, app, mesh, flags, Interception::Redirect)
    }

    /// Starts a sidecar with this interception mode.
    pub fn start_with(
        node: &'a Node,
        app: &str,
        mesh: &str,
        flags: &[&str],
        interception: Interception,
    ) -> Self {
        // the capability for TPROXY comes with root here; the group tells the proxy from others
        let (mode, user) = match interception {
            Interception::Redirect => ("REDIRECT", PROXY),
            Interception::Transparent => ("TPROXY", 0),
        };
        node.install(&format!("--backend native -m {mode}"));
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        fs::set_permissions(root, fs::Permissions::from_mode(0o755)).unwrap();
        chown(root, Some(user), Some(PROXY)).unwrap();
        fs::write(root.join("mesh.yaml"), mesh).unwrap();
        let log = fs::File::create(root.join("stderr")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_strait"));
        command
            .args([
                "run",
                "--mode",
                "sidecar",
                "--concurrency",
                "1",
                "--interception-mode",
                mode,
            ])
            .args(["--access-log", "json", "--access-log-path"])
            .arg(root.join("access.log"))
            .args(["--labels", &format!("app={app}"), "--config"])
            .arg(root.join("mesh.yaml"))
            .args(flags)
            .stdin(Stdio::null())
            .stderr(log);
        let child = node.spawn_in_group(user, PROXY, command);
        let sidecar = Self {
            node,
            child,
            directory,
        };
        eventually("the sidecar is ready", || {
            sidecar.page("/healthz/ready").is_some()
        });
        sidecar
    }

    /// Returns a page of the admin server if its status is 200.
    pub fn page(&self, path: &str) -> Option<String> {
        let admin = SocketAddr::from((Ipv4Addr::LOCALHOST, 15_000));
        let mut stream = self.node.inside(|| TcpStream::connect(admin)).ok()?;
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let body = text.split_once("\r\n\r\n")?.1;
        text.starts_with("HTTP/1.1 200").then(|| body.to_owned())
    }

    /// Returns the sum of a metric's samples whose labels contain all of these texts.
    pub fn metric(&self, name: &str, labels: &[&str]) -> f64 {
        let page = self.page("/stats/prometheus").unwrap();
        let samples = page.lines().filter(|line| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
                && labels.iter().all(|label| line.contains(label))
        });
        samples
            .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
            .sum()
    }

    /// Returns the access log and the standard error output.
    pub fn logs(&self) -> String {
        ["access.log", "stderr"]
            .map(|name| fs::read_to_string(self.directory.path().join(name)).unwrap_or_default())
            .concat()
    }
}

impl Drop for Sidecar<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            println!(
                "--- logs of the sidecar at {}\n{}",
                self.node.v4,
                self.logs()
            );
        }
    }
}

/// Starts a thread that calls `act` for each connection until the process ends.
pub fn serve(listener: TcpListener, act: impl Fn(TcpStream) + Clone + Send + 'static) {
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (Ok(stream), act) = (stream, act.clone()) else {
                return;
            };
            stream.set_read_timeout(Some(DEADLINE)).unwrap();
            thread::spawn(move || act(stream));
        }
    });
}

/// Echoes all received bytes.
pub fn echo(mut stream: TcpStream) {
    let mut bytes = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut bytes) {
        if stream.write_all(&bytes[..read]).is_err() {
            return;
        }
    }
}

/// Reads as many bytes as expected, and compares them.
#[track_caller]
pub fn expect(stream: &mut TcpStream, expected: &[u8]) {
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut bytes = vec![0; expected.len()];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(bytes, expected);
}
