//! Retries within a tier, and failover replays in the next tier.

use std::net::SocketAddr;

use super::*;

/// Policy with two backups: two tiers with `failover-order: ordered`, otherwise one tier of both.
const BACKUPS: &str = "{lbType: FailOver, targets: [{clusterKey: c2}, {clusterKey: c3}]}";

const POST: &str = "POST / HTTP/1.1\r\nHost: web.example\r\nContent-Length: 2\r\n\r\nhi";

/// Starts a proxy with these workloads in the local cluster, with a rule without `retries` unless `retries` is set.
fn proxy(world: &World, locals: &[SocketAddr], retries: &str, arguments: &[&str]) -> Proxy {
    proxy_with(world, locals, arguments, |text| {
        text.replace("retries: {attempts: 0}, ", retries)
    })
}

fn proxy_with(
    world: &World,
    locals: &[SocketAddr],
    arguments: &[&str],
    change: impl FnOnce(String) -> String,
) -> Proxy {
    let start = Start::new();
    let slices = (5..).zip(locals);
    let mut more: Vec<String> = slices.map(|(number, at)| slice(number, "", *at)).collect();
    let annotated = "name: web, annotations: {multicluster.flomesh.io/failover-order: ordered}}";
    more.push(policy(BACKUPS).replace("name: web}", annotated));
    let more = documents(more);
    let setup = Setup {
        local: 0,
        more: more.trim_start_matches("---\n"),
        ..Setup::default()
    };
    let text = change(world.mesh(start.edge(), setup));
    let arguments = ["--cluster", "c1"].iter().chain(arguments).copied();
    start.args(arguments).file("mesh.yaml", text).start()
}

fn at(address: SocketAddr) -> String {
    format!("ip: {}, port: {}", address.ip(), address.port())
}

/// Starts an origin that never answers.
fn silent() -> Origin {
    Origin::start(Back::H1, |_| async {
        std::future::pending::<()>().await;
        Response::new(full("never"))
    })
}

fn only(name: &str, requests: usize) -> BTreeMap<String, usize> {
    BTreeMap::from([(name.to_owned(), requests)])
}

#[test]
fn without_replays_default_retries_work_in_every_tier() {
    let world = World::new();
    let locals = [free_address(), world.l1.address()];
    let off = proxy(&world, &locals, "", &["--failover-replay", "off"]);
    assert_eq!(count(&off, 40), only("L1", 40));
    assert!(off.metric("strait_failover_replays_total", &[]) == 0.0);
}

#[test]
fn outcomes_that_do_not_fail_over_are_retried_in_their_tier() {
    let world = World::new();
    let cancelling = Origin::start(Back::H1, |_| async {
        let mut response = Response::new(full("cancelled"));
        response.headers_mut().insert("grpc-status", 1.into());
        response
    });
    let locals = [cancelling.address, world.l1.address()];
    let safe = proxy(&world, &locals, "", &[]);
    assert_eq!(count(&safe, 40), only("L1", 40));
    assert!(!cancelling.seen().is_empty());
    assert!(world.g2.paths().is_empty());
}

#[test]
fn an_attempt_without_a_response_is_replayed_with_any_method() {
    let world = World::new();
    let local = silent();
    let retries = "retries: {attempts: 1, perTryTimeout: 50ms, retryOn: connect-failure}, ";
    let safe = proxy(&world, &[local.address], retries, &[]);
    assert_eq!(count_of(&safe, 1, POST), only("504", 1));
    let fsm = ["--failover-replay", "fsm"];
    let fsm = proxy(&world, &[local.address], retries, &fsm);
    assert_eq!(count_of(&fsm, 1, POST), only("g2", 1));
}

#[test]
fn a_refused_request_goes_through_the_tiers_in_order() {
    let world = World::new();
    let closed = [free_address(), free_address()];
    let (c2, closed_c2) = (at(world.g2.address()), at(free_address()));
    let proxy = proxy_with(&world, &closed, &[], |text| text.replace(&c2, &closed_c2));
    assert_eq!(count_of(&proxy, 20, POST), only("g3", 20));
    let seen = world.g3.origin.seen();
    let mut attempts = seen.iter().map(|seen| seen.header("x-envoy-attempt-count"));
    assert!(attempts.all(|count| count == Some("3")));
    let replays = |from, to| {
        let labels = [
            ("from_cluster", from),
            ("to_cluster", to),
            ("reason", "connect_failure"),
        ];
        proxy.metric("strait_failover_replays_total", &labels)
    };
    assert_eq!((replays("c1", "c2"), replays("c2", "c3")), (20.0, 20.0));
}

#[test]
fn a_local_circuit_breaker_does_not_cause_failover() {
    let world = World::new();
    let local = silent();
    let proxy = proxy_with(&world, &[local.address], &[], |text| {
        let limit = "trafficPolicy: {connectionPool: {http: {http2MaxRequests: 1}}, ";
        text.replace("trafficPolicy: {", limit)
    });
    let mut held = Raw::connect(proxy.edge);
    held.send(GET);
    eventually("the only request is in progress", || {
        !local.seen().is_empty()
    });
    let late = "GET /late HTTP/1.1\r\nHost: web.example\r\n\r\n";
    assert_eq!(count_of(&proxy, 1, late), only("503", 1));
    assert_eq!(proxy.logged("/late")["response_flags"], "UO");
    assert!(world.g2.paths().is_empty());
}

/// Asserts the flags and details in the log for a request that no cluster serves.
#[track_caller]
fn assert_reason(proxy: &Proxy, reason: &str) {
    let late = "GET /late HTTP/1.1\r\nHost: web.example\r\n\r\n";
    assert_eq!(count_of(proxy, 1, late), only("503", 1), "{reason}");
    let logged = proxy.logged("/late");
    let details = format!("no_healthy_upstream{{{reason}}}");
    assert_eq!(logged["response_code_details"], details);
    assert_eq!(logged["response_flags"], "UH");
}

#[test]
fn scenarios_15_and_25_the_log_has_all_ejected_as_reason() {
    let weighted = "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 100}, {clusterKey: c3, weight: 0}]}";
    let unordered = "{lbType: FailOver, targets: [{clusterKey: c2}, {clusterKey: c3}]}";
    let all: &[&str] = &["L1", "L2", "g2", "g3"];
    for (policy, local, ejected) in [(weighted, 0, &["g2"][..]), (unordered, 2, all)] {
        let world = World::new();
        let proxy = world.proxy(Setup {
            local,
            policy,
            rule: EJECTS_AT_ONCE,
            ..Setup::default()
        });
        eject(&proxy, &world.sites(ejected));
        assert_reason(&proxy, "all_ejected");
    }
}

#[test]
fn the_log_distinguishes_failed_health_checks_from_unresolved_names() {
    let world = World::new();
    let both = [at(world.g2.address()), at(world.g3.address())];
    let of = |change: &dyn Fn(String) -> String| {
        let start = Start::new();
        let setup = Setup {
            local: 0,
            policy: BACKUPS,
            ..Setup::default()
        };
        let text = change(world.mesh(start.edge(), setup));
        let start = start.args(["--cluster", "c1"]);
        start.file("mesh.yaml", text).start()
    };
    let unhealthy = of(&|text| {
        let annotated = "metadata: {namespace: ns1, name: web, annotations: {strait.io/health-check: tcp}}\nspec: {host: web,";
        let text = text.replace(
            "metadata: {namespace: ns1, name: web}\nspec: {host: web,",
            annotated,
        );
        assert!(text.contains("strait.io/health-check"));
        let closed = |text: String, site: &String| text.replace(site, &at(free_address()));
        both.iter().fold(text, closed)
    });
    assert_reason(&unhealthy, "unhealthy");
    let unresolved = of(&|text| {
        let named = |text: String, site: &String| {
            text.replace(
                &format!("host: '', {site}"),
                "host: missing.invalid, port: 80",
            )
        };
        let text = both.iter().fold(text, named);
        assert_eq!(text.matches("missing.invalid").count(), 2);
        text
    });
    assert_reason(&unresolved, "unresolved");
}

#[test]
fn scenarios_65_and_66_the_log_names_excluded_clusters() {
    let world = World::new();
    let exposed = |spec: &str| {
        format!(
            "apiVersion: networking.karmada.io/v1alpha1\nkind: MultiClusterService\n\
             metadata: {{namespace: ns1, name: web}}\nspec: {spec}\n"
        )
    };
    let setup = Setup {
        local: 0,
        policy: "{lbType: ActiveActive, targets: [{clusterKey: c2, weight: 50}]}",
        more: &exposed("{types: [CrossCluster], consumerClusters: [{name: c2}]}"),
        ..Setup::default()
    };
    assert_reason(&world.proxy(setup), "consumer_excluded");
    let start = Start::new();
    let text = world
        .mesh(start.edge(), Setup { more: "", ..setup })
        .replace("port: {number: 80}", "port: {number: 8080}")
        .replace(
            "spec: {ports: [{name: http, port: 80}]}",
            "spec: {ports: [{name: http, port: 80}, {name: http-2, port: 8080}]}",
        );
    let start = start.args(["--cluster", "c1"]);
    assert_reason(&start.file("mesh.yaml", text).start(), "port_not_exported");
}

#[test]
fn the_log_has_the_reason_without_a_policy_too() {
    let world = World::new();
    let rule = |subset: &str| {
        format!(
            "{{loadBalancer: {{simple: ROUND_ROBIN}}}}, subsets: [{{name: s, labels: {{{subset}}}}}]"
        )
    };
    let nowhere = rule("topology.istio.io/cluster: c2");
    let rows = [
        (0, "{}", "", "no_policy"),
        (2, &*nowhere, ", subset: s", "subset_empty"),
    ];
    for (local, rule, subset, reason) in rows {
        let setup = Setup {
            local,
            rule,
            ..Setup::default()
        };
        let start = Start::new();
        let text = world.mesh(start.edge(), setup);
        let with_subset = format!("port: {{number: 80}}{subset}");
        let text = text.replace("port: {number: 80}", &with_subset);
        let start = start.args(["--cluster", "c1"]);
        assert_reason(&start.file("mesh.yaml", text).start(), reason);
    }
    let proxy = world.proxy(Setup {
        rule: EJECTS_AT_ONCE,
        ..Setup::default()
    });
    eject(&proxy, &[&world.l1, &world.l2]);
    assert_reason(&proxy, "all_ejected");
}

#[test]
fn retries_prefer_a_cluster_that_was_not_attempted() {
    let world = World::new();
    world.l1.answers(503);
    world.l2.answers(503);
    let start = Start::new();
    let all = "{lbType: ActiveActive, targets: [{clusterKey: c1, weight: 98}, {clusterKey: c2, weight: 1}, {clusterKey: c3, weight: 1}]}";
    let text = world.mesh(
        start.edge(),
        Setup {
            policy: all,
            ..Setup::default()
        },
    );
    let text = text.replace(
        "retries: {attempts: 0}",
        "retries: {attempts: 1, retryOn: 5xx}",
    );
    let proxy = start
        .args(["--cluster", "c1"])
        .file("mesh.yaml", text)
        .start();
    let counts = count(&proxy, 100);
    assert!(counts.keys().eq(["g2", "g3"]), "{counts:?}");
}
