//! Key sets that are fetched: by URL and by discovery, from servers that are slow, wrong, or down.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hyper::Response;

use super::{Edge, Issuer, policy};
use crate::support::eventually;
use crate::support::mesh::{documents, everything_to, service};
use crate::support::origin::{Back, Origin, full};
use crate::support::proxy::free_address;

/// Answer of a server of key sets: status, location, and body.
type Answer = Arc<Mutex<(u16, String, Vec<u8>)>>;

fn answer(body: impl Into<Vec<u8>>) -> Answer {
    Arc::new(Mutex::new((200, String::new(), body.into())))
}

fn serve(at: SocketAddr, answer: &Answer) -> Origin {
    let answer = Arc::clone(answer);
    let listener = TcpListener::bind(at).unwrap();
    Origin::start_on(listener, Back::H1, move |_| {
        let (status, location, body) = answer.lock().unwrap().clone();
        async move {
            let response = Response::builder().status(status);
            response
                .header("location", location)
                .body(full(body))
                .unwrap()
        }
    })
}

fn rule(url: &str) -> String {
    policy(&[format!("{{issuer: i, jwksUri: '{url}', timeout: 1s}}")])
}

fn start(rule: String, arguments: &[&str]) -> Edge {
    Edge::start_with(arguments, &[rule], everything_to)
}

#[test]
fn keys_are_fetched_before_the_proxy_is_ready() {
    let issuer = Issuer::new("i", "k1");
    let at = free_address();
    let server = serve(at, &answer(issuer.keys()));
    let edge = start(rule(&format!("http://{at}/keys?a=b")), &[]);
    assert_eq!(edge.bearer(&issuer.token("")), 200);
    assert_eq!(server.only().uri.to_string(), "/keys?a=b");
    let attacker = Issuer::new("i", "k2");
    for _ in 0..10 {
        assert_eq!(edge.bearer(&attacker.token("")), 401);
    }
    edge.set(&[rule(&format!("http://{at}/keys?a=b")).replace("timeout: 1s", "timeout: 2s")]);
    assert_eq!(
        edge.bearer(&issuer.token("")),
        200,
        "keys outlive a change of the policy"
    );
    eventually("the changed policy fetches", || server.seen().len() == 2);
}

/// The host is known to no DNS server.
#[test]
fn keys_of_a_known_service_come_from_its_endpoints() {
    let issuer = Issuer::new("i", "k1");
    let at = free_address();
    let server = serve(at, &answer(issuer.keys()));
    let policies = [rule("http://keys.test/keys?a=b")];
    let edge = Edge::start_with(&[], &policies, |edge, origin| {
        let keys = service("keys", Back::H1, &[(at, "v1")]);
        documents([everything_to(edge, origin), keys])
    });
    assert_eq!(edge.bearer(&issuer.token("")), 200);
    let seen = server.only();
    assert_eq!(seen.uri.to_string(), "/keys?a=b");
    assert_eq!(seen.header("host"), Some("keys.test"));
    assert_eq!(seen.header("accept"), Some("application/json"));
    let opened = edge
        .proxy
        .metric("strait_upstream_connections_opened_total", &[]);
    assert_eq!(
        opened, 2.0,
        "one to the origin, and one to the server of keys"
    );
}

#[test]
fn keys_are_found_by_discovery() {
    let at = free_address();
    let keys = free_address();
    let issuer = Issuer::new(
        Box::leak(format!("http://{at}/realm/").into_boxed_str()),
        "k1",
    );
    let configuration = format!(r#"{{"issuer":"x","jwks_uri":"http://{keys}/keys"}}"#);
    let server = serve(at, &answer(configuration));
    let _keys = serve(keys, &answer(issuer.keys()));
    let edge = start(policy(&[format!("{{issuer: '{}'}}", issuer.name)]), &[]);
    assert_eq!(edge.bearer(&issuer.token("")), 200);
    assert_eq!(
        server.only().path(),
        "/realm/.well-known/openid-configuration"
    );
}

#[test]
fn server_that_is_down_at_the_start_is_asked_again() {
    let issuer = Issuer::new("i", "k1");
    let at = free_address();
    let edge = start(rule(&format!("http://{at}/")), &[]);
    let reply = edge.request(
        "/",
        &format!("authorization: Bearer {}\r\n", issuer.token("")),
    );
    assert_eq!(
        (reply.status, &*reply.body),
        (401, &b"Jwks remote fetch is failed"[..])
    );
    assert_eq!(edge.request("/", "").status, 200);
    let _server = serve(at, &answer(issuer.keys()));
    eventually("keys are fetched", || edge.bearer(&issuer.token("")) == 200);
    let metrics = edge.proxy.page("/stats/prometheus");
    let fetched = format!("strait_jwks_fetch_timestamp_seconds{{source=\"http://{at}/\"}} ");
    assert!(metrics.contains(&fetched), "{metrics}");
}

#[test]
fn server_that_is_silent_delays_the_start_by_the_limit_only() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let slow = rule(&url).replace("timeout: 1s", "timeout: 60s");
    let began = Instant::now();
    let edge = start(slow, &["--jwks-ready-timeout", "500ms"]);
    assert!(began.elapsed() >= Duration::from_millis(500));
    assert_eq!(edge.bearer(&Issuer::new("i", "k1").token("")), 401);
    assert_eq!(edge.request("/", "").status, 200);
}

#[test]
fn bad_answers_are_failed_fetches() {
    let issuer = Issuer::new("i", "k1");
    let many = vec![r#"{"kty":"OKP"}"#; 1000].join(",");
    let secret = serve(free_address(), &answer(issuer.keys()));
    for (status, location, body) in [
        (500, String::new(), issuer.keys()),
        (302, "file:///etc/passwd".into(), issuer.keys()),
        (302, format!("http://{}/", secret.address), issuer.keys()),
        (200, String::new(), "<html>".into()),
        (200, String::new(), format!(r#"{{"keys":[{many}]}}"#)),
        (200, String::new(), " ".repeat(2 << 20) + &issuer.keys()),
        (200, String::new(), " ".repeat(100 << 20)),
        (
            200,
            String::new(),
            r#"{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}"#.into(),
        ),
    ] {
        let at = free_address();
        let _server = serve(
            at,
            &Arc::new(Mutex::new((status, location, body.into_bytes()))),
        );
        let edge = start(rule(&format!("http://{at}/")), &[]);
        assert_eq!(edge.bearer(&issuer.token("")), 401, "{status}");
        let failed = [("result", "failed")];
        assert!(edge.proxy.metric("strait_jwks_fetches_total", &failed) >= 1.0);
    }
    assert!(secret.seen().is_empty(), "redirects are not followed");
    let at = free_address();
    let server = serve(at, &answer(issuer.keys()));
    let blocked = ["--jwks-blocked", "127.0.0.0/8,10.0.0.0/8"];
    let edge = start(rule(&format!("http://{at}/")), &blocked);
    assert_eq!(edge.bearer(&issuer.token("")), 401);
    assert!(server.seen().is_empty());
    edge.proxy.has_logged("is blocked (--jwks-blocked)");
}

#[test]
fn last_good_keys_stay_and_an_unknown_key_asks_for_new_ones() {
    let (old, new) = (Issuer::new("i", "k1"), Issuer::new("i", "k2"));
    let at = free_address();
    let answer = answer(old.keys());
    let server = serve(at, &answer);
    let edge = start(rule(&format!("http://{at}/")), &[]);
    let cached = old.token("");
    assert_eq!(edge.bearer(&cached), 200);
    *answer.lock().unwrap() = (200, String::new(), new.keys().into_bytes());
    // the server is asked 30 s after the fetch before, and once for all these tokens
    for _ in 0..20 {
        assert_eq!(edge.bearer(&new.token("")), 401);
    }
    assert_eq!((edge.bearer(&cached), server.seen().len()), (200, 1));
    let began = Instant::now();
    while edge.bearer(&new.token("")) == 401 {
        assert!(began.elapsed() < Duration::from_secs(45));
        std::thread::sleep(Duration::from_millis(200));
    }
    assert_eq!(edge.bearer(&cached), 401, "its key was removed");
    assert_eq!(server.seen().len(), 2);
}
