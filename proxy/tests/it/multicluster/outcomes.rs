//! Failures of a tier that a replay in the next tier hides, beyond scenarios 27 to 31; and the number of attempts per
//! tier.

use super::*;
use crate::support::frames::{Frames, HEADERS, RST_STREAM};
use crate::support::origin::RawOrigin;
use crate::support::pki::Authority;
use crate::support::tls_origin::{Speaks, Terms, TlsOrigin};

const BACKUP: &str = "{lbType: FailOver, targets: [{clusterKey: c2}]}";
const BACKUPS: &str = "{lbType: FailOver, targets: [{clusterKey: c2}, {clusterKey: c3}]}";

/// Error code REFUSED_STREAM: the server has not processed the stream.
const REFUSED_STREAM: [u8; 4] = [0, 0, 0, 7];

/// Starts a proxy with this workload in the local cluster and c2 as backup, after a change of its mesh.
fn backed(world: &World, local: SocketAddr, change: impl FnOnce(String) -> String) -> Proxy {
    let start = Start::new();
    let more = slice(5, "", local);
    let setup = Setup {
        local: 0,
        policy: BACKUP,
        more: &more,
        ..Setup::default()
    };
    let text = change(world.mesh(start.edge(), setup));
    start
        .args(["--cluster", "c1"])
        .file("mesh.yaml", text)
        .start()
}

fn replaced(text: String, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from} is not in\n{text}");
    text.replace(from, to)
}

fn only(name: &str, requests: usize) -> BTreeMap<String, usize> {
    BTreeMap::from([(name.to_owned(), requests)])
}

fn post(bytes: usize) -> String {
    let body = "b".repeat(bytes);
    format!("POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: {bytes}\r\n\r\n{body}")
}

fn replays(proxy: &Proxy, reason: &str) -> f64 {
    proxy.metric("strait_failover_replays_total", &[("reason", reason)])
}

#[test]
fn a_refused_stream_is_replayed_in_the_next_cluster() {
    let world = World::new();
    let refuses = RawOrigin::start(|_, stream| {
        let mut peer = Frames::accept(stream, &[]);
        while let Some(asked) = peer.next_of(HEADERS) {
            peer.send(RST_STREAM, 0, asked.stream, &REFUSED_STREAM);
        }
    });
    let gateway = Origin::named(Back::H2, "c2 by HTTP/2");
    let in_c2 = |at: SocketAddr| format!("ip: {}, port: {}", at.ip(), at.port());
    let proxy = backed(&world, refuses.address, |text| {
        let text = replaced(text, "name: http,", "name: http2,");
        replaced(text, &in_c2(world.g2.address()), &in_c2(gateway.address))
    });
    assert_eq!(count_of(&proxy, 10, &post(2)), only("c2 by HTTP/2", 10));
    assert_eq!(replays(&proxy, "reset"), 10.0);
}

#[test]
fn a_grpc_unavailable_status_is_replayed_in_the_next_cluster() {
    let world = World::new();
    let says = |status: &'static str| {
        Origin::start(Back::H1, move |_| async move {
            let mut response = Response::new(full("local"));
            let headers = response.headers_mut();
            headers.insert("grpc-status", status.parse().unwrap());
            headers.insert("content-type", "application/grpc".parse().unwrap());
            response
        })
    };
    let call = "POST /s/m HTTP/1.1\r\nHost: web.example\r\nContent-Type: application/grpc\r\nContent-Length: 0\r\n\r\n";
    for (status, who) in [("14", "g2"), ("13", "local"), ("0", "local")] {
        let local = says(status);
        let proxy = backed(&world, local.address, |text| text);
        assert_eq!(count_of(&proxy, 5, call), only(who, 5), "{status}");
        assert_eq!(local.seen().len(), 5, "the local cluster is asked first");
    }
}

#[test]
fn a_failed_handshake_is_replayed_in_the_next_cluster() {
    let world = World::new();
    let pair = Authority::new("any").server(&["web.example"]);
    let terms = Terms::new(&pair);
    let gateway = TlsOrigin::serving(Speaks::H1, &terms, |_| async {
        Ok(Response::new(full("c2 by TLS")))
    });
    let plain = RawOrigin::start(|_, mut stream| {
        use std::io::Write;
        let _ = stream.write_all(b"this is no handshake");
    });
    let (ip, port) = (gateway.address.ip(), gateway.address.port());
    let g2 = world.g2.address();
    let proxy = backed(&world, plain.address, |text| {
        let policy = "trafficPolicy: {portLevelSettings: [{port: {number: 80}, \
                      tls: {mode: SIMPLE, insecureSkipVerify: true}}], ";
        let text = replaced(text, "trafficPolicy: {", policy);
        let in_c2 = format!("ip: {}, port: {}", g2.ip(), g2.port());
        replaced(text, &in_c2, &format!("ip: {ip}, port: {port}"))
    });
    assert_eq!(count_of(&proxy, 5, &post(2)), only("c2 by TLS", 5));
    assert_eq!(replays(&proxy, "connect_failure"), 5.0);
}

#[test]
fn the_route_timeout_covers_the_attempts_in_all_clusters() {
    let world = World::new();
    let silent = Origin::start(Back::H1, |_| async {
        std::future::pending::<()>().await;
        Response::new(full("never"))
    });
    let proxy = backed(&world, silent.address, |text| {
        replaced(text, "- {retries:", "- {timeout: 100ms, retries:")
    });
    assert_eq!(count(&proxy, 1), only("504", 1));
    assert!(world.g2.paths().is_empty());
    assert_eq!(silent.seen().len(), 1);
}

#[test]
fn a_body_is_replayed_up_to_64_kib() {
    let world = World::new();
    world.l1.answers(503);
    let proxy = backed(&world, world.l1.address(), |text| text);
    let limit = 64 * 1024;
    assert_eq!(count_of(&proxy, 3, &post(limit)), only("g2", 3));
    assert_eq!(count_of(&proxy, 3, &post(limit + 1)), only("503", 3));
    assert_eq!(world.g2.paths().len(), 3);
}

#[test]
fn example_e2_a_failing_cluster_gets_requests_until_its_ejection() {
    let world = World::new();
    let third = Site::new("L3");
    let sites = [&world.l1, &world.l2, &third];
    sites.iter().for_each(|site| site.answers(503));
    let proxy = world.proxy(Setup {
        policy: BACKUPS,
        rule: "{loadBalancer: {simple: ROUND_ROBIN}, outlierDetection: {consecutive5xxErrors: 5, interval: 1s, \
               baseEjectionTime: 60s, maxEjectionPercent: 100}}",
        more: &slice(5, "", third.address()),
        ..Setup::default()
    });
    let counts = count(&proxy, RUN);
    assert_shares(&counts, &[("g2", 500), ("g3", 500)]);
    let asked = sites.map(|site| site.paths().len());
    assert_eq!(asked, [5; 3]);
}

#[test]
fn example_e5_a_zero_weight_cluster_is_a_backup_only_with_zero_weight_fsm() {
    let drained = "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 100}, {clusterKey: c3, weight: 0}]}";
    for (arguments, who) in [(&[][..], "503"), (&["--zero-weight", "fsm"], "g3")] {
        let world = World::new();
        let proxy = world.proxy(Setup {
            local: 0,
            policy: drained,
            rule: EJECTS_AT_ONCE,
            arguments,
            ..Setup::default()
        });
        eject(&proxy, &[&world.g2]);
        assert_eq!(count(&proxy, 100), only(who, 100));
    }
}

#[test]
fn example_e7_provider_clusters_limit_the_policy() {
    let world = World::new();
    let proxy = world.proxy(Setup {
        policy: "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 50}, {clusterKey: c3, weight: 50}]}",
        more: "apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\n\
               metadata: {namespace: ns1, name: web}\n\
               spec: {types: [CrossCluster], providerClusters: [{name: c2}]}\n",
        ..Setup::default()
    });
    assert_eq!(count(&proxy, 100), only("g2", 100));
}

#[test]
fn scenario_23_a_recovered_cluster_gets_its_traffic_back() {
    let world = World::new();
    let proxy = world.proxy(Setup {
        policy: BACKUPS,
        rule: "{loadBalancer: {simple: ROUND_ROBIN}, outlierDetection: {consecutive5xxErrors: 1, interval: 50ms, \
               baseEjectionTime: 50ms, maxEjectionPercent: 100}}",
        ..Setup::default()
    });
    world.l1.answers(503);
    world.l2.answers(503);
    let counts = count(&proxy, 100);
    assert!(counts.keys().eq(["g2", "g3"]), "{counts:?}");
    world.l1.answers(200);
    world.l2.answers(200);
    eventually("both are back", || {
        let counts = count(&proxy, 2);
        counts.keys().eq(["L1", "L2"])
    });
    assert_shares(&count(&proxy, 100), &[("L1", 50), ("L2", 50)]);
}
