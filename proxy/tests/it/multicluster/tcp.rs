//! Raw TCP connections, to services of several clusters: scenario 95.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::*;
use crate::support::DEADLINE;
use crate::support::origin::RawOrigin;

/// Starts an origin that sends its name on every connection.
fn says(name: &'static str) -> RawOrigin {
    RawOrigin::start(move |_, mut stream| {
        let mut asked = [0; 2];
        if stream.read_exact(&mut asked).is_ok() {
            let _ = stream.write_all(name.as_bytes());
        }
    })
}

/// Starts a proxy with a TCP listener for ns1/web, which c1 has at one address, and c2 behind a gateway without a
/// prefix.
fn before(local: SocketAddr, gateway: SocketAddr) -> Proxy {
    let to = policy("{lbType: FailOver, targets: [{clusterKey: c2}]}");
    among(&[local], &[gateway], to, &[])
}

/// Starts a proxy with any number of workloads in c1, and gateways of c2, c3 and so on.
fn among(
    locals: &[SocketAddr],
    gateways: &[SocketAddr],
    policy: String,
    arguments: &[&str],
) -> Proxy {
    kept_among("None", locals, gateways, policy, arguments)
}

/// Starts a proxy with this `sessionAffinity` of the Service.
fn kept_among(
    affinity: &str,
    locals: &[SocketAddr],
    gateways: &[SocketAddr],
    policy: String,
    arguments: &[&str],
) -> Proxy {
    let start = Start::new();
    let endpoint = |(number, at): (usize, &SocketAddr)| {
        let (ip, port) = (at.ip(), at.port());
        format!(
            "{{clusterKey: default/default/default/c{number}, target: {{host: '', ip: {ip}, port: {port}, path: ''}}}}"
        )
    };
    let imported: Vec<String> = (2..).zip(gateways).map(endpoint).collect();
    let slices = locals.iter().enumerate();
    let slices = slices.map(|(number, at)| slice(number, "", *at));
    let edge = start.edge();
    let (ip, port) = (edge.ip(), edge.port());
    let mut all = vec![
        format!(
            "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: tcp}}\nspec:\n  servers:\n  \
             - {{port: {{number: {port}, name: tcp, protocol: TCP}}, bind: {ip}, hosts: ['*']}}\n"
        ),
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: tcp}\nspec:\n  \
         hosts: ['*']\n  gateways: [tcp]\n  tcp:\n  - route: [{destination: {host: web.ns1.svc.cluster.local, \
         port: {number: 80}}}]\n"
            .to_owned(),
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{namespace: ns1, name: web}}\n\
             spec: {{sessionAffinity: {affinity}, ports: [{{name: tcp, port: 80}}]}}\n"
        ),
        format!(
            "apiVersion: flomesh.io/v1alpha1\nkind: ServiceImport\nmetadata: {{namespace: ns1, name: web}}\n\
             spec: {{ports: [{{name: tcp, port: 80, endpoints: [{}]}}]}}\n",
            imported.join(", ")
        ),
        policy,
    ];
    all.extend(slices.map(|text| text.replace("name: http", "name: tcp")));
    start
        .args(["--cluster", "c1"].iter().chain(arguments).copied())
        .file("mesh.yaml", documents(all))
        .start()
}

/// Sends two bytes and returns the answer; empty if the connection is reset.
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
fn scenario_95_tcp_fails_over_only_before_a_connection_is_established() {
    let backup = says("c2");
    let proxy = before(free_address(), backup.address);
    (0..100).for_each(|_| assert_eq!(ask_bytes(&proxy), b"c2"));
    let backup = says("c2");
    // closing a socket with unread bytes resets the connection
    let resets = RawOrigin::start(|_, stream| drop(stream.peek(&mut [0])));
    let proxy = before(resets.address, backup.address);
    (0..10).for_each(|_| assert!(ask_bytes(&proxy).is_empty()));
}

#[test]
fn explain_shows_tcp_destinations_and_affinity() {
    let (local, backup) = (says("c1"), says("c2"));
    let to = || policy("{lbType: FailOver, targets: [{clusterKey: c2}]}");
    let (locals, backups) = ([local.address, free_address()], [backup.address]);
    let ask = |proxy: &Proxy, more: &str| {
        let port = proxy.edge.port();
        proxy.page(&format!("/explain?url=tcp://127.0.0.1:{port}{more}"))
    };
    let said = ask(&among(&locals, &backups, to(), &[]), "");
    let expected = "if no connection to tier 0 succeeds, the connection is made to tier 1 (default/default/default/c2)";
    assert!(said.contains(expected), "{said}");
    assert!(!said.contains("sticky"), "{said}");
    assert!(said.contains(" over TCP, connect timeout"), "{said}");
    let off = ["--failover-replay", "off"];
    let said = ask(&among(&locals, &backups, to(), &off), "");
    let expected = "no connection is made to another tier: --failover-replay=off turns replays off";
    assert!(said.contains(expected), "{said}");
    let proxy = kept_among("ClientIP", &locals[..1], &backups, to(), &[]);
    let said = ask(&proxy, "");
    assert!(
        said.contains("which differs from client to client"),
        "{said}"
    );
    assert_eq!(ask_bytes(&proxy), b"c1");
    let said = ask(&proxy, "&client=127.0.0.1");
    let expected = format!("remembered at {} for ", local.address);
    assert!(said.contains(&expected), "{said}");
}

#[test]
fn without_replays_a_connection_stays_in_its_tier() {
    let (local, backup) = (says("c1"), says("c2"));
    let to = || policy("{lbType: FailOver, targets: [{clusterKey: c2}]}");
    let off = ["--failover-replay", "off"];
    let proxy = among(&[free_address()], &[backup.address], to(), &off);
    (0..10).for_each(|_| assert!(ask_bytes(&proxy).is_empty()));
    let locals = [free_address(), local.address];
    let proxy = among(&locals, &[backup.address], to(), &off);
    (0..10).for_each(|_| assert_eq!(ask_bytes(&proxy), b"c1"));
}

#[test]
fn a_connection_fails_over_to_every_tier_after_three_attempts() {
    let last = says("c3");
    let ordered = policy("{lbType: FailOver, targets: [{clusterKey: c2}, {clusterKey: c3}]}")
        .replace(
            "name: web}",
            "name: web, annotations: {multicluster.flomesh.io/failover-order: ordered}}",
        );
    for closed in [1, 2, 3, 4] {
        let locals: Vec<SocketAddr> = (0..closed).map(|_| free_address()).collect();
        let gateways = [free_address(), last.address];
        let proxy = among(&locals, &gateways, ordered.clone(), &[]);
        (0..10).for_each(|_| assert_eq!(ask_bytes(&proxy), b"c3", "{closed}"));
    }
    // clusters of one tier are all of it, be it the first or the last
    let gateways = [free_address(), last.address];
    for kind in ["ActiveActive", "FailOver"] {
        let both = format!("{{lbType: {kind}, targets: [{{clusterKey: c2}}, {{clusterKey: c3}}]}}");
        let proxy = among(&[free_address()], &gateways, policy(&both), &[]);
        (0..60).for_each(|_| assert_eq!(ask_bytes(&proxy), b"c3", "{kind}"));
    }
}

#[test]
fn the_log_has_the_reason_for_a_connection_without_an_endpoint() {
    let to = |weight: u8, key: &str| {
        policy(&format!(
            "{{lbType: ActiveActive, targets: [{{clusterKey: {key}, weight: {weight}}}]}}"
        ))
    };
    let rows = [
        (to(0, "c2"), "drained"),
        (to(1, "c9"), "no_matching_cluster"),
    ];
    for (policy, reason) in rows {
        let proxy = among(&[], &[free_address()], policy, &[]);
        assert!(ask_bytes(&proxy).is_empty());
        let mut log = Vec::new();
        eventually("the connection is logged", || {
            log = proxy.access_log();
            !log.is_empty()
        });
        let details = format!("no_healthy_upstream{{{reason}}}");
        assert_eq!(log[0]["response_code_details"], details);
        assert_eq!(log[0]["response_flags"], "UH");
    }
}

#[test]
fn policies_without_a_request_match_shift_tcp_connections() {
    let (one, two) = (says("v1"), says("v2"));
    let answers_for = |hosts: &str, policies: &str| {
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
            format!(
                "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: tcp}}\nspec:\n  \
                 hosts: [{hosts}]\n  gateways: [tcp]\n  tcp:\n  - route: [{{destination: {{host: web.ns1.svc.cluster.local, \
                 port: {{number: 80}}}}}}]\n"
            ),
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
    let answers = |policies: &str| answers_for("bytes.example", policies);
    assert_eq!(answers(""), [b"v2"]);
    assert_eq!(
        answers_for("'*'", ""),
        [b"v1", b"v2"],
        "a VirtualService for every host routes that of the Destination, too"
    );
    let some =
        "appliedTrafficPolicies: [{ref: {name: p}, spec: {httpRequestMatchers: [{prefix: /a}]}}],";
    assert_eq!(
        answers(some),
        [b"v1", b"v2"],
        "what is asked of requests says nothing of bytes"
    );
}

#[test]
fn tcp_log_line_has_the_destination_cluster() {
    let backup = says("c2");
    let proxy = before(free_address(), backup.address);
    assert_eq!(ask_bytes(&proxy), b"c2");
    eventually("it is logged", || proxy.access_log().len() == 1);
    let line = proxy.access_log().remove(0);
    let key = "default/default/default/c2";
    let cluster = format!("outbound|80||web.ns1.svc.cluster.local@{key}");
    assert_eq!(line["upstream_cluster"], cluster);
    assert_eq!(line["destination_cluster"], key);
    assert_eq!(line["destination_tier"], 1);
    assert_eq!(line["upstream_request_attempt_count"], 2);
}
