//! Outlier detection: ejected endpoints, and the endpoints that replace them, on live sockets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::Response;

use crate::balancing::{Named, ask, names, proxy};
use crate::support::eventually;
use crate::support::mesh::{documents, gateway, routes};
use crate::support::origin::{Back, Origin, full};
use crate::support::proxy::{Proxy, Start, free_address};
use crate::support::raw::Raw;

fn policy(balancer: &str, outliers: &str) -> String {
    format!("{{loadBalancer: {{{balancer}}}, outlierDetection: {{{outliers}}}}}")
}

fn turns(outliers: &str) -> String {
    policy("simple: ROUND_ROBIN", outliers)
}

fn ejections(proxy: &Proxy, reason: &str) -> f64 {
    proxy.metric("strait_outlier_ejections_total", &[("reason", reason)])
}

fn out(proxy: &Proxy) -> f64 {
    proxy.metric("strait_outlier_ejections_active", &[])
}

fn count(names: &[String], name: &str) -> usize {
    names.iter().filter(|one| *one == name).count()
}

#[test]
fn t102_second_ejection_is_twice_as_long() {
    let (good, bad) = (Named::new("good"), Named::new("bad"));
    bad.answers(500);
    // an interval without failures resets the counts, so the interval is long enough for all of them
    let outliers =
        "consecutive5xxErrors: 2, interval: 300ms, baseEjectionTime: 300ms, maxEjectionPercent: 50";
    let proxy = proxy(&[(&good, ""), (&bad, "")], &turns(outliers), &[]);
    eventually("it is out for longer", || {
        names(&proxy, "", 4);
        proxy.stderr().contains("ejected for 600ms")
    });
    let log = proxy.stderr();
    assert!(
        log.find("ejected for 300ms") < log.find("ejected for 600ms"),
        "{log}"
    );
}

/// Starts an origin that answers with these statuses one after the other, then with 200.
fn scripted(statuses: &'static [u16]) -> Origin {
    let asked = Arc::new(AtomicUsize::new(0));
    Origin::start(Back::H1, move |_| {
        let turn = asked.fetch_add(1, Ordering::SeqCst);
        let status = statuses.get(turn).copied().unwrap_or(200);
        async move {
            let mut response = Response::new(full("scripted"));
            *response.status_mut() = status.try_into().unwrap();
            response
        }
    })
}

/// Starts a proxy with round robin between a healthy endpoint and a scripted one.
fn with_scripted(statuses: &'static [u16], outliers: &str) -> (Proxy, Origin, Named) {
    let (good, scripted) = (Named::new("good"), scripted(statuses));
    let start = Start::new();
    let endpoints = [(good.origin.address, ""), (scripted.address, "")];
    let text = crate::balancing::mesh(start.edge(), &endpoints, &turns(outliers));
    (start.file("mesh.yaml", text).start(), scripted, good)
}

#[test]
fn t103_success_resets_the_count_of_consecutive_errors() {
    let statuses = &[500, 500, 200, 500, 500, 200, 500, 500, 404, 500, 500];
    let outliers = "consecutive5xxErrors: 3, maxEjectionPercent: 100";
    let (proxy, scripted, _good) = with_scripted(statuses, outliers);
    assert_eq!(count(&names(&proxy, "", 30), "scripted"), 15);
    assert_eq!(scripted.seen().len(), 15);
    assert_eq!(ejections(&proxy, "consecutive_5xx"), 0.0);
}

#[test]
fn listed_status_codes_replace_5xx_as_errors() {
    let statuses = &[500, 500, 500, 429, 429];
    let outliers = "consecutive5xxErrors: 2, outlierDetectionHttpErrorCodes: [429], \
        baseEjectionTime: 300s, maxEjectionPercent: 100";
    let (proxy, scripted, _good) = with_scripted(statuses, outliers);
    names(&proxy, "", 6);
    assert_eq!((scripted.seen().len(), out(&proxy)), (3, 0.0));
    names(&proxy, "", 20);
    assert_eq!(scripted.seen().len(), 5);
    eventually("it is counted", || out(&proxy) == 1.0);
}

#[test]
fn t105_gateway_errors_have_their_own_count() {
    let statuses = &[500, 500, 500, 500, 200, 503, 503];
    let outliers = "consecutiveGatewayErrors: 2, maxEjectionPercent: 100";
    let (proxy, scripted, _good) = with_scripted(statuses, outliers);
    names(&proxy, "", 12);
    assert_eq!(scripted.seen().len(), 6);
    assert_eq!(out(&proxy), 0.0);
    assert_eq!(count(&names(&proxy, "", 22), "scripted"), 1);
    assert_eq!(scripted.seen().len(), 7);
    eventually("it is counted", || {
        ejections(&proxy, "consecutive_gateway_failure") == 1.0
    });
    assert_eq!(ejections(&proxy, "consecutive_5xx"), 0.0);
}

#[test]
fn split_local_origin_errors_have_their_own_count() {
    const SPLIT: &str = "splitExternalLocalOriginErrors: true, maxEjectionPercent: 100";
    // what is counted, and after how many of 20 requests to it an endpoint is ejected
    for (outliers, refusals, errors) in [
        (
            "consecutive5xxErrors: 3, maxEjectionPercent: 100".to_owned(),
            3,
            3,
        ),
        (format!("{SPLIT}, consecutive5xxErrors: 3"), 5, 3),
        (
            format!("{SPLIT}, consecutive5xxErrors: 3, consecutiveLocalOriginFailures: 2"),
            2,
            3,
        ),
        (
            format!("{SPLIT}, consecutive5xxErrors: 0, consecutiveLocalOriginFailures: 2"),
            2,
            20,
        ),
        (
            format!("{SPLIT}, consecutive5xxErrors: 3, consecutiveLocalOriginFailures: 50"),
            20,
            3,
        ),
    ] {
        let failures = |bad| {
            let good = Named::new("good");
            let start = Start::new();
            let endpoints = [(good.origin.address, ""), (bad, "")];
            let text = crate::balancing::mesh(start.edge(), &endpoints, &turns(&outliers));
            let proxy = start.file("mesh.yaml", text).start();
            let names = names(&proxy, "", 40);
            (proxy, 40 - count(&names, "good"))
        };
        let (proxy, failed) = failures(free_address());
        assert_eq!(failed, refusals, "{outliers}");
        let reason = match outliers.contains(SPLIT) {
            true => "consecutive_local_origin_failure",
            false => "consecutive_5xx",
        };
        let ejected = if refusals < 20 { 1.0 } else { 0.0 };
        eventually("it is counted", || ejections(&proxy, reason) == ejected);
        let failing = scripted(&[500; 20]);
        let (proxy, failed) = failures(failing.address);
        assert_eq!(failed, errors, "{outliers}");
        assert_eq!(
            ejections(&proxy, "consecutive_local_origin_failure"),
            0.0,
            "{outliers}"
        );
    }
}

#[test]
fn t104_one_of_three_is_ejected_under_the_default_cap() {
    for (arguments, ejected) in [(&[][..], 1), (&["--outlier-first-ejection", "cap"], 0)] {
        let [good, bad, worse] = ["good", "bad", "worse"].map(Named::new);
        bad.answers(500);
        worse.answers(500);
        let origins = [(&good, ""), (&bad, ""), (&worse, "")];
        let outliers = "consecutive5xxErrors: 2, baseEjectionTime: 1h";
        let proxy = proxy(&origins, &turns(outliers), arguments);
        names(&proxy, "", 30);
        let after = names(&proxy, "", 30);
        let used = ["bad", "worse"].map(|name| usize::from(count(&after, name) > 0));
        assert_eq!(used.iter().sum::<usize>(), 2 - ejected, "{after:?}");
        assert!(proxy.metric("strait_outlier_ejections_overflow_total", &[]) >= 1.0);
        assert_eq!(ejections(&proxy, "consecutive_5xx"), ejected as f64);
    }
}

const OUT_FOR_LONG: &str = "consecutive5xxErrors: 1, baseEjectionTime: 1h, maxEjectionPercent: 100";

#[test]
fn t110_traffic_beyond_a_zones_capacity_spills_over() {
    let near = ["n1", "n2", "n3", "n4"].map(Named::new);
    let far = ["f1", "f2"].map(Named::new);
    let origins: Vec<(&Named, &str)> = near
        .iter()
        .map(|named| (named, "r/a"))
        .chain(far.iter().map(|named| (named, "r/b")))
        .collect();
    let proxy = proxy(&origins, &turns(OUT_FOR_LONG), &["--cluster", "r/a/g/c"]);
    let all = names(&proxy, "", 40);
    assert_eq!(count(&all, "f1") + count(&all, "f2"), 0);
    near[..2].iter().for_each(|named| named.answers(500));
    eventually("two are out", || {
        names(&proxy, "", 4);
        out(&proxy) == 2.0
    });
    let all = names(&proxy, "", 2000);
    let far = count(&all, "f1") + count(&all, "f2");
    // five standard deviations of a binomial(2000, 0.3) are 103
    assert!(far.abs_diff(600) <= 103, "{far}");
    assert_eq!(count(&all, "n1") + count(&all, "n2"), 0);
}

#[test]
fn t111_localities_without_a_share_get_no_traffic_even_as_last_resort() {
    let [near, far, off] = ["near", "far", "off"].map(Named::new);
    let policy =
        "{loadBalancer: {localityLbSetting: {distribute: [{from: r/a, to: {r/a: 80, r/b: 20}}]}}}";
    let origins = [(&near, "r/a"), (&far, "r/b"), (&off, "r/c")];
    let proxy = proxy(&origins, policy, &["--cluster", "r/a/g/c"]);
    assert_eq!(count(&names(&proxy, "", 50), "off"), 0);
    let only = [(off.origin.address, "r/c")];
    let text = crate::balancing::mesh(proxy.edge, &only, policy);
    proxy.write("mesh.yaml", text);
    let mut client = Raw::connect(proxy.edge);
    eventually("no endpoint is left", || ask(&mut client, "").status == 503);
    assert!(off.origin.seen().is_empty());
}

#[test]
fn t112_failover_priority_network_orders_before_region() {
    let origins = ["here", "region", "network", "neither"].map(Named::new);
    let places = ["r net", "q net", "r other", "q other"];
    let endpoints: Vec<String> = origins
        .iter()
        .zip(places)
        .map(|(named, place)| {
            let (region, network) = place.split_once(' ').unwrap();
            let at: SocketAddr = named.origin.address;
            format!(
                "{{address: {}, ports: {{http: {}}}, locality: {region}, network: {network}}}",
                at.ip(),
                at.port()
            )
        })
        .collect();
    let start = Start::new();
    let policy = policy(
        "simple: ROUND_ROBIN, localityLbSetting: {failoverPriority: [topology.istio.io/network, \
         topology.kubernetes.io/region]}",
        OUT_FOR_LONG,
    );
    let text = documents([
        gateway(&[start.edge()]),
        routes(
            "a",
            "['*']",
            "- {retries: {attempts: 0}, route: [{destination: {host: a.test}}]}",
        ),
        format!(
            "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: a}}\nspec: {{hosts: [a.test], \
             resolution: STATIC, ports: [{{number: 80, name: http, protocol: HTTP}}], endpoints: [{}]}}\n",
            endpoints.join(", ")
        ),
        format!(
            "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: a}}\nspec: {{host: a.test, \
             trafficPolicy: {policy}}}\n"
        ),
    ]);
    let place = ["--locality", "r/a", "--network", "net"];
    let proxy = start.args(place).file("mesh.yaml", text).start();
    for (named, name) in origins.iter().zip(["here", "region", "network", "neither"]) {
        assert_eq!(names(&proxy, "", 10), [name; 10]);
        named.answers(500);
        assert_eq!(names(&proxy, "", 1), [name]);
    }
    let mut client = Raw::connect(proxy.edge);
    eventually("all are out", || ask(&mut client, "").status == 503);
}

#[test]
fn t121_new_endpoint_warms_up() {
    warms_up("warmup: {duration: 2s, minimumPercent: 10}");
}

/// During warm-up the fraction of the weight is the elapsed fraction of the time, to the power of 1/aggression.
#[test]
fn aggression_bends_the_warmup() {
    for (aggression, expected) in [("1.0", 1..35), ("1000.0", 45..51)] {
        let (old, new) = (Named::new("old"), Named::new("new"));
        let policy = &format!(
            "{{loadBalancer: {{simple: ROUND_ROBIN, warmup: {{duration: 3s, minimumPercent: 1, aggression: \
             {aggression}}}}}}}"
        );
        let proxy = proxy(&[(&old, "")], policy, &[]);
        assert_eq!(names(&proxy, "", 1), ["old"]);
        let began = std::time::Instant::now();
        eventually("the old one is warm", || began.elapsed().as_secs() >= 3);
        let endpoints = [(old.origin.address, ""), (new.origin.address, "")];
        let text = crate::balancing::mesh(proxy.edge, &endpoints, policy);
        proxy.write("mesh.yaml", text);
        let fact = new.origin.address.to_string();
        eventually("it is there", || proxy.page("/clusters").contains(&fact));
        let found = count(&names(&proxy, "", 100), "new");
        assert!(expected.contains(&found), "{aggression}: {found}");
    }
}

#[test]
fn warmup_duration_secs_warms_up_like_warmup_duration() {
    warms_up("warmupDurationSecs: 2s");
}

fn warms_up(warmup: &str) {
    let (old, new) = (Named::new("old"), Named::new("new"));
    let policy = &format!("{{loadBalancer: {{simple: ROUND_ROBIN, {warmup}}}}}");
    let proxy = proxy(&[(&old, "")], policy, &[]);
    assert_eq!(names(&proxy, "", 1), ["old"]);
    let began = std::time::Instant::now();
    eventually("the old one is warm", || began.elapsed().as_secs() >= 2);
    let endpoints = [(old.origin.address, ""), (new.origin.address, "")];
    let text = crate::balancing::mesh(proxy.edge, &endpoints, policy);
    proxy.write("mesh.yaml", text);
    eventually(
        "it takes its first requests, and says why they are few",
        || {
            let told = proxy.page("/clusters").contains("::warmup::");
            let url = format!("/explain?url=http://{}/", proxy.edge);
            let explained = proxy.page(&url).contains("  warms up: ");
            count(&names(&proxy, "", 22), "new") > 0 && told && explained
        },
    );
    let cold = count(&names(&proxy, "", 100), "new");
    assert!((1..35).contains(&cold), "{cold}");
    let warm = || {
        let page = proxy.page("/clusters");
        let warming = page.lines().filter(|line| line.contains("::warmup::"));
        warming.map(str::to_owned).collect::<Vec<_>>()
    };
    let fact = format!("{}::warmup::", new.origin.address);
    for said in warm() {
        assert!(said.contains(&fact), "{said}");
        assert!(said.contains("% of its weight, all in "), "{said}");
    }
    eventually("it is half of all", || {
        count(&names(&proxy, "", 100), "new") == 50
    });
    assert!(began.elapsed().as_secs() >= 4);
    eventually("none is warming", || warm().is_empty());
}

#[test]
fn t151_panic_mode_starts_when_all_priorities_lack_capacity() {
    let origins = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"].map(Named::new);
    let all: Vec<(&Named, &str)> = origins.iter().map(|named| (named, "")).collect();
    let outliers = format!("{OUT_FOR_LONG}, minHealthPercent: 90");
    let proxy = proxy(&all, &turns(&outliers), &[]);
    let mut client = Raw::connect(proxy.edge);
    let mut failed = |wanted: f64| {
        eventually("they are out", || {
            ask(&mut client, "");
            out(&proxy) == wanted
        });
    };
    origins[..2].iter().for_each(|named| named.answers(500));
    failed(2.0);
    let healthy = names(&proxy, "", 80);
    assert_eq!(count(&healthy, "0") + count(&healthy, "1"), 0);
    origins[2].answers(500);
    failed(3.0);
    eventually("all are used", || {
        let all = names(&proxy, "", 100);
        ["0", "1", "2", "3"]
            .iter()
            .all(|name| count(&all, name) == 10)
    });
}

#[test]
fn explain_says_that_all_endpoints_are_ejected() {
    let bad = Named::new("bad");
    bad.answers(500);
    let outliers =
        "consecutive5xxErrors: 1, interval: 10s, baseEjectionTime: 60s, maxEjectionPercent: 100";
    let arguments = ["--outlier-first-ejection", "cap"];
    let proxy = proxy(&[(&bad, "")], &turns(outliers), &arguments);
    let explained = || -> serde_json::Value {
        let url = format!("http://a.test:{}/", proxy.edge.port());
        let page = proxy.page(&format!("/explain?format=json&url={url}"));
        serde_json::from_str(&page).unwrap()
    };
    let forwarded = serde_json::json!({"kind": "forwarded"});
    assert_eq!(explained()["outcome"], forwarded);
    eventually("it is ejected", || {
        names(&proxy, "", 1);
        out(&proxy) == 1.0
    });
    let reason = "all requests get 503 UH; the only endpoint may not be used";
    let answer = explained();
    assert_eq!(
        answer["outcome"],
        serde_json::json!({"kind": "unavailable", "reason": reason})
    );
    let endpoint = &answer["destinations"][0]["cluster"]["endpoints"][0];
    let why = endpoint["unavailable_reason"].as_str().unwrap_or_default();
    let Some((time, cause)) = why.split_once(" more after ") else {
        panic!("{answer}");
    };
    assert!(time.starts_with("ejected for "), "{why}");
    assert_eq!(cause, "5xx responses, once so far");
}
