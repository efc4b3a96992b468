//! Configuration from a real istiod, if one is available:
//!
//! - `STRAIT_TEST_ISTIOD=HOST:PORT` names one without TLS that serves resources to everyone (`XDS_AUTH=false`,
//!   `ENABLE_XDS_API_GENERATOR_AUTH=false`), and `STRAIT_TEST_ISTIOD_CONFIG` the folder that it follows (`--configDir`).
//! - `STRAIT_TEST_ISTIOD_CLOSED=HOST:PORT` names one that does not serve them, as Istio does since 1.32.

use std::path::PathBuf;

use crate::support::client::{Client, Front};
use crate::support::mesh::{documents, gateway, routes};
use crate::support::proxy::{Proxy, Start};
use crate::support::{eventually, until};

#[allow(
    clippy::print_stderr,
    reason = "the reason of a skipped test is printed"
)]
fn variable(name: &str) -> Option<String> {
    let value = std::env::var(name).ok();
    if value.is_none() {
        eprintln!("skipped: {name} names no istiod");
    }
    value
}

fn follow(start: Start, istiod: &str) -> Proxy {
    let url = format!("xds+plaintext://{istiod}");
    start.args(["--control", &url]).spawn()
}

#[tokio::test]
async fn resources_of_istiod_are_followed() {
    let Some(istiod) = variable("STRAIT_TEST_ISTIOD") else {
        return;
    };
    let Some(folder) = variable("STRAIT_TEST_ISTIOD_CONFIG").map(PathBuf::from) else {
        return;
    };
    let start = Start::new();
    let edge = start.edge();
    let file = folder.join(format!("strait-test-{}.yaml", edge.port()));
    let write = |status: u16| {
        let rules = format!("- directResponse: {{status: {status}}}");
        let deny = "apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: all, namespace: default}\n\
                    spec: {action: DENY, rules: [{}]}\n";
        let mesh = documents([
            gateway(&[edge]),
            routes("all", "['*']", &rules),
            deny.to_owned(),
        ]);
        std::fs::write(&file, mesh).unwrap();
    };
    write(204);
    let proxy = follow(start, &istiod);
    for status in [204, 202] {
        write(status);
        until("the rule is in effect", async || {
            let client = Client::try_connect(Front::H1, edge).await;
            match client {
                Ok(mut client) => client.get("/").await.status == status,
                Err(_) => false,
            }
        })
        .await;
    }
    eventually("its security policy is reported", || {
        proxy.metric("strait_config_policies_unenforced", &[]) >= 1.0
    });
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn refusal_of_istiod_says_what_to_do() {
    let Some(istiod) = variable("STRAIT_TEST_ISTIOD_CLOSED") else {
        return;
    };
    let proxy = follow(Start::new(), &istiod);
    let log =
        proxy.has_logged("istiod serves its resources to workloads of its root namespace only");
    assert!(log.contains("SRC008"), "{log}");
    assert!(log.contains("ENABLE_XDS_API_GENERATOR_AUTH"), "{log}");
}
