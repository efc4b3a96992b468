//! Resources for tests, as YAML text.

use std::fmt::Write;
use std::net::SocketAddr;

use super::origin::{Back, Origin};

/// Joins YAML documents.
pub fn documents<T: AsRef<str>>(documents: impl IntoIterator<Item = T>) -> String {
    let mut text = String::new();
    for document in documents {
        text.push_str("---\n");
        text.push_str(document.as_ref().trim());
        text.push('\n');
    }
    text
}

/// Returns a Gateway named `edge` that listens on these addresses for every host.
pub fn gateway(addresses: &[SocketAddr]) -> String {
    let mut text = "\
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge}
spec:
  selector: {istio: ingressgateway}
  servers:
"
    .to_owned();
    for (number, address) in addresses.iter().enumerate() {
        let (ip, port) = (address.ip(), address.port());
        writeln!(
            text,
            "  - {{port: {{number: {port}, name: http-{number}, protocol: HTTP}}, bind: {ip}, hosts: [\"*\"]}}"
        )
        .unwrap();
    }
    text
}

/// Returns a VirtualService on `edge` for hosts (a YAML list) with rules in block style.
pub fn routes(name: &str, hosts: &str, http: &str) -> String {
    let http = http.trim_end().replace('\n', "\n  ");
    format!(
        "\
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {{name: {name}}}
spec:
  hosts: {hosts}
  gateways: [edge]
  http:
  {http}
"
    )
}

/// Returns a ServiceEntry for host `NAME.test`, port 80, with endpoints and their version labels.
pub fn service(name: &str, back: Back, endpoints: &[(SocketAddr, &str)]) -> String {
    let protocol = match back {
        Back::H1 => "HTTP",
        Back::H2 => "HTTP2",
    };
    let mut text = format!(
        "\
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {{name: {name}}}
spec:
  hosts: [{name}.test]
  location: MESH_INTERNAL
  resolution: STATIC
  ports:
  - {{number: 80, name: web, protocol: {protocol}}}
"
    );
    if endpoints.is_empty() {
        text.push_str("  workloadSelector: {labels: {app: nothing-has-this}}\n");
    } else {
        text.push_str("  endpoints:\n");
    }
    for (address, version) in endpoints {
        let (ip, port) = (address.ip(), address.port());
        writeln!(
            text,
            "  - {{address: {ip}, ports: {{web: {port}}}, labels: {{version: {version}}}}}"
        )
        .unwrap();
    }
    text
}

/// Returns a DestinationRule for `NAME.test` with a subset per version.
pub fn subsets(name: &str, versions: &[&str]) -> String {
    let mut text = format!(
        "\
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {{name: {name}}}
spec:
  host: {name}.test
  subsets:
"
    );
    for version in versions {
        writeln!(
            text,
            "  - {{name: {version}, labels: {{version: {version}}}}}"
        )
        .unwrap();
    }
    text
}

/// Returns a mesh that routes all hosts to this origin.
pub fn everything_to(edge: SocketAddr, origin: &Origin) -> String {
    everything_to_address(edge, origin.back, origin.address)
}

/// Returns a mesh that routes all hosts to this address, a service with this traffic policy.
pub fn with_policy(edge: SocketAddr, endpoint: SocketAddr, policy: &str) -> String {
    let rule = format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: web}}\n\
         spec: {{host: web.test, trafficPolicy: {policy}}}"
    );
    documents([everything_to_address(edge, Back::H1, endpoint), rule])
}

/// Returns a mesh that routes all hosts to this address.
pub fn everything_to_address(edge: SocketAddr, back: Back, address: SocketAddr) -> String {
    documents([
        gateway(&[edge]),
        service("web", back, &[(address, "v1")]),
        routes(
            "all",
            "[\"*\"]",
            "- {name: all, route: [{destination: {host: web.test}}]}",
        ),
    ])
}
