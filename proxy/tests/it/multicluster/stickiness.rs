//! Session affinity to a cluster: scenarios 58 to 60. The timeout is tested with the other timeouts.

use super::*;

const HALVES: &str =
    "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 50}, {clusterKey: c3, weight: 50}]}";

/// Returns a mesh for requests to the host of the cluster set, whose import has these fields.
fn mesh(world: &World, edge: SocketAddr, import: &str, setup: Setup<'_>) -> String {
    let setup = Setup {
        local: 0,
        host: "web.ns1.svc.clusterset.local",
        ..setup
    };
    let sticky = format!("spec: {{{import}, ports: [{{name: http, port: 80, endpoints: [");
    world.mesh(edge, setup).replace(
        "spec: {ports: [{name: http, port: 80, endpoints: [",
        &sticky,
    )
}

fn halves(rule: &str) -> Setup<'_> {
    Setup {
        policy: HALVES,
        rule,
        ..Setup::default()
    }
}

fn proxy(world: &World, import: &str, rule: &str) -> Proxy {
    let start = Start::new();
    let text = mesh(world, start.edge(), import, halves(rule));
    start
        .args(["--cluster", "c1", "--trusted-hops", "1"])
        .file("mesh.yaml", text)
        .start()
}

const DETECTS: &str =
    "{outlierDetection: {consecutive5xxErrors: 1, interval: 1s, baseEjectionTime: 60s}}";

const STICKY: &str = "sessionAffinity: ClientIP";

/// Returns the site that answers each of these clients; their addresses are in `x-forwarded-for`.
fn answers(proxy: &Proxy, clients: std::ops::Range<u8>) -> Vec<String> {
    let mut stream = Raw::connect(proxy.edge);
    let request = |client: u8| {
        format!(
            "GET / HTTP/1.1\r\nHost: web.example\r\nX-Forwarded-For: 203.0.113.{client}\r\n\r\n"
        )
    };
    clients
        .map(|client| who(&ask(&mut stream, &request(client))))
        .collect()
}

#[test]
fn scenario_58_session_affinity_survives_weight_changes() {
    let world = World::new();
    let proxy = proxy(&world, STICKY, "");
    let counts = count(&proxy, RUN);
    assert_eq!(counts.len(), 1, "{counts:?}");
    let homes = answers(&proxy, 0..40);
    assert!(
        ["g2", "g3"]
            .iter()
            .all(|name| homes.iter().any(|home| home == name))
    );
    assert_eq!(answers(&proxy, 0..40), homes);
    let policy = HALVES.replacen("50", "1", 1).replacen("50", "999", 1);
    let setup = Setup {
        policy: &policy,
        ..halves("")
    };
    proxy.write("mesh.yaml", mesh(&world, proxy.edge, STICKY, setup));
    eventually("the weights are in effect", || {
        proxy.page("/clusters").contains("weight=999")
    });
    assert_eq!(answers(&proxy, 0..40), homes, "who was seen stays");
    let others = answers(&proxy, 40..80);
    let third = others.iter().filter(|home| *home == "g3").count();
    assert!(third > 35, "who was not goes by the weights: {others:?}");
    let pins = "outbound|80||web.ns1.svc.clusterset.local::session_affinity_entries::81/65536";
    assert!(proxy.page("/clusters").contains(pins));
    // explain shows the same for a client with an affinity entry and for one without
    let (port, at) = (proxy.edge.port(), |name| world.sites(&[name])[0].address());
    let question = format!("/explain?url=http://web.example:{port}/&client=203.0.113.");
    let home = at(&homes[7]);
    let said = proxy.page(&format!("{question}7"));
    assert!(
        said.contains(&format!("remembered at {home} for ")),
        "{said}"
    );
    assert!(
        said.contains("remembered for 10800s after its last request"),
        "{said}"
    );
    let said = proxy.page(&format!("{question}200"));
    let led = format!(
        "which leads to {} by its hash, as that of a client not seen before",
        at("g3")
    );
    assert!(said.contains(&led), "{led}: {said}");
}

#[test]
fn scenario_59_a_sticky_client_of_an_ejected_gateway_moves_once() {
    let world = World::new();
    let proxy = proxy(&world, STICKY, DETECTS);
    let (home, other) = match count(&proxy, 1).contains_key("g2") {
        true => (&world.g2, "g3"),
        false => (&world.g3, "g2"),
    };
    home.answers(500);
    let counts = count(&proxy, RUN);
    assert_shares(&counts, &[(other, RUN - 1), ("500", 1)]);
    assert_eq!(counts["500"], 1, "no error but the one that ejects");
    home.answers(200);
    // without outlier detection no endpoint is ejected
    proxy.write("mesh.yaml", mesh(&world, proxy.edge, STICKY, halves("")));
    eventually("it is back", || {
        !proxy.page("/clusters").contains("ejected")
    });
    assert_shares(&count(&proxy, RUN), &[(other, RUN)]);
}

#[test]
fn sticky_clients_of_a_removed_cluster_move_to_http2_handle() {
    let world = World::new();
    let (gone, address) = (free_address(), world.g2.address());
    let start = Start::new();
    let text = mesh(&world, start.edge(), STICKY, halves(""))
        .replace("retries: {attempts: 0}, ", "")
        .replace(
            &format!("ip: {}, port: {}", address.ip(), address.port()),
            &format!("ip: {}, port: {}", gone.ip(), gone.port()),
        );
    let proxy = start
        .args(["--cluster", "c1", "--trusted-hops", "1"])
        .file("mesh.yaml", text)
        .start();
    let homes = answers(&proxy, 0..40);
    assert!(homes.iter().all(|home| home == "g3"), "{homes:?}");
}

#[test]
fn explain_shows_the_cluster_of_an_affinity_key() {
    let world = World::new();
    let proxy = proxy(
        &world,
        "sessionAffinity: None",
        "{loadBalancer: {consistentHash: {httpHeaderName: x-user}}}",
    );
    for user in ["alice", "bob", "carol", "dave", "erin", "frank"] {
        let request = format!("GET / HTTP/1.1\r\nHost: web.example\r\nx-user: {user}\r\n\r\n");
        let counts = count_of(&proxy, 1, &request);
        let site = match counts.contains_key("g2") {
            true => &world.g2,
            false => &world.g3,
        };
        let question = format!(
            "/explain?url=http://web.example:{}/&header=x-user:{user}",
            proxy.edge.port()
        );
        let said = proxy.page(&question);
        let wanted = format!("which leads to {}", site.address());
        assert!(said.contains(&wanted), "{wanted}: {said}");
    }
}

#[test]
fn scenario_60_a_headless_import_has_no_affinity() {
    let world = World::new();
    let import = "type: Headless, sessionAffinity: ClientIP";
    let proxy = proxy(&world, import, "");
    assert_shares(&count(&proxy, RUN), &[("g2", 500), ("g3", 500)]);
    proxy.has_logged("SI012");
}
