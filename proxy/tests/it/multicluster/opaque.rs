//! Connections that are carried as they are, to services of several clusters: scenario 95.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::*;
use crate::support::DEADLINE;
use crate::support::origin::RawOrigin;

/// Says a name to whoever connects.
fn says(name: &'static str) -> RawOrigin {
    RawOrigin::start(move |_, mut stream| {
        let mut asked = [0; 2];
        if stream.read_exact(&mut asked).is_ok() {
            let _ = stream.write_all(name.as_bytes());
        }
    })
}

/// A proxy with a TCP listener for ns1/web, which c1 has at one address and c2 behind a gateway without a prefix.
fn before(local: SocketAddr, gateway: SocketAddr) -> Proxy {
    let start = Start::new();
    let edge = start.edge();
    let (ip, port) = (edge.ip(), edge.port());
    let text = documents([
        format!(
            "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: tcp}}\nspec:\n  servers:\n  \
             - {{port: {{number: {port}, name: tcp, protocol: TCP}}, bind: {ip}, hosts: ['*']}}\n"
        ),
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: tcp}\nspec:\n  \
         hosts: ['*']\n  gateways: [tcp]\n  tcp:\n  - route: [{destination: {host: web.ns1.svc.cluster.local, \
         port: {number: 80}}}]\n"
            .to_owned(),
        "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: web}\nspec: {ports: [{name: tcp, port: 80}]}\n"
            .to_owned(),
        slice(0, "", local).replace("name: http", "name: tcp"),
        format!(
            "apiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {{namespace: ns1, name: web}}\n\
             spec: {{ports: [{{name: tcp, port: 80, endpoints: [{{clusterKey: default/default/default/c2, \
             target: {{host: '', ip: {}, port: {}, path: ''}}}}]}}]}}\n",
            gateway.ip(),
            gateway.port()
        ),
        policy("{lbType: FailOver, targets: [{clusterKey: c2}]}"),
    ]);
    start
        .args(["--cluster", "c1"])
        .file("mesh.yaml", text)
        .start()
}

/// What comes back for two bytes; nothing if the connection is reset.
fn ask_bytes(proxy: &Proxy) -> Vec<u8> {
    let mut stream = TcpStream::connect(proxy.edge).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut all = Vec::new();
    let _ = stream
        .write_all(b"hi")
        .and_then(|()| stream.read_to_end(&mut all));
    all
}

#[test]
fn scenario_95_a_connection_goes_to_the_next_cluster_only_when_none_was_made() {
    let backup = says("c2");
    let proxy = before(free_address(), backup.address);
    (0..100).for_each(|_| assert_eq!(ask_bytes(&proxy), b"c2"));
    let backup = says("c2");
    // whoever closes with bytes unread resets
    let resets = RawOrigin::start(|_, stream| drop(stream.peek(&mut [0])));
    let proxy = before(resets.address, backup.address);
    (0..10).for_each(|_| assert!(ask_bytes(&proxy).is_empty()));
}

#[test]
fn connections_are_shifted_by_policies_that_are_for_everything() {
    let (one, two) = (says("v1"), says("v2"));
    let answers = |policies: &str| {
        let start = Start::new();
        let edge = start.edge();
        let (ip, port) = (edge.ip(), edge.port());
        let group = |version: &str, at: SocketAddr| {
            format!(
                "{{endpoints: [{{ipAddress: {}, labels: {{version: {version}}}}}], ports: [{{port: {}, name: tcp}}]}}",
                at.ip(),
                at.port()
            )
        };
        let to = |weight: u8, version: &str| {
            format!(
                "{{weight: {weight}, kubeService: {{name: web, namespace: ns1, clusterName: c1, subset: {{version: {version}}}}}}}"
            )
        };
        let text = documents([
            format!(
                "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: tcp}}\nspec:\n  servers:\n  \
                 - {{port: {{number: {port}, name: tcp, protocol: TCP}}, bind: {ip}, hosts: ['*']}}\n"
            ),
            "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: tcp}\nspec:\n  \
             hosts: ['*']\n  gateways: [tcp]\n  tcp:\n  - route: [{destination: {host: web.ns1.svc.cluster.local, \
             port: {number: 80}}}]\n"
                .to_owned(),
            format!(
                "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\nmetadata: {{name: web}}\n\
                 spec: {{kubeService: {{ref: {{name: web, namespace: ns1, clusterName: c1}}, \
                 ports: [{{port: 80, name: tcp, protocol: TCP}}], endpointSubsets: [{}, {}]}}}}\n\
                 status: {{{policies} requiredSubsets: [{{trafficPolicyRef: {{name: p}}, \
                 trafficShift: {{destinations: [{}, {}]}}}}]}}\n",
                group("v1", one.address),
                group("v2", two.address),
                to(0, "v1"),
                to(100, "v2")
            ),
        ]);
        let proxy = start
            .args(["--cluster", "c1"])
            .file("mesh.yaml", text)
            .start();
        let mut all: Vec<_> = (0..40).map(|_| ask_bytes(&proxy)).collect();
        all.sort();
        all.dedup();
        all
    };
    assert_eq!(answers(""), [b"v2"]);
    let some =
        "appliedTrafficPolicies: [{ref: {name: p}, spec: {httpRequestMatchers: [{prefix: /a}]}}],";
    assert_eq!(
        answers(some),
        [b"v1", b"v2"],
        "what is asked of requests says nothing of bytes"
    );
}
