//! Mesh TLS with Envoy on the other side, configured as Istio configures a sidecar. Skipped, with a message, on
//! machines without Envoy.

use std::net::SocketAddr;
use std::path::Path;

use crate::support::envoy::Envoy;
use crate::support::eventually;
use crate::support::mesh::{documents, gateway, routes};
use crate::support::pki::Authority;
use crate::support::proxy::{Start, free_address};
use crate::support::raw::{GET, Raw, Reply};
use crate::support::tls::{files, gateway as tls_gateway, server};

const STRAIT: &str = "spiffe://cluster.local/ns/shop/sa/strait";
const ENVOY: &str = "spiffe://cluster.local/ns/shop/sa/envoy";
const STRANGER: &str = "spiffe://cluster.local/ns/bank/sa/envoy";

/// Running Envoy.
struct Neighbor {
    /// Address that accepts mesh TLS and plain text.
    inbound: SocketAddr,
    /// Address of the listener that sends requests over mesh TLS to the address given at the start.
    outbound: SocketAddr,
    _envoy: Envoy,
}

impl Neighbor {
    /// Starts Envoy with `envoy.pem`, `envoy.key` and `ca.pem` of a directory, if there is one.
    fn start(directory: &Path, strait: SocketAddr) -> Option<Self> {
        let [inbound, outbound, admin] = [(); 3].map(|()| free_address());
        let config = config(directory, [inbound, outbound, admin, strait]);
        let envoy = Envoy::start(&config, &[inbound, outbound])?;
        Some(Self {
            inbound,
            outbound,
            _envoy: envoy,
        })
    }
}

fn config(directory: &Path, addresses: [SocketAddr; 4]) -> String {
    let directory = directory.to_str().unwrap();
    let mut text = include_str!("envoy_interop/envoy.yaml").replace("DIR", directory);
    let words = ["INBOUND", "OUTBOUND", "ADMIN", "STRAIT"];
    for (word, address) in words.into_iter().zip(addresses) {
        let (ip, port) = (address.ip(), address.port());
        let socket = format!("socket_address: {{address: {ip}, port_value: {port}}}");
        text = text.replace(&format!("socket_address: {word}"), &socket);
    }
    text
}

/// Returns the service `a.test` with an endpoint, and the protocol of its port.
fn service(envoy: SocketAddr, protocol: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: a, namespace: shop}}\nspec:\n  \
         hosts: [a.test]\n  location: MESH_INTERNAL\n  resolution: STATIC\n  \
         ports: [{{number: 80, name: web, protocol: {protocol}, targetPort: {}}}]\n  \
         endpoints: [{{address: {}, serviceAccount: envoy}}]\n",
        envoy.port(),
        envoy.ip()
    )
}

fn get(address: SocketAddr, path: &str) -> Reply {
    Raw::connect(address)
        .send(GET.replacen("GET /", &format!("GET {path}"), 1))
        .reply()
}

/// Certificates of both sides, in one directory.
struct Pki {
    ca: Authority,
    directory: tempfile::TempDir,
}

impl Pki {
    fn new() -> Self {
        let pki = Self {
            ca: Authority::new("mesh"),
            directory: tempfile::tempdir().unwrap(),
        };
        files(pki.directory.path(), &[("ca.pem", &pki.ca.pem())]);
        pki.issue("strait", STRAIT);
        pki
    }

    fn issue(&self, name: &str, id: &str) {
        let pair = self.ca.server(&[id]);
        let [chain, key] = ["pem", "key"].map(|kind| format!("{name}.{kind}"));
        files(
            self.directory.path(),
            &[(&*chain, &pair.chain), (&*key, &pair.key)],
        );
    }

    /// Returns the flags of a proxy with the identity of `strait`.
    fn flags(&self) -> Vec<String> {
        let file = |name: &str| {
            self.directory
                .path()
                .join(name)
                .to_str()
                .unwrap()
                .to_owned()
        };
        let flags = [
            ("--namespace", "shop".to_owned()),
            ("--workload-cert", file("strait.pem")),
            ("--workload-key", file("strait.key")),
            ("--mesh-ca", file("ca.pem")),
        ];
        let each = flags.into_iter();
        each.flat_map(|(flag, value)| [flag.to_owned(), value])
            .collect()
    }
}

#[test]
fn mesh_tls_to_envoy_carries_http1_and_http2() {
    let pki = Pki::new();
    pki.issue("envoy", ENVOY);
    let Some(envoy) = Neighbor::start(pki.directory.path(), free_address()) else {
        return;
    };
    let start = Start::new();
    let edge = start.edge();
    let routes = routes("a", "['*']", "- {route: [{destination: {host: a.test}}]}");
    let proxy = start
        .args(pki.flags())
        .file("mesh.yaml", documents([gateway(&[edge]), routes]))
        .file("service.yaml", service(envoy.inbound, "HTTP"))
        .start();
    for (protocol, version) in [("HTTP", "HTTP/1.1"), ("HTTP2", "HTTP/2")] {
        proxy.write("service.yaml", service(envoy.inbound, protocol));
        let mut reply = get(edge, "/");
        eventually("the protocol is that of the port", || {
            reply = get(edge, "/");
            reply.has(&format!("x-protocol: {version}"))
        });
        assert_eq!(reply.status, 200, "{reply:?}");
        assert!(reply.has(&format!("x-peer: {STRAIT}")), "{reply:?}");
        assert!(reply.has("x-sni: outbound_.80_._.a.test"), "{reply:?}");
    }
    // an endpoint with the identity of another workload is refused
    drop(envoy);
    pki.issue("envoy", STRANGER);
    let Some(envoy) = Neighbor::start(pki.directory.path(), free_address()) else {
        return;
    };
    proxy.write("service.yaml", service(envoy.inbound, "HTTP"));
    let mut text = String::new();
    eventually("the endpoint is refused", || {
        text = String::from_utf8_lossy(&get(edge, "/").body).into_owned();
        text.contains("name mismatch")
    });
}

#[test]
fn mesh_tls_from_envoy_carries_http1_and_http2() {
    let pki = Pki::new();
    let start = Start::new();
    let mesh = start.edge();
    let headers =
        "{response: {set: {x-peer: '%DOWNSTREAM_PEER_URI_SAN%', x-protocol: '%PROTOCOL%'}}}";
    let rules = format!("- {{directResponse: {{status: 200}}, headers: {headers}}}");
    let servers = [server(mesh, "https", "['*']", "{mode: ISTIO_MUTUAL}")];
    let _proxy = start
        .args(pki.flags())
        .file(
            "mesh.yaml",
            documents([tls_gateway(&servers), routes("b", "['*']", &rules)]),
        )
        .start();
    pki.issue("envoy", ENVOY);
    let Some(envoy) = Neighbor::start(pki.directory.path(), mesh) else {
        return;
    };
    for (path, version) in [("/", "HTTP/1.1"), ("/h2", "HTTP/2")] {
        let reply = get(envoy.outbound, path);
        assert_eq!(reply.status, 200, "{reply:?}");
        assert!(reply.has(&format!("x-peer: {ENVOY}")), "{reply:?}");
        assert!(reply.has(&format!("x-protocol: {version}")), "{reply:?}");
    }
}
