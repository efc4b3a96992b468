//! `strait top --once` of a running proxy.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::client::{Client, Front};
use crate::support::mesh::{documents, gateway, routes, service, subsets};
use crate::support::origin::{Back, Origin};
use crate::support::proxy::{Proxy, Start};

fn top(proxy: &Proxy, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_strait"))
        .args(["top", "--admin", &proxy.admin.to_string()])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Returns a proxy with two rules for two endpoints of one service.
fn world() -> (Origin, Origin, Proxy) {
    let (first, second) = (Origin::named(Back::H1, "v1"), Origin::named(Back::H1, "v2"));
    let start = Start::new();
    let rules = "\
- name: beta
  match: [{uri: {prefix: /two}}]
  route: [{destination: {host: web.test, subset: v2}}]
- name: alpha
  match: [{uri: {prefix: /one}}]
  route: [{destination: {host: web.test, subset: v1}}]
- name: gamma
  match: [{uri: {prefix: /none}}]
  route: [{destination: {host: gone.test}}]";
    let endpoints = [(first.address, "v1"), (second.address, "v2")];
    let mesh = documents([
        gateway(&[start.edge()]),
        routes("all", "[a.test]", rules),
        service("web", Back::H1, &endpoints),
        subsets("web", &["v1", "v2"]),
        service("gone", Back::H1, &[]),
    ]);
    let proxy = start.file("mesh.yaml", mesh).start();
    (first, second, proxy)
}

#[tokio::test]
async fn counts_are_those_of_rules_destinations_and_endpoints_in_use() {
    let (first, second, proxy) = world();
    let activity = || -> Value { serde_json::from_str(&proxy.page("/activity")).unwrap() };
    let before = activity();
    for table in ["rules", "destinations", "endpoints"] {
        assert_eq!(before[table].as_array().unwrap().len(), 0, "{table}");
    }
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    for (path, count) in [("/one", 3), ("/two", 2), ("/none", 1), ("/unknown", 1)] {
        for _ in 0..count {
            client.get(path).await;
        }
    }
    let after = activity();
    let find = |table: &str, field: &str, value: &str| {
        let mut rows = after[table].as_array().unwrap().iter();
        let is_it = |row: &&Value| row[field].as_str().unwrap().contains(value);
        rows.find(is_it)
            .cloned()
            .unwrap_or_else(|| panic!("{value} in {after}"))
    };
    let gone = find("destinations", "host", "gone.test");
    assert_eq!((&gone["requests"], &gone["failed"]), (&1.into(), &1.into()));
    let web = find("destinations", "host", "web.test");
    assert_eq!((&web["requests"], &web["failed"]), (&5.into(), &0.into()));
    let durations = web["durations"].as_array().unwrap().iter();
    assert_eq!(
        durations.map(|count| count.as_u64().unwrap()).sum::<u64>(),
        5
    );
    let bounds = after["duration_bounds_ms"].as_array().unwrap().len();
    assert_eq!(web["durations"].as_array().unwrap().len(), bounds + 1);
    for (origin, requests) in [(&first, 3), (&second, 2)] {
        let endpoint = find("endpoints", "endpoint", &origin.address.to_string());
        assert_eq!(
            (&endpoint["requests"], &endpoint["active"]),
            (&requests.into(), &0.into())
        );
    }
    for (rule, requests, failed) in [("alpha", 3, 0), ("beta", 2, 0), ("gamma", 1, 1)] {
        let rule = find("rules", "rule", rule);
        assert_eq!(
            (&rule["requests"], &rule["failed"]),
            (&requests.into(), &failed.into())
        );
        assert_eq!(rule["hosts"], serde_json::json!(["a.test"]));
        assert!(
            rule["location"].as_str().unwrap().contains("mesh.yaml:"),
            "{rule}"
        );
    }
    assert_eq!(after["generation"], before["generation"]);
}

#[tokio::test]
async fn one_interval_is_printed_as_text_or_json() {
    let (_first, _second, proxy) = world();
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    for path in ["/one", "/two"] {
        client.get(path).await;
    }
    let json = top(&proxy, &["--once", "-o", "json", "--interval", "100ms"]);
    assert!(json.status.success(), "{json:?}");
    let frame: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert!(
        frame["interval_seconds"].as_f64().unwrap() >= 0.1,
        "{frame}"
    );
    assert_eq!(frame["destinations"][0]["name"], "web.test");
    assert_eq!(frame["endpoints"].as_array().unwrap().len(), 2);
    let text = top(&proxy, &["--once", "--view", "rule", "--interval", "100ms"]);
    let text = String::from_utf8(text.stdout).unwrap();
    let admin = proxy.admin.to_string();
    assert!(text.starts_with(&format!("{admin}  ")), "{text}");
    assert!(
        text.contains("\nrules ") && text.contains("mesh.yaml:"),
        "{text}"
    );
    assert!(!text.contains("\nendpoints"), "{text}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn wrong_use_and_unreachable_proxies_are_told_apart() {
    let (_first, _second, proxy) = world();
    let no_terminal = top(&proxy, &[]);
    assert_eq!(no_terminal.status.code(), Some(2));
    let text = String::from_utf8(no_terminal.stderr).unwrap();
    assert!(text.contains("use --once"), "{text}");
    assert_eq!(
        top(&proxy, &["--once", "--interval", "1ms"]).status.code(),
        Some(2)
    );
    let admin = proxy.admin;
    drop(proxy);
    let gone = Command::new(env!("CARGO_BIN_EXE_strait"))
        .args(["top", "--once", "--admin", &admin.to_string()])
        .output()
        .unwrap();
    assert_eq!(gone.status.code(), Some(1));
    let text = String::from_utf8(gone.stderr).unwrap();
    assert!(text.contains(&admin.to_string()), "{text}");
}
