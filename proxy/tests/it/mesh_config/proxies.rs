//! Settings of proxies: `defaultConfig`, those of one proxy alone, and ProxyConfigs.

use std::fs;

use serde_json::{Value, json};

use super::Mesh;
use crate::support::client::{Client, Front};
use crate::support::eventually;
use crate::support::mesh::everything_to;
use crate::support::origin::{Back, Origin};
use crate::support::otlp::Collector;
use crate::support::proxy::{Proxy, Start};
use crate::support::raw::Raw;

fn proxy_config(name: &str, spec: &str) -> String {
    let meta = format!("metadata: {{name: {name}, namespace: default}}");
    format!(
        "apiVersion: networking.istio.io/v1beta1\nkind: ProxyConfig\n{meta}\nspec: {{{spec}}}\n"
    )
}

/// Returns the setting of a flag in `/config_dump`.
pub(super) fn setting(proxy: &Proxy, flag: &str) -> Value {
    let dump: Value = serde_json::from_str(&proxy.page("/config_dump")).unwrap();
    let settings = dump["settings"].as_array().unwrap();
    let found = settings.iter().find(|one| one["flag"] == flag);
    found.cloned().unwrap_or_default()
}

/// A flag, a ProxyConfig that selects the proxy, its annotation, a ProxyConfig of its namespace, and the
/// mesh configuration, in this order.
#[test]
fn number_of_workers_is_that_of_the_narrowest_resource() {
    let selecting = proxy_config("s", "concurrency: 3, selector: {matchLabels: {app: a}}");
    let all = proxy_config("all", "concurrency: 4");
    let none = String::new();
    for (flag, own, resources, expected) in [
        (
            Some("1"),
            "concurrency: 5",
            &selecting,
            ("1", "--concurrency"),
        ),
        (
            None,
            "concurrency: 5",
            &selecting,
            ("3", "ProxyConfig/default/s"),
        ),
        (None, "concurrency: 5", &all, ("5", "proxy.istio.io/config")),
        (None, "{}", &all, ("4", "ProxyConfig/default/all")),
        (None, "{}", &none, ("6", "mesh.yaml")),
    ] {
        let start = Start::new()
            .without_workers_flag()
            .file("proxies.yaml", resources);
        let annotations = tempfile::NamedTempFile::new().unwrap();
        let text = format!("a=\"b\"\nproxy.istio.io/config={:?}\n", own);
        fs::write(annotations.path(), text).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("mesh.yaml");
        fs::write(&config, "defaultConfig: {concurrency: 6}\n").unwrap();
        let start = start.args([
            "--labels",
            "app=a",
            "--namespace",
            "default",
            "--allow-empty",
            "--pod-annotations",
            annotations.path().to_str().unwrap(),
            "--mesh-config",
            config.to_str().unwrap(),
        ]);
        let start = start.args(flag.iter().flat_map(|flag| ["--concurrency", flag]));
        let proxy = start.start();
        let found = setting(&proxy, "concurrency");
        assert_eq!(found["value"], expected.0, "{found}");
        let origin = found["origin"].as_str().unwrap();
        assert!(origin.ends_with(expected.1), "{found}");
        // a thread sets its name once it runs
        eventually("the workers run", || {
            proxy.workers().to_string() == expected.0
        });
        if flag.is_some() {
            assert_eq!(found["instead_of"]["value"], "3", "{found}");
            proxy.has_logged("MC105");
        }
    }
}

#[test]
fn changed_setting_of_the_start_is_pending_until_a_restart() {
    let start = Start::new().args(["--allow-empty"]);
    let mesh = Mesh::start(start, "proxyHttpPort: 15007\n");
    let pending = || mesh.proxy.metric("strait_config_restart_pending", &[]);
    assert_eq!(pending(), 0.0);
    for (config, expected) in [
        ("proxyHttpPort: 15008\n", 1.0),
        ("proxyHttpPort: 15007\n", 0.0),
        (
            "proxyHttpPort: 15007\ndefaultConfig: {proxyMetadata: {A: b}}\n",
            1.0,
        ),
    ] {
        fs::write(mesh.config.path(), config).unwrap();
        eventually("the change is read", || pending() == expected);
    }
    mesh.proxy.has_logged("MC102");
    let found = setting(&mesh.proxy, "http-proxy-listener");
    assert_eq!(found["value"], "127.0.0.1:15007", "{found}");
    mesh.proxy
        .write("proxies.yaml", proxy_config("p", "concurrency: 1"));
    fs::write(mesh.config.path(), "proxyHttpPort: 15007\n").unwrap();
    mesh.proxy.has_logged("a ProxyConfig has changed");
    assert_eq!(pending(), 1.0);
}

/// The tracing of `defaultConfig` is followed, and that of the proxy alone wins.
#[tokio::test]
async fn tracing_of_the_mesh_is_followed() {
    let (collector, origin) = (Collector::start(Back::H1), Origin::named(Back::H1, "o"));
    let start = Start::new();
    let text = everything_to(start.edge(), &origin);
    let start = start
        .file("mesh.yaml", text)
        .args(["--otlp-endpoint", &collector.url()])
        .args(["--proxy-config", "tracingServiceName: CANONICAL_NAME_ONLY"])
        .args(["--labels", "istio=ingressgateway,app=shop"])
        .env("OTEL_BSP_SCHEDULE_DELAY", "10");
    let mesh = Mesh::start(start, "defaultConfig: {tracing: {sampling: 0.01}}\n");
    let mut client = Client::connect(Front::H1, mesh.proxy.edge).await;
    let tags =
        "customTags: {team: {literal: {value: shop}}}, maxPathTagLength: 5, enableIstioTags: false";
    mesh.configure(&format!(
        "defaultConfig: {{tracing: {{sampling: 100, {tags}}}}}\n"
    ));
    // the connection is that of before
    assert_eq!(client.get("/abcdef").await.status, 200);
    for span in collector.wait(2).await {
        assert_eq!(span.get("team"), "shop");
        assert_eq!(span.attribute("istio.mesh_id"), None);
        let path = span.attribute("url.path");
        assert!(path.is_none_or(|path| path == "/abcd"));
    }
    assert_eq!(collector.resource()["service.name"], "shop");
}

#[test]
fn variables_of_a_proxy_config_are_those_of_its_environment() {
    let origin = Origin::named(Back::H1, "o");
    let start = Start::new();
    let rule = everything_to(start.edge(), &origin);
    let set = "headers: {request: {set: {x-a: '%ENVIRONMENT(A)% %ENVIRONMENT(B)%'}}}, route:";
    let proxy = start
        .file("mesh.yaml", rule.replacen("route:", set, 1))
        .file(
            "proxies.yaml",
            proxy_config("p", "environmentVariables: {A: kind, B: kind}"),
        )
        .args(["--namespace", "default"])
        .env("A", "own")
        .start();
    Raw::connect(proxy.edge)
        .send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        .reply();
    assert_eq!(origin.only().header("x-a"), Some("own kind"));
}

/// Settings of `proxyHeaders`, `proxyMetadata` and `meshId`.
#[test]
fn headers_and_variables_are_those_of_the_proxy() {
    let origin = Origin::named(Back::H1, "o");
    let start = Start::new();
    let rule = everything_to(start.edge(), &origin);
    let variables = "%ENVIRONMENT(A)% %ENVIRONMENT(ISTIO_META_MESH_ID)%";
    let set = format!("headers: {{request: {{set: {{x-a: '{variables}'}}}}}}, route:");
    let start = start
        .file("mesh.yaml", rule.replacen("route:", &set, 1))
        .env(
            "PROXY_CONFIG",
            "{\"proxyMetadata\": {\"A\": \"own\"}, \"statsdUdpAddress\": \"a:1\"}",
        );
    let mesh = Mesh::start(
        start,
        "defaultConfig: {meshId: m1, proxyMetadata: {A: mesh}, proxyHeaders: {server: {value: edge}}}\n",
    );
    let mut client = Raw::connect(mesh.proxy.edge);
    let reply = client
        .send("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n")
        .reply();
    assert!(reply.has("server: edge"), "{:?}", reply.headers);
    let seen = origin.seen().pop().unwrap();
    assert_eq!(seen.header("x-a"), Some("own m1"));
    let found = setting(&mesh.proxy, "server-name");
    assert_eq!(found["instead_of"], json!(null));
    mesh.proxy.has_logged("MC101");
}
