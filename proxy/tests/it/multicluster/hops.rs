//! Workloads of another cluster behind a gateway with TLS passthrough: scenario 72, from both sides.

use super::*;
use crate::support::pki::Authority;
use crate::support::tls::files;
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};

/// Authority of the mesh, and the directory with the identity of the proxies.
pub(super) struct Mesh {
    pub(super) ca: Authority,
    directory: tempfile::TempDir,
}

impl Mesh {
    pub(super) fn new() -> Self {
        let ca = Authority::new("mesh");
        let directory = tempfile::tempdir().unwrap();
        let own = ca.server(&["spiffe://cluster.local/ns/default/sa/edge"]);
        files(
            directory.path(),
            &[
                ("cert-chain.pem", &own.chain),
                ("key.pem", &own.key),
                ("root-cert.pem", &ca.pem()),
            ],
        );
        Self { ca, directory }
    }

    /// Starts a workload that speaks this protocol inside mesh TLS.
    pub(super) fn workload(&self, speaks: Speaks) -> TlsOrigin {
        let pair = self.ca.server(&["spiffe://cluster.local/ns/ns1/sa/web"]);
        TlsOrigin::start(speaks, &Terms::new(&pair).for_clients_of(&self.ca))
    }

    pub(super) fn certificates(&self) -> &str {
        self.directory.path().to_str().unwrap()
    }
}

/// Returns the Destination of a gateway of c2.
fn entrance(name: &str, at: SocketAddr, service_type: &str) -> String {
    let (ip, port) = (at.ip(), at.port());
    let port = match service_type {
        "NODE_PORT" => format!("port: 15443, nodePort: {port}"),
        _ => format!("port: {port}"),
    };
    format!(
        "apiVersion: discovery.mesh.gloo.solo.io/v1\nkind: Destination\nmetadata: {{namespace: gloo-mesh, name: {name}}}\n\
         spec: {{kubeService: {{ref: {{name: {name}, namespace: istio-system, clusterName: c2}}, \
         labels: {{istio: ingressgateway}}, serviceType: {service_type}, \
         ports: [{{port: 80, name: http2, protocol: TCP}}, {{{port}, name: tls, protocol: TCP}}], \
         externalAddresses: [{{ip: {ip}}}]}}}}\n"
    )
}

fn rule(host: &str, spec: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: rule}}\nspec: {{host: {host}, {spec}}}\n"
    )
}

/// Starts a gateway of c1 that routes every request to `destination`.
fn caller(mesh: &Mesh, destination: &str, more: &[String]) -> Proxy {
    caller_with(mesh, destination, more, &[])
}

/// Starts a gateway of c1 with additional arguments.
pub(super) fn caller_with(
    mesh: &Mesh,
    destination: &str,
    more: &[String],
    arguments: &[&str],
) -> Proxy {
    let start = Start::new();
    let mut all = vec![
        gateway(&[start.edge()]),
        routes(
            "all",
            "['*']",
            &format!("- {{retries: {{attempts: 0}}, route: [{{destination: {destination}}}]}}"),
        ),
    ];
    all.extend(more.iter().cloned());
    start
        .args([
            "--cluster",
            "c1",
            "--gloo-mesh",
            "a.gloo-mesh",
            "--mesh-certs",
        ])
        .args([mesh.certificates()])
        .args(arguments.iter().copied())
        .file("mesh.yaml", documents(all))
        .start()
}

/// Starts a gateway of c2 that forwards connections for federated hosts.
fn receiver(more: &[String]) -> Proxy {
    let start = Start::new();
    let (ip, port) = (start.edge().ip(), start.edge().port());
    let server = format!(
        "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: east-west}}\nspec:\n  servers:\n  \
         - {{port: {{number: {port}, name: tls, protocol: TLS}}, bind: {ip}, hosts: ['*.global'], tls: {{mode: AUTO_PASSTHROUGH}}}}\n"
    );
    let mut all = vec![server];
    all.extend(more.iter().cloned());
    start
        .args(["--cluster", "c2"])
        .file("mesh.yaml", documents(all))
        .start()
}

pub(super) const HOST: &str = "{host: web.ns1.svc.c2.global, port: {number: 80}}";

fn statuses(proxy: &Proxy, requests: usize) -> Vec<u16> {
    let mut client = Raw::connect(proxy.edge);
    (0..requests)
        .map(|_| ask(&mut client, GET).status)
        .collect()
}

#[test]
fn scenario_72_requests_reach_the_remote_gateway_over_mesh_tls() {
    let mesh = Mesh::new();
    let workload = mesh.workload(Speaks::H2);
    let of_c2 = receiver(&[web_in_c2(&[(workload.address, "v1")], true)]);
    for service_type in ["LOAD_BALANCER", "NODE_PORT"] {
        // what the caller knows of workloads it cannot reach
        let proxy = caller(
            &mesh,
            HOST,
            &[
                web_in_c2(&[("192.0.2.1:8080".parse().unwrap(), "v1")], false),
                entrance("ingress", of_c2.edge, service_type),
            ],
        );
        assert_eq!(statuses(&proxy, 5), [200; 5], "{service_type}");
        eventually("all are logged", || proxy.access_log().len() == 5);
        let line = &proxy.access_log()[0];
        assert_eq!(line["upstream_host"], of_c2.edge.to_string());
    }
    let callers = workload.callers();
    assert_eq!(callers.len(), 2, "one connection each: {callers:?}");
    for caller in callers {
        let sni = "outbound_.80_._.web.ns1.svc.c2.global";
        assert_eq!(caller.sni.as_deref(), Some(sni));
        assert!(caller.certificate.is_some());
        assert_eq!(caller.hosts, ["web.example"; 5]);
    }
}

#[test]
fn scenario_72_in_a_flat_network_requests_go_to_the_workloads() {
    let mesh = Mesh::new();
    let site = Site::new("P1");
    let unused = free_address();
    let proxy = caller(
        &mesh,
        HOST,
        &[
            web_in_c2(&[(site.address(), "v1")], true),
            entrance("ingress", unused, "LOAD_BALANCER"),
        ],
    );
    assert_eq!(statuses(&proxy, 3), [200; 3]);
    assert_eq!(site.paths().len(), 3);
}

#[test]
fn a_workload_with_a_foreign_certificate_authority_gets_no_request() {
    let (mesh, other) = (Mesh::new(), Mesh::new());
    let workload = other.workload(Speaks::H2);
    let of_c2 = receiver(&[web_in_c2(&[(workload.address, "v1")], true)]);
    let known = [
        web_in_c2(&[(workload.address, "v1")], false),
        entrance("ingress", of_c2.edge, "LOAD_BALANCER"),
    ];
    assert_eq!(statuses(&caller(&mesh, HOST, &known), 1), [503]);
    // nor a gateway with another identity than the rule expects
    let right = mesh.workload(Speaks::H2);
    let of_c2 = receiver(&[web_in_c2(&[(right.address, "v1")], true)]);
    let expecting = |account: &str| {
        let names = format!("['spiffe://cluster.local/ns/ns1/sa/{account}']");
        let tls =
            format!("trafficPolicy: {{tls: {{mode: ISTIO_MUTUAL, subjectAltNames: {names}}}}}");
        let known = [
            web_in_c2(&[(right.address, "v1")], false),
            entrance("ingress", of_c2.edge, "LOAD_BALANCER"),
            rule("web.ns1.svc.c2.global", &tls),
        ];
        statuses(&caller(&mesh, HOST, &known), 1)
    };
    assert_eq!(expecting("web"), [200]);
    assert_eq!(expecting("shop"), [503]);
}

#[test]
fn scenario_73_a_subset_selects_workloads_behind_the_gateway() {
    let mesh = Mesh::new();
    let (one, two) = (mesh.workload(Speaks::H2), mesh.workload(Speaks::H2));
    let workloads = [(one.address, "v1"), (two.address, "v2")];
    let required = "requiredSubsets: [{trafficPolicyRef: {name: p, namespace: gloo-mesh}, trafficShift: {destinations: \
                    [{weight: 100, kubeService: {name: other, namespace: ns1, clusterName: c2, subset: {version: v2}}}]}}], appliedFederation:";
    let with_subset = |flat| web_in_c2(&workloads, flat).replace("appliedFederation:", required);
    let of_c2 = receiver(&[with_subset(true)]);
    let to = "{host: web.ns1.svc.c2.global, subset: version-v2, port: {number: 80}}";
    let proxy = caller(
        &mesh,
        to,
        &[
            with_subset(false),
            entrance("ingress", of_c2.edge, "LOAD_BALANCER"),
        ],
    );
    assert_eq!(statuses(&proxy, 20), [200; 20]);
    assert_eq!((one.callers().len(), two.callers().len()), (0, 1));
    let sni = "outbound_.80_.version-v2_.web.ns1.svc.c2.global";
    assert_eq!(two.only().sni.as_deref(), Some(sni));
}

#[test]
fn a_policy_splits_between_local_workloads_and_a_remote_gateway() {
    let mesh = Mesh::new();
    let workload = mesh.workload(Speaks::H2);
    let of_c2 = receiver(&[web_in_c2(&[(workload.address, "v1")], true)]);
    let own = Site::new("L1");
    let known = [
        "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: web}\nspec: {ports: [{name: http, port: 80}]}\n".to_owned(),
        slice(0, "", own.address()),
        policy("{lbType: ActiveActive, targets: [{clusterKey: c1, weight: 50}, {clusterKey: c2, weight: 50}]}"),
        web_in_c2(&[(workload.address, "v1")], false),
        entrance("ingress", of_c2.edge, "LOAD_BALANCER"),
    ];
    let proxy = caller(
        &mesh,
        "{host: web.ns1.svc.cluster.local, port: {number: 80}}",
        &known,
    );
    let counts = count(&proxy, RUN);
    assert_shares(&counts, &[("L1", 500), ("hello", 500)]);
    let sni = workload.callers()[0].sni.clone();
    assert_eq!(
        sni.as_deref(),
        Some("outbound_.80_._.web.ns1.svc.c2.global")
    );
}

#[test]
fn gateways_of_one_cluster_share_its_traffic() {
    let mesh = Mesh::new();
    let workload = mesh.workload(Speaks::H2);
    let of_c2 = || receiver(&[web_in_c2(&[(workload.address, "v1")], true)]);
    let (one, two) = (of_c2(), of_c2());
    let at = |last: u8| format!("192.0.2.{last}:8080").parse().unwrap();
    let three = [(at(1), "v1"), (at(2), "v1"), (at(3), "v1")];
    let proxy = caller(
        &mesh,
        HOST,
        &[
            web_in_c2(&three, false),
            entrance("ingress-1", one.edge, "LOAD_BALANCER"),
            entrance("ingress-2", two.edge, "LOAD_BALANCER"),
            rule(
                "web.ns1.svc.c2.global",
                "trafficPolicy: {loadBalancer: {simple: ROUND_ROBIN}}",
            ),
        ],
    );
    assert_eq!(statuses(&proxy, 300), [200; 300]);
    eventually("all are logged", || proxy.access_log().len() == 300);
    let log = proxy.access_log();
    let to = |gateway: &Proxy| {
        let at = gateway.edge.to_string();
        log.iter()
            .filter(|line| line["upstream_host"] == at)
            .count()
    };
    assert_eq!((to(&one), to(&two)), (200, 100), "2 and 1 of 3 workloads");
}

#[test]
fn a_connection_for_an_unfederated_name_is_closed_and_logged() {
    let mesh = Mesh::new();
    let workload = mesh.workload(Speaks::H2);
    let elsewhere = web_in_c2(&[(workload.address, "v1")], true)
        .replace("clusterName: c2", "clusterName: c3")
        .replace("web-c2", "web-c3")
        .replace("c2.global", "c3.global");
    let of_c2 = receiver(&[web_in_c2(&[(workload.address, "v1")], true), elsewhere]);
    let calling = |host: &str| {
        let known = [
            web_in_c2(&[(workload.address, "v1")], false).replace("web.ns1.svc.c2.global", host),
            entrance("ingress", of_c2.edge, "LOAD_BALANCER"),
        ];
        let to = format!("{{host: {host}, port: {{number: 80}}}}");
        caller(&mesh, &to, &known)
    };
    let called = |host: &str| statuses(&calling(host), 1);
    assert_eq!(called("shop.ns1.svc.c2.global"), [503]);
    eventually("the refusal is logged", || {
        let told = of_c2.stderr();
        let mut lines = told.lines();
        lines.any(|line| {
            line.contains("outbound_.80_._.shop.ns1.svc.c2.global")
                && line.contains("web.ns1.svc.c2.global")
                && !line.contains("c3.global")
        })
    });
    // nor is there one that a server of the listener would have
    let elsewhere = calling("web.ns1.svc.c2.elsewhere");
    eventually("the refusal is logged, too", || {
        // at most once a second
        assert_eq!(statuses(&elsewhere, 1), [503]);
        let told = of_c2.stderr();
        let mut lines = told.lines();
        lines.any(|line| {
            line.contains("outbound_.80_._.web.ns1.svc.c2.elsewhere")
                && line.contains("no server of the listener")
                && line.contains("web.ns1.svc.c2.global")
        })
    });
    // what belongs to a third cluster is not passed on: requests cannot go round in circles
    assert_eq!(called("web.ns1.svc.c3.global"), [503]);
    assert!(workload.callers().is_empty());
}

#[test]
fn traffic_from_a_remote_cluster_stays_local_despite_policies() {
    let mesh = Mesh::new();
    let workload = mesh.workload(Speaks::H2);
    let away = "apiVersion: v1\nkind: Service\nmetadata: {namespace: ns1, name: web}\nspec: {ports: [{name: http, port: 80}]}\n";
    let of_c3 = slice(3, "c3", workload.address);
    let policy =
        policy("{lbType: ActiveActive, targets: [{clusterKey: default/default/default/c3}]}");
    let of_c2 = receiver(&[away.to_owned(), of_c3, policy, web_in_c2(&[], true)]);
    let known = [
        web_in_c2(&[(workload.address, "v1")], false),
        entrance("ingress", of_c2.edge, "LOAD_BALANCER"),
    ];
    assert_eq!(statuses(&caller(&mesh, HOST, &known), 1), [503]);
    assert!(workload.callers().is_empty());
}
