//! Failover from cluster to cluster: scenarios 21 to 34, 47 and 87.

use super::*;

const BACKUPS: &str = "{lbType: FailOver, targets: [{clusterKey: c2}, {clusterKey: c3}]}";

fn setup<'a>(local: usize, policy: &'a str) -> Setup<'a> {
    Setup {
        local,
        policy,
        ..Setup::default()
    }
}

fn detecting<'a>(local: usize, policy: &'a str, rule: &'a str) -> Setup<'a> {
    Setup {
        rule,
        ..setup(local, policy)
    }
}

#[test]
fn backups_serve_while_the_local_cluster_is_unavailable() {
    let weighted =
        "{lbType: FailOver, targets: [{clusterKey: c2, weight: 75}, {clusterKey: c3, weight: 25}]}";
    type Row<'a> = (&'a str, Setup<'a>, &'a [&'a str], &'a [(&'a str, usize)]);
    let rows: &[Row<'_>] = &[
        ("21", setup(2, BACKUPS), &[], &[("L1", 500), ("L2", 500)]),
        ("22", setup(0, BACKUPS), &[], &[("g2", 500), ("g3", 500)]),
        (
            "23",
            detecting(2, BACKUPS, EJECTS_AT_ONCE),
            &["L1", "L2"],
            &[("g2", 500), ("g3", 500)],
        ),
        (
            "24",
            detecting(2, BACKUPS, EJECTS_AT_ONCE),
            &["L1", "L2", "g2"],
            &[("g3", 1000)],
        ),
        (
            "25",
            detecting(2, BACKUPS, EJECTS_AT_ONCE),
            &["L1", "L2", "g2", "g3"],
            &[("503", 1000)],
        ),
        (
            "26",
            detecting(2, BACKUPS, EJECTS_AT_ONCE),
            &["L1"],
            &[("L2", 1000)],
        ),
        ("34", setup(0, weighted), &[], &[("g2", 750), ("g3", 250)]),
    ];
    for (number, setup, ejected, expected) in rows {
        let world = World::new();
        let proxy = world.proxy(*setup);
        eject(&proxy, &world.sites(ejected));
        println!("scenario {number}");
        assert_shares(&count(&proxy, RUN), expected);
    }
}

#[test]
fn scenario_27_a_failing_cluster_causes_no_client_error() {
    let world = World::new();
    let proxy = world.proxy(setup(2, BACKUPS));
    world.l1.answers(503);
    world.l2.answers(503);
    let counts = count(&proxy, RUN);
    assert_shares(&counts, &[("g2", 500), ("g3", 500)]);
    assert_eq!(world.l1.paths().len() + world.l2.paths().len(), RUN);
    let replays = proxy.metric("strait_failover_replays_total", &[("reason", "status")]);
    assert_eq!(replays, 1000.0);
}

#[test]
fn a_retry_without_endpoints_in_its_cluster_goes_to_the_next() {
    let world = World::new();
    let start = Start::new();
    let setup = detecting(1, BACKUPS, EJECTS_AT_ONCE);
    let mesh = world.mesh(start.edge(), setup);
    let retries = "attempts: 2, retryOn: 5xx";
    let mesh = mesh.replace("attempts: 0", retries);
    let proxy = start.args(["--cluster", "c1"]).file("mesh.yaml", mesh);
    let proxy = proxy.start();
    // the first try ejects the only workload
    world.l1.answers(503);
    assert_shares(&count(&proxy, RUN), &[("g2", 500), ("g3", 500)]);
    assert_eq!(world.l1.paths().len(), 1);
    let replays = [("from_cluster", "c1"), ("reason", "connect_failure")];
    assert_eq!(proxy.metric("strait_failover_replays_total", &replays), 1.0);
}

#[test]
fn scenario_28_requests_refused_by_all_local_endpoints_go_to_a_backup() {
    let world = World::new();
    let gone = free_address();
    let closed = Setup {
        more: &slice(7, "", gone),
        ..setup(0, BACKUPS)
    };
    let proxy = world.proxy(closed);
    let mut client = Raw::connect(proxy.edge);
    let body = "x".repeat(1024);
    let post =
        format!("POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: 1024\r\n\r\n{body}");
    for _ in 0..100 {
        let reply = ask(&mut client, &post);
        assert_eq!(reply.status, 200);
        assert!(reply.has("x-body-bytes: 1024"), "{:?}", reply.headers);
    }
}

#[test]
fn scenarios_29_and_30_only_listed_outcomes_fail_over() {
    let world = World::new();
    let proxy = world.proxy(setup(1, BACKUPS));
    let post = "POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: 2\r\n\r\nhi";
    let mut client = Raw::connect(proxy.edge);
    for (status, request, expected) in [
        (500, post, 500),
        (500, GET, 200),
        (404, GET, 404),
        (429, GET, 429),
        (503, post, 200),
    ] {
        world.l1.answers(status);
        assert_eq!(ask(&mut client, request).status, expected, "{status}");
    }
    let upstream = Setup {
        arguments: &["--failover-replay", "fsm"],
        ..setup(1, BACKUPS)
    };
    let proxy = world.proxy(upstream);
    world.l1.answers(500);
    let mut client = Raw::connect(proxy.edge);
    assert_eq!(ask(&mut client, post).status, 200);
    let off = Setup {
        arguments: &["--failover-replay", "off"],
        ..setup(1, BACKUPS)
    };
    let proxy = world.proxy(off);
    let mut client = Raw::connect(proxy.edge);
    assert_eq!(ask(&mut client, GET).status, 500);
}

#[test]
fn scenario_31_a_body_over_the_limit_is_sent_once() {
    let world = World::new();
    let proxy = world.proxy(setup(1, BACKUPS));
    world.l1.answers(503);
    let mut client = Raw::connect(proxy.edge);
    let body = "x".repeat(1024 * 1024);
    let post =
        format!("POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: 1048576\r\n\r\n{body}");
    let reply = ask(&mut client, &post);
    assert_eq!(reply.status, 503);
    assert_eq!(String::from_utf8(reply.body).unwrap(), "L1");
}

#[test]
fn failover_body_limit_is_configurable() {
    let world = World::new();
    world.l1.answers(503);
    let answer = |arguments: &'static [&'static str], length: usize| {
        let proxy = world.proxy(Setup {
            arguments,
            ..setup(1, BACKUPS)
        });
        let body = "x".repeat(length);
        let post = format!(
            "POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        ask(&mut Raw::connect(proxy.edge), &post).status
    };
    let rows: [(&[&str], usize, u16); 7] = [
        (&[], 64 * 1024, 200),
        (&[], 64 * 1024 + 1, 503),
        (&["--failover-replay-bytes", "262144"], 200_000, 200),
        (&["--failover-replay-bytes", "16"], 16, 200),
        (&["--failover-replay-bytes", "16"], 17, 503),
        (&["--failover-replay-bytes", "0"], 0, 200),
        // what is not kept is not sent again
        (
            &[
                "--failover-replay-bytes",
                "4096",
                "--retry-body-bytes",
                "1024",
            ],
            2048,
            503,
        ),
    ];
    for (arguments, length, status) in rows {
        assert_eq!(answer(arguments, length), status, "{arguments:?} {length}");
    }
}

#[test]
fn scenario_32_each_gateway_sees_its_own_prefix() {
    let world = World::new();
    let proxy = world.proxy(setup(1, BACKUPS));
    world.l1.answers(503);
    let mut client = Raw::connect(proxy.edge);
    for _ in 0..10 {
        ask(
            &mut client,
            "GET /a?x=1 HTTP/1.1\r\nHost: web.example\r\n\r\n",
        );
    }
    assert!(world.l1.paths().iter().all(|path| path == "/a?x=1"));
    let (c2, c3) = (world.g2.paths(), world.g3.paths());
    assert!(c2.iter().all(|path| path == "/c2/web/a?x=1"), "{c2:?}");
    assert!(c3.iter().all(|path| path == "/c3/web/a?x=1"), "{c3:?}");
    assert_eq!(c2.len() + c3.len(), 10);
    let hosts = world.g2.origin.seen();
    assert!(hosts.iter().all(|seen| seen.host() == "web.example"));
}

#[test]
fn scenario_33_backups_are_used_in_order() {
    let world = World::new();
    let ordered = policy("{lbType: FailOver, targets: [{clusterKey: c3}, {clusterKey: c2}]}")
        .replace(
            "name: web}",
            "name: web, annotations: {multicluster.flomesh.io/failover-order: ordered}}",
        );
    let proxy = world.proxy(Setup {
        more: &ordered,
        ..detecting(0, "", EJECTS_AT_ONCE)
    });
    assert_shares(&count(&proxy, RUN), &[("g3", 1000)]);
    eject(&proxy, &[&world.g3]);
    assert_shares(&count(&proxy, RUN), &[("g2", 1000)]);
}

/// Starts a proxy whose rule has no `retries`, while the gateway of c2 accepts no connections.
fn without_c2(world: &World, setup: Setup<'_>) -> Proxy {
    let start = Start::new();
    let (address, gone) = (world.g2.address(), free_address());
    let text = world
        .mesh(start.edge(), setup)
        .replace("retries: {attempts: 0}, ", "")
        .replace(
            &format!("ip: {}, port: {}", address.ip(), address.port()),
            &format!("ip: {}, port: {}", gone.ip(), gone.port()),
        );
    start
        .args(["--cluster", "c1"])
        .file("mesh.yaml", text)
        .start()
}

#[test]
fn scenario_87_retries_reach_another_cluster() {
    let world = World::new();
    let policy = "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 80}, {clusterKey: c3, weight: 20}]}";
    let proxy = without_c2(&world, setup(0, policy));
    assert_shares(&count(&proxy, RUN), &[("g3", 1000)]);
    assert!(world.g3.paths().iter().all(|path| path == "/c3/web/"));
}

#[test]
fn the_last_tier_retries_replayed_requests() {
    let world = World::new();
    let local = slice(7, "", free_address());
    let closed = Setup {
        more: &local,
        ..setup(0, BACKUPS)
    };
    let proxy = without_c2(&world, closed);
    assert_shares(&count(&proxy, RUN), &[("g3", 1000)]);
}

#[test]
fn scenario_47_a_rewrite_applies_before_the_path_prefix() {
    let world = World::new();
    let start = Start::new();
    let policy = "{lbType: ActiveActive, targets: [{clusterKey: c2}]}";
    let text = world.mesh(start.edge(), setup(0, policy)).replace(
        "- {retries: {attempts: 0}, ",
        "- {match: [{uri: {prefix: /api}}], rewrite: {uri: /v1}, retries: {attempts: 0}, ",
    );
    let proxy = start
        .args(["--cluster", "c1"])
        .file("mesh.yaml", text)
        .start();
    let mut client = Raw::connect(proxy.edge);
    ask(
        &mut client,
        "GET /api/x HTTP/1.1\r\nHost: web.example\r\n\r\n",
    );
    assert_eq!(world.g2.paths(), ["/c2/web/v1/x"]);
}
