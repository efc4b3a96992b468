//! Client results under load, while endpoints fail in every way and recover.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

use crate::support::eventually;
use crate::support::mesh::{documents, gateway, routes};
use crate::support::origin::{RawOrigin, read_head};
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::Raw;

/// Behavior of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Answers,
    Fails,
    Hangs,
    Resets,
}

/// Endpoint whose behavior a test changes.
struct Moody {
    origin: RawOrigin,
    mood: Arc<(Mutex<Mood>, Condvar)>,
}

impl Moody {
    fn new(name: &'static str) -> Self {
        let mood = Arc::new((Mutex::new(Mood::Answers), Condvar::new()));
        let now = Arc::clone(&mood);
        let origin = RawOrigin::start(move |_, mut stream| {
            loop {
                if read_head(&mut stream).is_empty() {
                    return;
                }
                let (mood, changed) = &*now;
                let mut mood = mood.lock().unwrap();
                if *mood == Mood::Hangs {
                    while *mood == Mood::Hangs {
                        mood = changed.wait(mood).unwrap();
                    }
                    return;
                }
                let status = match *mood {
                    Mood::Answers => "200 OK",
                    Mood::Fails => "500 Internal Server Error",
                    Mood::Hangs | Mood::Resets => return,
                };
                drop(mood);
                let length = name.len();
                let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{name}");
                if stream.write_all(head.as_bytes()).is_err() {
                    return;
                }
            }
        });
        Self { origin, mood }
    }

    fn is(&self, mood: Mood) {
        *self.mood.0.lock().unwrap() = mood;
        self.mood.1.notify_all();
    }
}

/// Starts a proxy for endpoints of `a.test` with their localities, a policy and the settings of the only rule in flow
/// style.
fn start(endpoints: &[(&Moody, &str)], policy: &str, rule: &str) -> Proxy {
    let entries: Vec<String> = endpoints
        .iter()
        .map(|(moody, locality)| {
            let at = moody.origin.address;
            format!(
                "{{address: {}, ports: {{http: {}}}, locality: '{locality}'}}",
                at.ip(),
                at.port()
            )
        })
        .collect();
    let start = Start::new();
    let text = documents([
        gateway(&[start.edge()]),
        routes(
            "a",
            "['*']",
            &format!("- {{{rule}, route: [{{destination: {{host: a.test}}}}]}}"),
        ),
        format!(
            "apiVersion: networking.istio.io/v1\nkind: ServiceEntry\nmetadata: {{name: a}}\nspec:\n  \
             hosts: [a.test]\n  resolution: STATIC\n  ports: [{{number: 80, name: http, protocol: HTTP}}]\n  \
             endpoints: [{}]\n",
            entries.join(", ")
        ),
        format!(
            "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: a}}\nspec:\n  \
             host: a.test\n  trafficPolicy: {policy}\n"
        ),
    ]);
    let start = start.args(["--cluster", "r/a/g/c"]);
    start.file("mesh.yaml", text).start()
}

/// Clients that send requests continuously, and the number of each result, such as `200 one` or `504`.
struct Load {
    stop: Arc<AtomicBool>,
    tally: Arc<Mutex<BTreeMap<String, usize>>>,
    clients: Vec<JoinHandle<()>>,
}

impl Load {
    fn begin(edge: SocketAddr, clients: usize) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let tally = Arc::<Mutex<BTreeMap<String, usize>>>::default();
        let clients = (0..clients).map(|_| {
            let (stop, tally) = (Arc::clone(&stop), Arc::clone(&tally));
            std::thread::spawn(move || {
                let mut client = Raw::connect(edge);
                while !stop.load(Ordering::Relaxed) {
                    let (status, body) = ask(&mut client, "");
                    let got = match status {
                        200 => format!("200 {body}"),
                        status => status.to_string(),
                    };
                    *tally.lock().unwrap().entry(got).or_default() += 1;
                }
            })
        });
        Self {
            clients: clients.collect(),
            stop,
            tally,
        }
    }

    /// Returns how many times this result has occurred.
    fn got(&self, what: &str) -> usize {
        self.tally.lock().unwrap().get(what).copied().unwrap_or(0)
    }

    /// Returns the number of results other than 200.
    fn failed(&self) -> usize {
        let tally = self.tally.lock().unwrap();
        let failed = tally.iter().filter(|(got, _)| !got.starts_with("200"));
        failed.map(|(_, count)| count).sum()
    }

    /// Waits until this result has occurred this many more times.
    #[track_caller]
    fn comes(&self, what: &str, count: usize) {
        let before = self.got(what);
        eventually(what, || self.got(what) >= before + count);
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for client in self.clients.drain(..) {
            let ended = client.join();
            if !std::thread::panicking() {
                ended.unwrap();
            }
        }
    }
}

fn ask(client: &mut Raw, headers: &str) -> (u16, String) {
    let reply = client
        .send(format!("GET / HTTP/1.1\r\nHost: a.test\r\n{headers}\r\n"))
        .reply();
    (reply.status, String::from_utf8(reply.body).unwrap())
}

/// Policy that ejects after three errors, with frequent ejection sweeps.
const EJECT: &str = "outlierDetection: {consecutive5xxErrors: 3, interval: 100ms, baseEjectionTime: 400ms, \
    maxEjectionPercent: 50}";

#[test]
fn failing_endpoint_under_load_is_ejected_and_unejected() {
    for mood in [Mood::Fails, Mood::Resets, Mood::Hangs] {
        let [one, two, three] = ["one", "two", "three"].map(Moody::new);
        let policy = format!("{{loadBalancer: {{simple: ROUND_ROBIN}}, {EJECT}}}");
        let endpoints = [(&one, ""), (&two, ""), (&three, "")];
        let proxy = start(
            &endpoints,
            &policy,
            "timeout: 300ms, retries: {attempts: 0}",
        );
        let load = Load::begin(proxy.edge, 4);
        for name in ["200 one", "200 two", "200 three"] {
            load.comes(name, 20);
        }
        assert_eq!(load.failed(), 0, "{mood:?}");
        three.is(mood);
        eventually("it is ejected", || {
            proxy.metric("strait_outlier_ejections_total", &[]) >= 1.0
        });
        load.comes("200 one", 50);
        load.comes("200 two", 50);
        assert!(load.failed() >= 3, "{mood:?}");
        three.is(Mood::Answers);
        load.comes("200 three", 20);
        eventually("no endpoint is ejected", || {
            proxy.metric("strait_outlier_ejections_active", &[]) == 0.0
        });
        let failed = load.failed();
        for name in ["200 one", "200 two", "200 three"] {
            load.comes(name, 50);
        }
        assert_eq!(load.failed(), failed, "{mood:?}");
        let events = proxy.page("/events");
        assert!(events.contains("ejected for"), "{events}");
        assert!(events.contains("unejected after"), "{events}");
    }
}

#[test]
fn retries_hide_resets_of_one_endpoint_under_load() {
    let [one, two, three] = ["one", "two", "three"].map(Moody::new);
    let policy = format!("{{loadBalancer: {{simple: ROUND_ROBIN}}, {EJECT}}}");
    let endpoints = [(&one, ""), (&two, ""), (&three, "")];
    let rule = "retries: {attempts: 3, retryOn: '5xx,reset'}";
    let proxy = start(&endpoints, &policy, rule);
    let load = Load::begin(proxy.edge, 4);
    load.comes("200 three", 20);
    for mood in [Mood::Resets, Mood::Fails] {
        three.is(mood);
        load.comes("200 one", 100);
        load.comes("200 two", 100);
        three.is(Mood::Answers);
        load.comes("200 three", 20);
    }
    assert_eq!(load.failed(), 0, "{:?}", load.tally.lock().unwrap());
    assert!(proxy.metric("strait_outlier_ejections_total", &[]) >= 1.0);
}

#[test]
fn retry_leaves_the_hashed_endpoint_and_later_requests_return_to_it() {
    let names = ["one", "two", "three", "four"];
    let all = names.map(Moody::new);
    let endpoints: Vec<(&Moody, &str)> = all.iter().map(|moody| (moody, "")).collect();
    for algorithm in ["ringHash: {}", "maglev: {tableSize: 1009}"] {
        let policy = format!(
            "{{loadBalancer: {{consistentHash: {{httpHeaderName: x-user, {algorithm}}}}}}}"
        );
        let rule = "retries: {attempts: 2, retryOn: 5xx, retryIgnorePreviousHosts: true}";
        let proxy = start(&endpoints, &policy, rule);
        let mut client = Raw::connect(proxy.edge);
        for user in 0..12 {
            let header = format!("x-user: user-{user}\r\n");
            let (status, home) = ask(&mut client, &header);
            assert_eq!(status, 200);
            let owner = names.iter().position(|name| *name == home).unwrap();
            for mood in [Mood::Fails, Mood::Resets] {
                all[owner].is(mood);
                let (status, other) = ask(&mut client, &header);
                assert_eq!(status, 200, "{algorithm} {user} {mood:?}");
                assert_ne!(other, home, "{algorithm} {user}");
                all[owner].is(Mood::Answers);
                assert_eq!(ask(&mut client, &header), (200, home.clone()));
            }
        }
    }
}

/// Istio uses the hash policy of a rule's only destination, and ignores those of several destinations.
#[test]
fn retry_avoids_the_hashed_endpoint_by_default_if_a_rule_has_several_destinations() {
    let names = ["one", "two", "three"];
    let all = names.map(Moody::new);
    let endpoints: Vec<(&Moody, &str)> = all.iter().map(|moody| (moody, "")).collect();
    let policy = "{loadBalancer: {consistentHash: {httpHeaderName: x-user}}}";
    let retries = "retries: {attempts: 2, retryOn: 5xx}";
    let split = "route: [{destination: {host: a.test}, weight: 1}, {destination: {host: a.test}, weight: 1}]";
    let several = format!("{retries}, {split}}}\n- {{name: unused");
    for (rule, expected) in [(retries, 500), (&several, 200)] {
        let proxy = start(&endpoints, policy, rule);
        let mut client = Raw::connect(proxy.edge);
        let (_, home) = ask(&mut client, "x-user: ann\r\n");
        let owner = names.iter().position(|name| *name == home).unwrap();
        all[owner].is(Mood::Fails);
        assert_eq!(ask(&mut client, "x-user: ann\r\n").0, expected, "{rule}");
        all[owner].is(Mood::Answers);
    }
}

#[test]
fn other_region_takes_over_during_an_outage_only() {
    let [near, also, far] = ["near", "also", "far"].map(Moody::new);
    let policy = format!("{{loadBalancer: {{simple: ROUND_ROBIN}}, {EJECT}}}")
        .replace("maxEjectionPercent: 50", "maxEjectionPercent: 100");
    let endpoints = [(&near, "r/a"), (&also, "r/a"), (&far, "q/a")];
    let proxy = start(&endpoints, &policy, "retries: {attempts: 2, retryOn: 5xx}");
    let load = Load::begin(proxy.edge, 4);
    load.comes("200 near", 50);
    assert_eq!(load.got("200 far"), 0);
    near.is(Mood::Fails);
    also.is(Mood::Fails);
    load.comes("200 far", 200);
    near.is(Mood::Answers);
    also.is(Mood::Answers);
    load.comes("200 near", 20);
    load.comes("200 also", 20);
    eventually("no endpoint is ejected", || {
        proxy.metric("strait_outlier_ejections_active", &[]) == 0.0
    });
    // what was picked before is over when all clients have asked again
    load.comes("200 near", 20);
    let far = load.got("200 far");
    load.comes("200 near", 100);
    assert_eq!(load.got("200 far"), far);
    assert!(proxy.metric("strait_priority_load_changes_total", &[]) >= 2.0);
}

#[test]
fn zone_aware_routing_keeps_the_local_share_in_the_local_zone() {
    let all = ["one", "two", "three", "four"].map(Moody::new);
    let policy =
        "{loadBalancer: {simple: RANDOM, zoneAwareLbSetting: {enabled: true, minClusterSize: 4}}}";
    for (zones, range) in [
        // a quarter of the endpoints for a half of the clients: half of the traffic stays
        (["r/a", "r/b", "r/b", "r/b"], 140..260),
        (["r/a", "r/a", "r/b", "r/b"], 400..401),
        // other regions are for when this one fails
        (["r/a", "r/a", "r/b", "q/a"], 220..400),
    ] {
        let endpoints: Vec<(&Moody, &str)> = all.iter().zip(zones).collect();
        let proxy = start(&endpoints, policy, "retries: {attempts: 0}");
        let mut client = Raw::connect(proxy.edge);
        let names: Vec<String> = (0..400).map(|_| ask(&mut client, "").1).collect();
        let own = zones.iter().filter(|zone| **zone == "r/a").count();
        let near = ["one", "two"][..own].to_vec();
        let stayed = names.iter().filter(|name| near.contains(&&***name)).count();
        assert!(range.contains(&stayed), "{zones:?}: {stayed}");
        if zones.contains(&"q/a") {
            assert!(!names.iter().any(|name| name == "four"), "{zones:?}");
        }
    }
}
