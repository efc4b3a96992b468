//! Tests of followed names, with scripted answers on paused time and with a test server.

#[allow(
    dead_code,
    reason = "shared with tests on sockets, which use all of it"
)]
#[path = "../../../tests/support/dns.rs"]
mod server;

use std::net::IpAddr;
use std::sync::Mutex;

use hickory_resolver::{Hosts, system_conf};
use tokio::time::Instant;

use super::lookup::lookup_after;
use super::*;

fn parsed(text: impl AsRef<[u8]>) -> SystemConf {
    let (config, options) = system_conf::parse_resolv_conf(text).unwrap();
    SystemConf {
        config,
        options,
        no_server: None,
    }
}

/// Lookup that answers from a script and records the times of its calls.
fn scripted(answers: Vec<Answer>) -> (Lookup, Arc<Mutex<Vec<Instant>>>) {
    let answers = Mutex::new(answers.into_iter());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    let lookup: Lookup = Arc::new(move |_| {
        log.lock().unwrap().push(Instant::now());
        let answer = answers.lock().unwrap().next();
        Box::pin(async move {
            match answer {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    });
    (lookup, asked)
}

fn found(addresses: Vec<IpAddr>, ttl: Duration) -> Answer {
    Ok(Found {
        addresses,
        ttl,
        partly: None,
    })
}

/// Lookup request for a name without addresses.
pub(super) fn new(name: &str) -> LookupRequest {
    LookupRequest {
        name: name.into(),
        held: Arc::default(),
    }
}

fn ip(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

fn names(name: &str) -> BTreeMap<Arc<str>, Renewal> {
    BTreeMap::from([(Arc::from(name), Renewal::AtOnce)])
}

#[tokio::test(start_paused = true)]
async fn answers_are_renewed_at_their_ttl_and_only_changes_are_reported() {
    let (lookup, asked) = scripted(vec![
        found(vec![ip(1)], Duration::from_secs(30)),
        found(vec![ip(1)], Duration::from_secs(1)),
        found(vec![ip(2)], Duration::from_secs(30)),
    ]);
    let registry = Arc::new(Registry::default());
    let (sender, mut changed) = mpsc::channel(8);
    let started = Instant::now();
    let mut follower = Follower::new(lookup, Arc::clone(&registry), sender);
    follower.follow(&names("a.example"));
    assert_eq!(&*changed.recv().await.unwrap(), "a.example");
    assert_eq!(registry.resolution("a.example").unwrap().addresses, [ip(1)]);
    changed.recv().await.unwrap();
    assert_eq!(registry.resolution("a.example").unwrap().addresses, [ip(2)]);
    let at: Vec<u64> = asked
        .lock()
        .unwrap()
        .iter()
        .map(|at| (*at - started).as_secs())
        .collect();
    assert_eq!(
        at,
        [0, 30, 31],
        "TTL, then the shortest time between lookups"
    );
}

#[tokio::test(start_paused = true)]
async fn names_of_imports_are_renewed_at_a_slower_rate() {
    let answers = (1..=4).map(|last| found(vec![ip(last)], Duration::from_secs(1)));
    let (lookup, asked) = scripted(answers.collect());
    let (sender, mut changed) = mpsc::channel(8);
    let started = Instant::now();
    let mut follower = Follower::new(lookup, Arc::default(), sender);
    let name = |renewal| BTreeMap::from([(Arc::from("gw.c2.example"), renewal)]);
    follower.follow(&name(Renewal::Unhurried));
    changed.recv().await.unwrap();
    changed.recv().await.unwrap();
    // an endpoint that is no import has the name now
    follower.follow(&name(Renewal::AtOnce));
    changed.recv().await.unwrap();
    changed.recv().await.unwrap();
    let asked = asked.lock().unwrap();
    let at: Vec<u64> = asked.iter().map(|at| (*at - started).as_secs()).collect();
    assert_eq!(at, [0, 5, 5, 6]);
}

#[tokio::test(start_paused = true)]
async fn pause_after_failed_lookups_is_at_most_that_of_the_mesh() {
    let answers = (0..6).map(|_| Err("no such host".to_owned())).collect();
    let (lookup, asked) = scripted(answers);
    let (sender, _changed) = mpsc::channel(8);
    let mut follower = Follower::new(lookup, Arc::default(), sender);
    follower.set_retry_max(Some(Duration::from_secs(3)));
    follower.follow(&names("a.example"));
    tokio::time::sleep(Duration::from_secs(9)).await;
    follower.set_retry_max(None);
    tokio::time::sleep(Duration::from_secs(7)).await;
    let asked = asked.lock().unwrap().clone();
    let gaps: Vec<u64> = asked
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_secs())
        .collect();
    assert_eq!(gaps, [1, 2, 3, 3, 3]);
}

#[tokio::test(start_paused = true)]
async fn failed_lookup_keeps_the_last_addresses_and_backs_off() {
    let failures = (0..8).map(|_| Err("no such host".to_owned()));
    let answers = std::iter::once(found(vec![ip(1)], Duration::from_secs(10)))
        .chain(failures)
        .collect();
    let (lookup, asked) = scripted(answers);
    let registry = Arc::new(Registry::default());
    let (sender, mut changed) = mpsc::channel(8);
    let mut follower = Follower::new(lookup, Arc::clone(&registry), sender);
    follower.follow(&names("a.example"));
    changed.recv().await.unwrap();
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(registry.resolution("a.example").unwrap().addresses, [ip(1)]);
    let asked = asked.lock().unwrap().clone();
    let gaps: Vec<u64> = asked
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_secs())
        .collect();
    assert_eq!(gaps, [10, 1, 2, 4, 8, 16, 32, 60, 60]);
}

#[tokio::test(start_paused = true)]
async fn unused_names_are_no_longer_resolved() {
    let (lookup, asked) = scripted(
        (0..100)
            .map(|_| found(vec![ip(1)], Duration::from_secs(5)))
            .collect(),
    );
    let (sender, mut changed) = mpsc::channel(8);
    let mut follower = Follower::new(lookup, Arc::default(), sender);
    follower.follow(&names("a.example"));
    changed.recv().await.unwrap();
    follower.follow(&BTreeMap::new());
    tokio::task::yield_now().await;
    let before = asked.lock().unwrap().len();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(asked.lock().unwrap().len(), before);
}

#[tokio::test]
async fn search_domains_of_the_system_apply() {
    let server = server::Dns::start();
    server.set("svc.ns.test", &[(30, server::at("10.0.0.1"))]);
    server.set("svc", &[(30, server::at("10.0.0.2"))]);
    server.set("a.svc.test", &[(30, server::at("10.0.0.3"))]);
    server.set("a.svc.test.ns.test", &[(30, server::at("10.0.0.4"))]);
    let conf = |ndots: u32| {
        let text = format!("nameserver 192.0.2.1\nsearch ns.test\noptions ndots:{ndots}\n");
        parsed(text)
    };
    for (ndots, name, address) in [
        (1, "svc", ip(1)),
        (1, "a.svc.test", ip(3)),
        (5, "a.svc.test", ip(4)),
        // a trailing dot makes the name absolute
        (5, "a.svc.test.", ip(3)),
        (1, "svc.", ip(2)),
    ] {
        let lookup = lookup_by(resolver_with_servers(&[server.address], conf(ndots))).unwrap();
        let found = lookup(new(name)).await.unwrap();
        assert_eq!(
            (&*found.addresses, found.ttl.as_secs()),
            (&[address][..], 30),
            "{ndots} {name}"
        );
    }
    let lookup = lookup_by(resolver_with_servers(&[server.address], conf(1))).unwrap();
    assert!(lookup(new("other.test")).await.is_err());
}

#[tokio::test]
async fn ttl_of_an_answer_is_the_minimum_of_its_records() {
    let server = server::Dns::start();
    server.set("a.test", &[(7, server::Data::Alias("b.test"))]);
    server.set(
        "b.test",
        &[(90, server::at("10.0.0.1")), (60, server::at("::1"))],
    );
    let conf = SystemConf::default();
    let lookup = lookup_by(resolver_with_servers(&[server.address], conf)).unwrap();
    let found = lookup(new("a.test")).await.unwrap();
    assert_eq!((found.addresses.len(), found.ttl.as_secs()), (2, 7));
    let asked = server.asked();
    lookup(new("a.test")).await.unwrap();
    assert_eq!(server.asked(), 2 * asked);
}

#[tokio::test]
async fn failed_address_family_keeps_its_addresses() {
    let server = server::Dns::start();
    server.set("a.test", &[(30, server::at("10.0.0.1"))]);
    let lookup = lookup_by(resolver_with_servers(
        &[server.address],
        SystemConf::default(),
    ))
    .unwrap();
    let held: [IpAddr; 2] = [ip(9), "::9".parse().unwrap()];
    let question = LookupRequest {
        name: "a.test".into(),
        held: held.into(),
    };
    // the server has no more addresses of the other family
    let found = lookup(question.clone()).await.unwrap();
    assert_eq!((&*found.addresses, found.partly), (&[ip(1)][..], None));
    // the server fails for the other family
    server.fail_for(28, Some(server::SERVFAIL));
    let found = lookup(question).await.unwrap();
    assert_eq!(found.addresses, [ip(1), held[1]]);
    assert!(found.partly.is_some());
    // no address was known before
    let found = lookup(new("a.test")).await.unwrap();
    assert_eq!((&*found.addresses, found.partly), (&[ip(1)][..], None));
}

#[tokio::test]
async fn names_in_the_hosts_file_cause_no_query() {
    let server = server::Dns::start();
    server.set("a.test", &[(30, server::at("10.0.0.1"))]);
    server.set("b.test", &[(30, server::at("10.0.0.2"))]);
    let mut hosts = Hosts::default();
    let file = "10.0.0.9 four a.test # one family\n::6 six\n10.0.0.8 both\n::8 both\n";
    hosts.read_hosts_conf(file.as_bytes()).unwrap();
    let text = "nameserver 192.0.2.1\nsearch ns.test\n";
    let conf = parsed(text);
    let lookup = lookup_after(hosts, resolver_with_servers(&[server.address], conf)).unwrap();
    let six = |text: &str| text.parse::<IpAddr>().unwrap();
    for (name, addresses) in [
        ("a.test", vec![ip(9)]),
        ("four", vec![ip(9)]),
        ("Six.", vec![six("::6")]),
        ("both", vec![ip(8), six("::8")]),
    ] {
        let found = lookup(new(name)).await.unwrap();
        assert_eq!(found.addresses, addresses, "{name}");
        assert!(found.ttl >= RENEW_MIN && found.partly.is_none());
    }
    assert_eq!(server.asked(), 0);
    let found = lookup(new("b.test")).await.unwrap();
    assert_eq!(found.addresses, [ip(2)]);
}

#[tokio::test]
async fn server_that_refuses_fails_the_lookup_at_once() {
    // a port that was free a moment ago
    let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = closed.local_addr().unwrap();
    drop(closed);
    let lookup = system_lookup(&[server]).unwrap();
    let asked = std::time::Instant::now();
    let error = lookup(new("svc.invalid.")).await.unwrap_err();
    // the first timeout of a silent server is at 5 s
    assert!(asked.elapsed() < Duration::from_secs(4), "{error}");
    assert!(!error.contains('{'), "no text of the library: {error}");
}
