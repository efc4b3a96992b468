//! Selection and inheritance of DestinationRules, and replies to requests without an endpoint, on live sockets.

use std::fmt::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;

use hyper::Response;
use tokio::sync::Barrier;

use crate::balancing::{Named, ask, has_keepalive, name, names};
use crate::support::eventually;
use crate::support::mesh::{documents, gateway, routes};
use crate::support::origin::{Back, Origin, full};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::Raw;

/// Resources around the rules: the rest of the destination of a route to `a.test`, and the rest of a ServiceEntry in
/// the namespace `home`.
struct Around {
    destination: &'static str,
    entry: String,
}

impl Around {
    /// Creates a route to the whole service.
    fn endpoints(endpoints: &[String]) -> Self {
        Self {
            destination: "",
            entry: format!("resolution: STATIC, endpoints: [{}]", endpoints.join(", ")),
        }
    }

    fn to(self, destination: &'static str) -> Self {
        Self {
            destination,
            ..self
        }
    }

    /// Returns the mesh with these DestinationRules, each `NAMESPACE/NAME SPEC`.
    fn mesh(&self, edge: SocketAddr, rules: &[&str]) -> String {
        let destination = format!("{{host: a.test{}}}", self.destination);
        let mut documents = vec![
            gateway(&[edge]),
            routes(
                "a",
                "['*']",
                &format!("- {{retries: {{attempts: 0}}, route: [{{destination: {destination}}}]}}"),
            ),
            format!(
                "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: a, namespace: home}}\nspec: \
                 {{hosts: [a.test], ports: [{{number: 80, name: http, protocol: HTTP}}, {{number: 81, name: more, \
                 protocol: HTTP}}], {}}}\n",
                self.entry
            ),
        ];
        documents.extend(rules.iter().map(|rule| {
            let (name, spec) = rule.split_once(' ').unwrap();
            let (namespace, name) = name.split_once('/').unwrap();
            format!(
                "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: {name}, namespace: \
                 {namespace}}}\nspec: {spec}\n"
            )
        }));
        self::documents(documents)
    }

    fn start(&self, rules: &[&str], arguments: &[&str]) -> Proxy {
        let start = Start::new();
        let text = self.mesh(start.edge(), rules);
        let arguments = arguments.iter().copied();
        start.args(arguments).file("mesh.yaml", text).start()
    }
}

/// Returns an endpoint that serves both ports, with additional fields.
fn endpoint(at: SocketAddr, more: &str) -> String {
    let (ip, port) = (at.ip(), at.port());
    format!("{{address: {ip}, ports: {{http: {port}, more: {port}}}{more}}}")
}

const PORT_80: &str = ", port: {number: 80}";
const PORT_81: &str = ", port: {number: 81}";

const KEEPALIVE: &str = "connectionPool: {tcp: {tcpKeepalive: {time: 7200s}}}";

/// Whether upstream connections use the keepalive of [`KEEPALIVE`] under these rules.
fn keeps_alive(destination: &'static str, rules: &[&str], arguments: &[&str]) -> bool {
    let origin = Named::new("one");
    let at = origin.origin.address;
    let proxy = Around::endpoints(&[endpoint(at, ", labels: {version: v1}")])
        .to(destination)
        .start(rules, arguments);
    assert_eq!(names(&proxy, "", 1), ["one"]);
    has_keepalive(at)
}

#[test]
fn t91_less_specific_rule_fills_no_gap() {
    let wide = format!("home/wide {{host: '*.test', trafficPolicy: {{{KEEPALIVE}}}}}");
    let narrow = "home/narrow {host: a.test, trafficPolicy: {loadBalancer: {simple: RANDOM}}}";
    assert!(keeps_alive(PORT_80, &[&wide], &[]));
    assert!(!keeps_alive(PORT_80, &[&wide, narrow], &[]));
}

#[test]
fn t92_rule_in_the_client_namespace_replaces_all_others() {
    let of = |namespace: &str, more: &str| {
        format!("{namespace}/rule {{host: a.test{more}, trafficPolicy: {{{KEEPALIVE}}}}}")
    };
    let (home, hidden) = (of("home", ""), of("home", ", exportTo: [.]"));
    let (root, elsewhere) = (of("istio-system", ""), of("elsewhere", ""));
    let client = "default/client {host: a.test, trafficPolicy: {loadBalancer: {simple: RANDOM}}}";
    for (rules, counts) in [
        (&[&*home][..], true),
        (&[&*home, client], false),
        (&[&*hidden], false),
        (&[&*hidden, &*root], true),
        (&[&*root, client], false),
        (&[&*elsewhere], false),
    ] {
        assert_eq!(keeps_alive(PORT_80, rules, &[]), counts, "{rules:?}");
    }
}

#[test]
fn rule_with_a_workload_selector_applies_to_those_workloads_only() {
    let chosen = format!(
        "default/chosen {{host: a.test, workloadSelector: {{matchLabels: {{app: edge}}}}, trafficPolicy: {{{KEEPALIVE}}}}}"
    );
    let all = "default/all {host: a.test, trafficPolicy: {loadBalancer: {simple: RANDOM}}}";
    let rules = [&*chosen, all];
    let edge = ["--labels", "istio=ingressgateway,app=edge"];
    assert!(keeps_alive(PORT_80, &rules, &edge));
    assert!(!keeps_alive(PORT_80, &rules, &[]));
}

#[test]
fn rules_for_one_host_are_merged() {
    let first = "home/a {host: a.test, subsets: [{name: v1, labels: {version: v1}}]}";
    let second = format!(
        "home/b {{host: a.test, trafficPolicy: {{{KEEPALIVE}}}, subsets: [{{name: v1, labels: {{version: v9}}}}]}}"
    );
    // the subset of the first, with the policy of the second
    assert!(keeps_alive(
        ", subset: v1, port: {number: 80}",
        &[first, &second],
        &[]
    ));
}

/// Starts an origin that answers two requests only once both have arrived.
fn pairs() -> Origin {
    let barrier = Arc::new(Barrier::new(2));
    Origin::start(Back::H1, move |_| {
        let barrier = Arc::clone(&barrier);
        async move {
            barrier.wait().await;
            Response::new(full("both"))
        }
    })
}

#[test]
fn t93_subset_policy_block_replaces_the_whole_block() {
    let rule = "home/rule {host: a.test, trafficPolicy: {connectionPool: {tcp: {maxConnections: 1, \
        tcpKeepalive: {time: 7200s}}}}, subsets: [{name: v1, labels: {version: v1}, trafficPolicy: \
        {connectionPool: {http: {maxRetries: 3}}}}]}";
    let subset = ", subset: v1, port: {number: 80}";
    assert!(keeps_alive(PORT_80, &[rule], &[]));
    assert!(!keeps_alive(subset, &[rule], &[]));
    let origin = pairs();
    let at = endpoint(origin.address, ", labels: {version: v1}");
    let proxy = Around::endpoints(&[at]).to(subset).start(&[rule], &[]);
    let mut clients = [Raw::connect(proxy.edge), Raw::connect(proxy.edge)];
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    }
    for client in &mut clients {
        assert_eq!(name(&client.reply()), "both");
    }
}

#[test]
fn t94_settings_of_a_port_inherit_nothing() {
    let rule = "home/rule {host: a.test, trafficPolicy: {proxyProtocol: {}, connectionPool: {tcp: {tcpKeepalive: {}}}, \
        tls: {mode: SIMPLE}, portLevelSettings: [{port: {number: 80}, loadBalancer: {simple: RANDOM}}]}}";
    assert!(!keeps_alive(PORT_80, &[rule], &[]));
    let origin = Named::new("plain");
    let at = endpoint(origin.origin.address, "");
    let proxy = Around::endpoints(&[at]).to(PORT_81).start(&[rule], &[]);
    // a server of plain HTTP takes neither a PROXY header nor TLS
    let reply = ask(&mut Raw::connect(proxy.edge), "");
    assert_ne!(reply.status, 200);
    assert!(origin.origin.seen().is_empty());
}

/// Checks that a request gets 503 without an endpoint, and that no connection is opened for it.
fn check_no_endpoint(proxy: &Proxy, reason: &str) {
    let mut client = Raw::connect(proxy.edge);
    for _ in 0..20 {
        let reply = ask(&mut client, "");
        assert_eq!(reply.status, 503);
        assert_eq!(name(&reply), "no healthy upstream");
        assert!(reply.has("content-type: text/plain"));
    }
    let logged = proxy.logged("/?user=u");
    assert_eq!(logged["response_flags"], "UH", "{logged}");
    let details = format!("no_healthy_upstream{reason}");
    assert_eq!(logged["response_code_details"], details);
    check_alive(proxy);
}

fn check_alive(proxy: &Proxy) {
    assert!(proxy.is_ready());
    let log = proxy.stderr();
    assert!(!log.contains("panic"), "{log}");
}

#[test]
fn t95_subset_without_endpoints_gives_503() {
    let origin = Named::new("one");
    let rule = "home/rule {host: a.test, subsets: [{name: v2, labels: {version: v2}}]}";
    let at = endpoint(origin.origin.address, ", labels: {version: v1}");
    let around = Around::endpoints(&[at]).to(", subset: v2, port: {number: 80}");
    check_no_endpoint(&around.start(&[rule], &[]), "{subset_empty}");
    assert!(origin.origin.seen().is_empty());
}

#[test]
fn t96_undefined_subset_has_no_cluster() {
    let origin = Named::new("one");
    let rule = "home/rule {host: a.test, subsets: [{name: v1, labels: {version: v1}}]}";
    let at = endpoint(origin.origin.address, ", labels: {version: v1}");
    let around = Around::endpoints(&[at]).to(", subset: v2, port: {number: 80}");
    let proxy = around.start(&[rule], &[]);
    let reply = ask(&mut Raw::connect(proxy.edge), "");
    assert_eq!((reply.status, name(&reply)), (503, String::new()));
    let logged = proxy.logged("/?user=u");
    assert_eq!(logged["response_flags"], "NC", "{logged}");
    check_alive(&proxy);
}

#[test]
fn name_without_addresses_gives_503() {
    for resolution in ["DNS", "DNS_ROUND_ROBIN"] {
        let around = Around {
            destination: PORT_80,
            entry: format!("resolution: {resolution}, endpoints: [{{address: missing.invalid}}]"),
        };
        for balancer in ["simple: ROUND_ROBIN", "consistentHash: {useSourceIp: true}"] {
            let rule = format!(
                "home/rule {{host: a.test, trafficPolicy: {{outlierDetection: {{}}, loadBalancer: {{{balancer}}}}}}}"
            );
            check_no_endpoint(&around.start(&[&rule], &[]), "{unresolved}");
        }
    }
}

#[test]
fn distribution_to_an_empty_locality_gives_503() {
    let origin = Named::new("one");
    let at = endpoint(origin.origin.address, ", locality: r/a");
    let rule = "home/rule {host: a.test, trafficPolicy: {loadBalancer: {localityLbSetting: {distribute: \
        [{from: '*', to: {r/b: 50, q: 50}}]}}}}";
    let proxy = Around::endpoints(&[at]).to(PORT_80).start(&[rule], &[]);
    check_no_endpoint(&proxy, "");
    assert!(origin.origin.seen().is_empty());
    proxy.has_logged("X290");
}

#[test]
fn ejecting_all_endpoints_gives_503_with_every_balancer_and_retries() {
    for balancer in [
        "simple: LEAST_REQUEST",
        "simple: RANDOM",
        "simple: ROUND_ROBIN",
        "consistentHash: {useSourceIp: true, ringHash: {minimumRingSize: 8}}",
        "consistentHash: {useSourceIp: true, maglev: {tableSize: 11}}",
    ] {
        let bad = [Named::new("one"), Named::new("two")];
        bad.iter().for_each(|named| named.answers(500));
        let rule = format!(
            "home/rule {{host: a.test, trafficPolicy: {{loadBalancer: {{{balancer}}}, outlierDetection: \
             {{consecutive5xxErrors: 1, maxEjectionPercent: 100, baseEjectionTime: 1h}}}}}}"
        );
        let endpoints = bad.each_ref().map(|one| endpoint(one.origin.address, ""));
        let start = Start::new();
        let around = Around::endpoints(&endpoints).to(PORT_80);
        let text = around.mesh(start.edge(), &[&rule]);
        let text = text.replace(
            "attempts: 0",
            "attempts: 5, retryOn: 'gateway-error,connect-failure,503'",
        );
        let proxy = start.file("mesh.yaml", text).start();
        let mut client = Raw::connect(proxy.edge);
        eventually("all are ejected", || ask(&mut client, "").status == 503);
        let before: usize = bad.iter().map(|one| one.origin.seen().len()).sum();
        for _ in 0..20 {
            let reply = ask(&mut client, "");
            assert_eq!(
                (reply.status, &*name(&reply)),
                (503, "no healthy upstream"),
                "{balancer}"
            );
        }
        let after: usize = bad.iter().map(|one| one.origin.seen().len()).sum();
        assert_eq!(before, after, "{balancer}");
        check_alive(&proxy);
    }
}

/// Returns the mesh with TCP routes instead of HTTP routes.
fn carried(mesh: &str) -> String {
    let text = mesh.replace("protocol: HTTP}, bind", "protocol: TCP}, bind");
    text.replace("  http:\n  - {retries: {attempts: 0}, ", "  tcp:\n  - {")
}

#[test]
fn tcp_connection_without_an_endpoint_is_closed() {
    let unresolved = Around {
        destination: PORT_80,
        entry: "resolution: DNS, endpoints: [{address: missing.invalid}]".to_owned(),
    };
    let dead = Around::endpoints(&[endpoint(free_address(), "")]).to(PORT_80);
    let eject = "home/rule {host: a.test, trafficPolicy: {outlierDetection: {consecutive5xxErrors: 1, \
        baseEjectionTime: 1h, maxEjectionPercent: 100}}}";
    for (around, reason) in [(unresolved, "unresolved"), (dead, "all_ejected")] {
        let start = Start::new();
        let text = carried(&around.mesh(start.edge(), &[eject]));
        let proxy = start.file("mesh.yaml", text).start();
        eventually("no endpoint is left", || {
            assert!(Raw::connect(proxy.edge).is_closed());
            let log = proxy.access_log();
            log.iter().any(|line| line["response_flags"] == "UH")
        });
        let logged = proxy.access_log();
        let last = logged.last().unwrap();
        let details = format!("no_healthy_upstream{{{reason}}}");
        assert_eq!(last["response_code_details"], details, "{last}");
        check_alive(&proxy);
    }
}

#[test]
fn endpoint_weight_zero_counts_as_one() {
    for balancer in [
        "simple: LEAST_REQUEST",
        "simple: RANDOM",
        "simple: ROUND_ROBIN",
        "consistentHash: {httpHeaderName: x-user, ringHash: {}}",
        "consistentHash: {httpHeaderName: x-user, maglev: {tableSize: 11}}",
    ] {
        let origins = [Named::new("one"), Named::new("two")];
        let rule =
            format!("home/rule {{host: a.test, trafficPolicy: {{loadBalancer: {{{balancer}}}}}}}");
        let endpoints = origins
            .each_ref()
            .map(|one| endpoint(one.origin.address, ", weight: 0"));
        let proxy = Around::endpoints(&endpoints)
            .to(PORT_80)
            .start(&[&rule], &[]);
        let all = names(&proxy, "", 100);
        let of_one = all.iter().filter(|name| *name == "one").count();
        // five standard deviations of a binomial(100, 0.5) are 25; the parts of a ring are uneven by little
        assert!(of_one.abs_diff(50) <= 25, "{balancer} {of_one}");
        check_alive(&proxy);
    }
}

#[test]
fn t97_requests_without_the_hash_key_are_spread() {
    let origins = ["one", "two", "three"].map(Named::new);
    let endpoints = origins
        .each_ref()
        .map(|one| endpoint(one.origin.address, ""));
    for algorithm in ["ringHash: {}", "maglev: {}"] {
        let rule = format!(
            "home/rule {{host: a.test, trafficPolicy: {{loadBalancer: {{consistentHash: {{httpHeaderName: x-user, \
             {algorithm}}}}}}}}}"
        );
        let proxy = Around::endpoints(&endpoints)
            .to(PORT_80)
            .start(&[&rule], &[]);
        let all = names(&proxy, "", 300);
        for name in ["one", "two", "three"] {
            let count = all.iter().filter(|one| *one == name).count();
            // five standard deviations of a binomial(300, 1/3) are 41
            assert!(count.abs_diff(100) <= 41, "{algorithm} {name} {count}");
        }
    }
}

#[test]
fn t120_idle_endpoints_get_requests_by_weight() {
    let origins = [Named::new("heavy"), Named::new("light")];
    let endpoints = [
        endpoint(origins[0].origin.address, ", weight: 3"),
        endpoint(origins[1].origin.address, ", weight: 1"),
    ];
    let rule = "home/rule {host: a.test, trafficPolicy: {loadBalancer: {simple: LEAST_REQUEST}}}";
    let proxy = Around::endpoints(&endpoints)
        .to(PORT_80)
        .start(&[rule], &[]);
    let all = names(&proxy, "", 4000);
    let light = all.iter().filter(|name| *name == "light").count();
    // five standard deviations of a binomial(4000, 0.25) are 137
    assert!(light.abs_diff(1000) <= 137, "{light}");
}

#[test]
fn hash_key_of_the_only_port_applies_to_routes_without_a_port() {
    let origins = ["one", "two", "three", "four"].map(Named::new);
    let endpoints = origins.each_ref().map(|one| {
        let at = one.origin.address;
        format!("{{address: {}, ports: {{http: {}}}}}", at.ip(), at.port())
    });
    let rule = "home/rule {host: a.test, trafficPolicy: {portLevelSettings: [{port: {number: 80}, loadBalancer: \
        {consistentHash: {httpHeaderName: x-user}}}]}}";
    let start = Start::new();
    let mesh = Around::endpoints(&endpoints).mesh(start.edge(), &[rule]);
    let mesh = mesh.replace(", {number: 81, name: more, protocol: HTTP}", "");
    let proxy = start.file("mesh.yaml", mesh).start();
    let all = names(&proxy, "x-user: u\r\n", 20);
    assert!(all.iter().all(|name| *name == all[0]), "{all:?}");
    let log = proxy.has_logged("X291");
    assert_eq!(log.matches("X291").count(), 1, "{log}");
}

/// Returns the standard output of `strait COMMAND` for these documents.
fn strait(command: &str, mesh: &str, arguments: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("mesh.yaml"), mesh).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_strait"))
        .args([command, "--config"])
        .arg(directory.path())
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    write!(text, "{}", String::from_utf8(output.stderr).unwrap()).unwrap();
    text
}

/// Tables of the specification: the endpoint among `10.0.0.1` to `10.0.0.3` for each hash key.
#[test]
fn t100_hash_keys_pick_the_specified_endpoints() {
    let endpoints =
        [1, 2, 3].map(|last| format!("{{address: 10.0.0.{last}, ports: {{http: 8080}}}}"));
    let edge = SocketAddr::from(([127, 0, 0, 1], 8000));
    for (algorithm, expected) in [
        ("ringHash: {minimumRingSize: 6}", [2, 2, 2, 3]),
        ("minimumRingSize: 6", [2, 2, 2, 3]),
        ("ringHash: {minimumRingSize: 1024}", [3, 3, 1, 1]),
        ("maglev: {tableSize: 11}", [3, 2, 2, 2]),
        ("maglev: {tableSize: 65537}", [2, 3, 1, 3]),
    ] {
        let rule = format!(
            "home/rule {{host: a.test, trafficPolicy: {{loadBalancer: {{consistentHash: {{httpHeaderName: x-user, \
             {algorithm}}}}}}}}}"
        );
        let mesh = Around::endpoints(&endpoints)
            .to(PORT_80)
            .mesh(edge, &[&rule]);
        for (user, last) in ["alice", "bob", "carol", "dave"].into_iter().zip(expected) {
            let header = format!("x-user: {user}");
            let question = [
                "--labels",
                "istio=ingressgateway",
                "-H",
                &header,
                "GET",
                "http://a.test:8000/",
            ];
            let said = strait("explain", &mesh, &question);
            let wanted = format!("which leads to 10.0.0.{last}:8080");
            assert!(said.contains(&wanted), "{algorithm} {user}: {said}");
        }
    }
}

#[test]
fn check_warns_when_max_ejection_percent_prevents_all_ejections() {
    let endpoints = [1, 2, 3].map(|last| format!("{{address: 10.0.0.{last}}}"));
    let edge = SocketAddr::from(([127, 0, 0, 1], 8000));
    let rule = "home/rule {host: a.test, trafficPolicy: {outlierDetection: {}}}";
    let mesh = Around::endpoints(&endpoints)
        .to(PORT_80)
        .mesh(edge, &[rule]);
    let said = strait("check", &mesh, &["--outlier-first-ejection", "cap"]);
    assert!(
        said.contains("with 3 endpoints nothing can be ejected"),
        "{said}"
    );
    assert!(said.contains("write 34 or more"), "{said}");
    let said = strait("check", &mesh, &[]);
    assert!(said.contains("0 errors, 0 warnings"), "{said}");
}

#[test]
fn explain_uses_the_client_address_and_shows_localities() {
    let endpoints = [1, 2, 3].map(|last| {
        format!("{{address: 10.0.0.{last}, ports: {{http: 8080}}, locality: r/z{last}}}")
    });
    let edge = SocketAddr::from(([127, 0, 0, 1], 8000));
    let explain = |policy: &str, more: &[&str]| {
        let rule = format!("home/rule {{host: a.test, trafficPolicy: {{loadBalancer: {policy}}}}}");
        let mesh = Around::endpoints(&endpoints)
            .to(PORT_80)
            .mesh(edge, &[&rule]);
        let proxy = ["--labels", "istio=ingressgateway", "--locality", "r/z1"];
        let asked = ["GET", "http://a.test:8000/"];
        strait("explain", &mesh, &[&proxy, more, &asked].concat())
    };
    let by_client = "{consistentHash: {useSourceIp: true}}";
    let said = explain(by_client, &[]);
    assert!(said.contains("say which with --client"), "{said}");
    let mut led_to = std::collections::BTreeSet::new();
    for last in 1..20 {
        let said = explain(by_client, &["--client", &format!("192.0.2.{last}")]);
        let address = said.split("which leads to ").nth(1).expect(&said);
        led_to.insert(address.split_whitespace().next().unwrap().to_owned());
    }
    assert_eq!(led_to.len(), 3, "{led_to:?}");
    let said = explain(by_client, &["--client", "unknown"]);
    assert!(
        said.contains("--client \"unknown\": expected an IP address"),
        "{said}"
    );
    let distributed = "{localityLbSetting: {distribute: [{from: r/*, to: {r/z1: 80, r/z2: 20}}]}}";
    let said = explain(distributed, &[]);
    assert!(said.contains("by locality: r/z1 80, r/z2 20"), "{said}");
}
