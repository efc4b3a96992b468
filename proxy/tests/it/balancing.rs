//! Endpoint selection on live sockets: consistent hashing, zones, and endpoints that fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use hyper::Response;

use crate::support::eventually;
use crate::support::mesh::{documents, gateway, routes};
use crate::support::origin::{Back, Origin, full};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::{Raw, Reply};

/// Origin that answers with its name and a status that a test can change.
pub(crate) struct Named {
    pub(crate) origin: Origin,
    status: Arc<AtomicU16>,
}

impl Named {
    pub(crate) fn new(name: &'static str) -> Self {
        let status = Arc::new(AtomicU16::new(200));
        let now = Arc::clone(&status);
        let origin = Origin::start(Back::H1, move |_| {
            let status = now.load(Ordering::Relaxed);
            async move {
                let mut response = Response::new(full(name));
                *response.status_mut() = status.try_into().unwrap();
                response
            }
        });
        Self { origin, status }
    }

    pub(crate) fn answers(&self, status: u16) {
        self.status.store(status, Ordering::Relaxed);
    }
}

/// Returns endpoints of `a.test` with their localities, and a policy in flow style.
pub(crate) fn mesh(
    edge: std::net::SocketAddr,
    endpoints: &[(std::net::SocketAddr, &str)],
    policy: &str,
) -> String {
    let endpoints: Vec<String> = endpoints
        .iter()
        .map(|(at, locality)| {
            format!(
                "{{address: {}, ports: {{http: {}}}, locality: '{locality}'}}",
                at.ip(),
                at.port()
            )
        })
        .collect();
    documents([
        gateway(&[edge]),
        routes(
            "a",
            "['*']",
            "- {retries: {attempts: 0}, route: [{destination: {host: a.test}}]}",
        ),
        format!(
            "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: a}}\nspec:\n  \
             hosts: [a.test]\n  resolution: STATIC\n  ports: [{{number: 80, name: http, protocol: HTTP}}]\n  \
             endpoints: [{}]\n",
            endpoints.join(", ")
        ),
        format!(
            "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: a}}\nspec:\n  \
             host: a.test\n  trafficPolicy: {policy}\n"
        ),
    ])
}

pub(crate) fn proxy(origins: &[(&Named, &str)], policy: &str, arguments: &[&str]) -> Proxy {
    let endpoints: Vec<_> = origins
        .iter()
        .map(|(named, locality)| (named.origin.address, *locality))
        .collect();
    let start = Start::new();
    let text = mesh(start.edge(), &endpoints, policy);
    let arguments = arguments.iter().copied();
    start.args(arguments).file("mesh.yaml", text).start()
}

pub(crate) fn ask(client: &mut Raw, headers: &str) -> Reply {
    client
        .send(format!(
            "GET /?user=u HTTP/1.1\r\nHost: a.test\r\n{headers}\r\n"
        ))
        .reply()
}

pub(crate) fn name(reply: &Reply) -> String {
    String::from_utf8(reply.body.clone()).unwrap()
}

/// Returns the names of the origins that answer this many requests.
pub(crate) fn names(proxy: &Proxy, headers: &str, count: usize) -> Vec<String> {
    let mut client = Raw::connect(proxy.edge);
    (0..count)
        .map(|_| name(&ask(&mut client, headers)))
        .collect()
}

#[test]
fn requests_with_the_same_key_go_to_the_same_endpoint() {
    let origins = ["one", "two", "three", "four"].map(Named::new);
    let origins: Vec<(&Named, &str)> = origins.iter().map(|named| (named, "")).collect();
    for algorithm in ["ringHash: {}", "maglev: {tableSize: 1009}"] {
        let policy = format!(
            "{{loadBalancer: {{consistentHash: {{httpHeaderName: x-user, {algorithm}}}}}}}"
        );
        let proxy = proxy(&origins, &policy, &[]);
        let mut seen = std::collections::BTreeSet::new();
        // The hash covers ports, which differ in each run: with 24 users, an
        // endpoint would be left without one in 1 of 200 runs.
        for user in 0..120 {
            let header = format!("x-user: user-{user}\r\n");
            let all = names(&proxy, &header, 2);
            assert!(all.iter().all(|name| *name == all[0]), "{all:?}");
            seen.insert(all[0].clone());
        }
        assert_eq!(seen.len(), 4, "{algorithm}");
        // without the key nothing is sticky
        let all = names(&proxy, "", 60);
        assert!(all.iter().any(|name| *name != all[0]));
    }
    for key in ["useSourceIp: true", "httpQueryParameterName: user"] {
        let policy = format!("{{loadBalancer: {{consistentHash: {{{key}}}}}}}");
        let proxy = proxy(&origins, &policy, &[]);
        let all = names(&proxy, "", 20);
        assert!(all.iter().all(|name| *name == all[0]), "{key}: {all:?}");
    }
}

#[test]
fn t98_t99_cookie_is_issued_when_it_has_a_lifetime() {
    let origins = ["one", "two", "three", "four"].map(Named::new);
    let origins: Vec<(&Named, &str)> = origins.iter().map(|named| (named, "")).collect();
    let cookie = |more: &str| {
        format!("{{loadBalancer: {{consistentHash: {{httpCookie: {{name: sid{more}}}}}}}}}")
    };
    let with = proxy(
        &origins,
        &cookie(", ttl: 60s, path: /a, attributes: [{name: SameSite, value: Lax}]"),
        &[],
    );
    let mut client = Raw::connect(with.edge);
    let first = ask(&mut client, "");
    let issued = first
        .headers
        .iter()
        .find_map(|line| line.strip_prefix("set-cookie: "))
        .expect("a cookie");
    let (pair, attributes) = issued.split_once(';').unwrap();
    assert_eq!(attributes, " Max-Age=60; Path=/a; SameSite=Lax; HttpOnly");
    for _ in 0..8 {
        let again = ask(&mut Raw::connect(with.edge), &format!("cookie: {pair}\r\n"));
        assert_eq!(name(&again), name(&first));
        assert!(
            !again
                .headers
                .iter()
                .any(|line| line.starts_with("set-cookie"))
        );
    }
    let session = proxy(&origins, &cookie(", ttl: 0s"), &[]);
    let reply = ask(&mut Raw::connect(session.edge), "");
    let issued = reply
        .headers
        .iter()
        .find(|line| line.starts_with("set-cookie"));
    assert!(!issued.unwrap().contains("Max-Age"), "{issued:?}");
    let never = proxy(&origins, &cookie(""), &[]);
    let reply = ask(&mut Raw::connect(never.edge), "");
    assert!(
        !reply
            .headers
            .iter()
            .any(|line| line.starts_with("set-cookie"))
    );
}

#[test]
fn cookie_of_a_destination_with_an_unknown_subset_is_issued() {
    let origin = Named::new("one");
    let start = Start::new();
    let at = origin.origin.address;
    let service = |name: &str| {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: {name}}}\nspec:\n  \
             hosts: [{name}.test]\n  resolution: STATIC\n  ports: [{{number: 80, name: http, protocol: HTTP}}]\n  \
             endpoints: [{{address: {}, ports: {{http: {}}}}}]\n",
            at.ip(),
            at.port()
        )
    };
    let rule = |name: &str, key: &str| {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: {name}}}\nspec:\n  \
             host: {name}.test\n  trafficPolicy: {{loadBalancer: {{consistentHash: {{{key}}}}}}}\n"
        )
    };
    let split = "- {route: [{destination: {host: a.test}, weight: 50}, {destination: {host: b.test, subset: none}, weight: 50}]}";
    let text = documents([
        gateway(&[start.edge()]),
        routes("a", "['*']", split),
        service("a"),
        service("b"),
        rule("a", "httpHeaderName: x-user"),
        rule("b", "httpCookie: {name: sid, ttl: 60s}"),
    ]);
    let proxy = start.file("mesh.yaml", text).start();
    let mut client = Raw::connect(proxy.edge);
    let replies: Vec<Reply> = (0..60).map(|_| ask(&mut client, "")).collect();
    for status in [200, 503] {
        let of_status = replies.iter().filter(|reply| reply.status == status);
        let issued = |reply: &Reply| {
            let mut lines = reply.headers.iter();
            lines.any(|line| line.starts_with("set-cookie: sid="))
        };
        // without a cluster no key is taken, and none is issued
        let found: Vec<bool> = of_status.map(issued).collect();
        assert!(!found.is_empty());
        assert!(
            found.iter().all(|issued| *issued == (status == 200)),
            "{status}: {found:?}"
        );
    }
}

const EJECT: &str = "{loadBalancer: {simple: ROUND_ROBIN}, outlierDetection: \
    {consecutive5xxErrors: 3, interval: 200ms, baseEjectionTime: 1s, maxEjectionPercent: 50}}";

#[test]
fn t101_failing_endpoint_is_ejected_and_unejected() {
    let (good, bad) = (Named::new("good"), Named::new("bad"));
    bad.answers(500);
    let proxy = proxy(&[(&good, ""), (&bad, "")], EJECT, &[]);
    let first = names(&proxy, "", 6);
    assert_eq!(first.iter().filter(|name| *name == "bad").count(), 3);
    let after = names(&proxy, "", 20);
    assert!(after.iter().all(|name| name == "good"), "{after:?}");
    let ejections = [("reason", "consecutive_5xx")];
    eventually("it is counted", || {
        proxy.metric("strait_outlier_ejections_total", &ejections) == 1.0
    });
    assert_eq!(proxy.metric("strait_outlier_ejections_active", &[]), 1.0);
    bad.answers(200);
    eventually("it is back", || {
        names(&proxy, "", 4).iter().any(|name| name == "bad")
    });
    proxy.has_logged("ejected for 1s after 3 consecutive 5xx; 1 of 2 endpoints are ejected");
    proxy.has_logged("unejected after");
}

#[test]
fn removing_the_destination_rule_unejects_endpoints() {
    let (good, bad) = (Named::new("good"), Named::new("bad"));
    bad.answers(500);
    let policy = "{loadBalancer: {simple: ROUND_ROBIN}, outlierDetection: \
        {consecutive5xxErrors: 1, baseEjectionTime: 3600s, maxEjectionPercent: 50}}";
    let proxy = proxy(&[(&good, ""), (&bad, "")], policy, &[]);
    assert_eq!(names(&proxy, "", 2).len(), 2);
    eventually("it is ejected", || {
        proxy.metric("strait_outlier_ejections_active", &[]) == 1.0
    });
    bad.answers(200);
    let endpoints = [(good.origin.address, ""), (bad.origin.address, "")];
    let without = mesh(
        proxy.edge,
        &endpoints,
        "{loadBalancer: {simple: ROUND_ROBIN}}",
    );
    proxy.write("mesh.yaml", without);
    eventually("it serves again", || {
        names(&proxy, "", 4).iter().any(|name| name == "bad")
    });
    eventually("no endpoint is shown as ejected", || {
        proxy.metric("strait_outlier_ejections_active", &[]) == 0.0
    });
}

#[test]
fn t109_local_zone_is_preferred_and_other_zones_take_over_on_failure() {
    let (near, far) = (Named::new("near"), Named::new("far"));
    let origins = [(&far, "r/b"), (&near, "r/a")];
    let arguments = ["--cluster", "r/a/g/c"];
    let proxy = proxy(&origins, EJECT, &arguments);
    let all = names(&proxy, "", 20);
    assert!(all.iter().all(|name| name == "near"), "{all:?}");
    near.answers(503);
    assert_eq!(names(&proxy, "", 3), ["near"; 3]);
    let all = names(&proxy, "", 10);
    assert!(all.iter().all(|name| name == "far"), "{all:?}");
    eventually("the shift is counted", || {
        proxy.metric("strait_priority_load_changes_total", &[]) == 1.0
    });
}

#[test]
fn disabled_locality_settings_ignore_zones() {
    let (near, far) = (Named::new("near"), Named::new("far"));
    let origins = [(&far, "r/b"), (&near, "r/a")];
    for (setting, from_near) in [("", 20), (", localityLbSetting: {enabled: false}", 10)] {
        let policy = format!(
            "{{loadBalancer: {{simple: ROUND_ROBIN{setting}}}, outlierDetection: {{consecutive5xxErrors: 3}}}}"
        );
        let proxy = proxy(&origins, &policy, &["--cluster", "r/a/g/c"]);
        let all = names(&proxy, "", 20);
        let near = all.iter().filter(|name| *name == "near").count();
        assert_eq!(near, from_near, "{setting}");
    }
}

#[test]
fn t108_without_outlier_detection_zones_do_not_matter() {
    let (near, far) = (Named::new("near"), Named::new("far"));
    let origins = [(&far, "r/b"), (&near, "r/a")];
    let policy = "{loadBalancer: {simple: ROUND_ROBIN}}";
    let proxy = proxy(&origins, policy, &["--cluster", "r/a/g/c"]);
    let all = names(&proxy, "", 20);
    assert_eq!(all.iter().filter(|name| *name == "near").count(), 10);
}

#[test]
fn locality_failover_works_when_a_region_has_no_endpoints_left() {
    let far = Named::new("far");
    let dead = free_address();
    let policy =
        "{loadBalancer: {localityLbSetting: {enabled: true, failover: [{from: r, to: q}]}}}";
    for (arguments, acts) in [
        (&["--cluster", "r/a/g/c"][..], true),
        (
            &["--cluster", "r/a/g/c", "--failover-needs-outlier-detection"],
            false,
        ),
    ] {
        let start = Start::new();
        let endpoints = [(dead, "r/a"), (far.origin.address, "q/a")];
        let text = mesh(start.edge(), &endpoints, policy);
        let arguments = arguments.iter().copied();
        let proxy = start.args(arguments).file("mesh.yaml", text).start();
        let mut client = Raw::connect(proxy.edge);
        let statuses: Vec<u16> = (0..40).map(|_| ask(&mut client, "").status).collect();
        let failed = statuses.iter().filter(|status| **status != 200).count();
        if acts {
            assert_eq!(failed, 3, "{statuses:?}");
        } else {
            // both are one level, and half of the requests go nowhere
            assert!((8..32).contains(&failed), "{statuses:?}");
        }
    }
}

/// Whether the established connection to this address has a keepalive timer in the kernel (`02`).
pub(crate) fn has_keepalive(to: std::net::SocketAddr) -> bool {
    let std::net::SocketAddr::V4(to) = to else {
        panic!("tests are on IPv4")
    };
    let address = u32::from_le_bytes(to.ip().octets());
    let wanted = format!("{address:08X}:{:04X}", to.port());
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let established = table.lines().filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let is_it = *columns.get(2)? == wanted && *columns.get(3)? == "01";
        is_it.then(|| columns[5].starts_with("02:"))
    });
    established.into_iter().any(|probes| probes)
}

#[test]
fn tcp_keepalive_probes_idle_connections() {
    for (policy, probed) in [
        (
            "{connectionPool: {tcp: {tcpKeepalive: {time: 7200s, interval: 75s, probes: 3}}}}",
            true,
        ),
        ("{connectionPool: {tcp: {connectTimeout: 5s}}}", false),
    ] {
        let origin = Named::new("one");
        let proxy = proxy(&[(&origin, "")], policy, &[]);
        assert_eq!(names(&proxy, "", 1), ["one"]);
        if probed {
            eventually("the timer runs", || has_keepalive(origin.origin.address));
        } else {
            assert!(!has_keepalive(origin.origin.address));
        }
    }
}

#[test]
fn t111_traffic_follows_the_locality_distribution() {
    let (near, far, off) = (Named::new("near"), Named::new("far"), Named::new("off"));
    let policy = "{loadBalancer: {simple: ROUND_ROBIN, localityLbSetting: {enabled: true, distribute: \
        [{from: r/a, to: {r/a: 80, r/b: 20}}]}}}";
    let origins = [(&near, "r/a"), (&far, "r/b"), (&off, "r/c")];
    let proxy = proxy(&origins, policy, &["--cluster", "r/a/g/c"]);
    let all = names(&proxy, "", 1000);
    let count = |name: &str| all.iter().filter(|one| *one == name).count();
    // five standard deviations of a binomial(1000, 0.2) are 63
    assert!(count("far").abs_diff(200) < 63, "{}", count("far"));
    assert_eq!(count("off"), 0);
}

#[test]
fn traffic_distribution_prefer_same_zone_keeps_traffic_in_the_zone() {
    let (near, far) = (Named::new("near"), Named::new("far"));
    for (distribution, near_only) in [("trafficDistribution: PreferSameZone, ", true), ("", false)]
    {
        let start = Start::new();
        let slice = |name: &str, named: &Named, zone: &str| {
            let at = named.origin.address;
            format!(
                "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: {name}, labels: \
                 {{kubernetes.io/service-name: s}}}}\naddressType: IPv4\nports: [{{name: http, port: {}}}]\n\
                 endpoints: [{{addresses: [{}], zone: {zone}}}]\n",
                at.port(),
                at.ip()
            )
        };
        let text = documents([
            gateway(&[start.edge()]),
            routes("s", "['*']", "- {route: [{destination: {host: s}}]}"),
            format!(
                "apiVersion: v1\nkind: Service\nmetadata: {{name: s}}\nspec: {{{distribution}ports: \
                 [{{name: http, port: 80}}], selector: {{app: s}}}}\n"
            ),
            slice("near", &near, "a"),
            slice("far", &far, "b"),
        ]);
        let arguments = ["--cluster", "r/a/g/c"];
        let proxy = start.args(arguments).file("mesh.yaml", text).start();
        let all = names(&proxy, "", 40);
        assert_eq!(all.iter().all(|name| name == "near"), near_only, "{all:?}");
    }
}

#[test]
fn t106_t107_ejecting_all_endpoints_gives_503_or_panic_mode() {
    for (panic_percent, status) in [(0, 503), (50, 500)] {
        let bad = [Named::new("one"), Named::new("two")];
        bad.iter().for_each(|named| named.answers(500));
        let policy = format!(
            "{{loadBalancer: {{simple: ROUND_ROBIN}}, outlierDetection: {{consecutive5xxErrors: 1, \
             maxEjectionPercent: 100, minHealthPercent: {panic_percent}}}}}"
        );
        let proxy = proxy(&[(&bad[0], ""), (&bad[1], "")], &policy, &[]);
        let mut client = Raw::connect(proxy.edge);
        for _ in 0..2 {
            assert_eq!(ask(&mut client, "").status, 500);
        }
        eventually("the tables know", || ask(&mut client, "").status == status);
        let url = format!("/explain?url=http://{}/", proxy.edge);
        let explained = proxy.page(&url);
        let (says, instead) = match status {
            503 => (
                "unavailable: requests get 503 UH; none of 2 endpoints may be used",
                "in panic",
            ),
            _ => (
                "0 of 2 endpoints healthy, in panic mode: all endpoints are used",
                "unavailable",
            ),
        };
        assert!(explained.contains(says), "{explained}");
        assert!(!explained.contains(instead), "{explained}");
        if status == 503 {
            assert_eq!(name(&ask(&mut client, "")), "no healthy upstream");
        }
    }
}
