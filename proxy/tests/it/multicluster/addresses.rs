//! Requests to the virtual address of a service that several clusters serve: scenario 93.

use std::net::{IpAddr, TcpListener};

use super::*;

/// Virtual address of the service.
const VIP: &str = "127.201.9.9";

/// Returns a gateway of c1 on every address, and imports of ns1/web from other clusters that have this `spec` before
/// the ports.
fn mesh(world: &World, port: u16, import: &str) -> String {
    let gateway = format!(
        "apiVersion: networking.istio.io/v1\nkind: Gateway\nmetadata: {{name: edge}}\nspec:\n  selector: {{istio: ingressgateway}}\n  \
         servers:\n  - {{port: {{number: {port}, name: http, protocol: HTTP}}, bind: 0.0.0.0, hosts: ['*']}}\n"
    );
    documents([
        gateway,
        routes(
            "web",
            "[web.ns1.svc.cluster.local]",
            "- {retries: {attempts: 0}, route: [{destination: {host: web.ns1.svc.cluster.local, port: {number: 80}}}]}",
        ),
        routes(
            "known",
            "[known.example]",
            "- {directResponse: {status: 204}}",
        ),
        world
            .import()
            .replacen("spec: {", &format!("spec: {{{import}, "), 1),
        policy(
            "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 80}, {clusterKey: c3, weight: 20}]}",
        ),
    ])
}

#[test]
fn scenario_93_unknown_hosts_on_a_service_address_go_to_its_service() {
    let world = World::new();
    let socket = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    drop(socket);
    let proxy = Start::new()
        .args(["--cluster", "c1"])
        .file("mesh.yaml", mesh(&world, port, &format!("ips: [{VIP}]")))
        .start();
    let answers = |to: &str, host: &str, requests: usize| {
        let mut client = Raw::connect((to.parse::<IpAddr>().unwrap(), port).into());
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let mut counts = BTreeMap::new();
        for _ in 0..requests {
            *counts.entry(who(&ask(&mut client, &request))).or_default() += 1;
        }
        counts
    };
    let all = |who: &str| BTreeMap::from([(who.to_owned(), 5)]);
    let counts = answers(VIP, "unknown.example", RUN);
    assert_shares(&counts, &[("g2", 800), ("g3", 200)]);
    let seen = world.g2.origin.seen();
    assert!(seen.iter().all(|seen| seen.host() == "unknown.example"));
    assert_eq!(answers(VIP, "known.example", 5), all("204"));
    assert_eq!(answers("127.201.9.8", "unknown.example", 5), all("404"));
    let path = proxy.mesh().display().to_string();
    let explained = std::process::Command::new(env!("CARGO_BIN_EXE_strait"))
        .args([
            "explain",
            "--config",
            &path,
            "--labels",
            "istio=ingressgateway",
            "--cluster",
            "c1",
        ])
        .args([
            "GET",
            &format!("http://{VIP}:{port}/"),
            "-H",
            "Host: unknown.example",
        ])
        .output()
        .unwrap();
    let explained = String::from_utf8(explained.stdout).unwrap();
    assert!(
        explained.contains("to this address of a service"),
        "{explained}"
    );
    let headless = format!("type: Headless, ips: [{VIP}]");
    proxy.write("mesh.yaml", mesh(&world, port, &headless));
    eventually("no service has the address", || {
        answers(VIP, "unknown.example", 5) == all("404")
    });
}
