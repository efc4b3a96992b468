//! Two config servers, one per Kubernetes cluster, and a proxy that follows both.

use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use hyper::Response;
use serde_json::{Value, json};

use crate::config_server::{Control, apply, has_kubectl, kubectl, until_says};
use crate::support::client::{Client, Front};
use crate::support::mesh::{gateway, routes};
use crate::support::origin::{Back, Origin, full};
use crate::support::proxy::{Proxy, Start, free_address};

/// Time for which the endpoints of a cluster are kept while its server is unreachable.
const TTL: Duration = Duration::from_secs(3);

/// Maximum time until the proxy detects that a server is unreachable and [`TTL`] has expired.
const PATIENCE: Duration = Duration::from_secs(90);

/// Writes a Service and an EndpointSlice `web` with one endpoint.
fn apply_service(data: &Path, address: SocketAddr) {
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"ports": [{"name": "http", "port": 80}]},
    });
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": "web-1", "namespace": "default", "labels": {"kubernetes.io/service-name": "web"}},
        "addressType": "IPv4", "ports": [{"name": "http", "port": address.port()}],
        "endpoints": [{"addresses": [address.ip()]}],
    });
    apply(data, &service.to_string());
    apply(data, &slice.to_string());
}

fn named(text: &'static str) -> Origin {
    Origin::start(Back::H1, move |_| async move { Response::new(full(text)) })
}

/// Returns one kubeconfig with the contexts `east` and `west` of the proxies.
fn merged(east: &Path, west: &Path) -> String {
    let mut all = json!({"apiVersion": "v1", "kind": "Config", "current-context": "east"});
    for list in ["clusters", "contexts", "users"] {
        all[list] = json!([]);
    }
    for (name, data) in [("east", east), ("west", west)] {
        let path = data.join("proxy.kubeconfig");
        let view = ["config", "view", "--raw", "-o", "json", "--kubeconfig"];
        let read = kubectl(data, &[&view[..], &[path.to_str().unwrap()]].concat(), "");
        let read: Value = serde_json::from_slice(&read.stdout).unwrap();
        let mut part = |list: &str, key: &str, value: Value| {
            let entry = json!({"name": name, key: value});
            all[list].as_array_mut().unwrap().push(entry);
        };
        part(
            "clusters",
            "cluster",
            read["clusters"][0]["cluster"].clone(),
        );
        part("users", "user", read["users"][0]["user"].clone());
        part(
            "contexts",
            "context",
            json!({"cluster": name, "user": name}),
        );
    }
    all.to_string()
}

async fn answer(proxy: &Proxy) -> (u16, String) {
    let mut client = Client::connect(Front::H1, proxy.edge).await;
    let response = client.get("/").await;
    (response.status, response.text().to_owned())
}

/// Waits for a condition for up to [`PATIENCE`], longer than other tests.
fn patiently(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "timed out waiting: {what}");
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

#[tokio::test]
async fn cluster_whose_config_server_is_away_keeps_its_endpoints_until_their_time_is_over() {
    if !has_kubectl() {
        eprintln!("skipped: there is no kubectl");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let [east, west] = ["east", "west"].map(|name| directory.path().join(name));
    let _east = Control::start(&east, &free_address().to_string());
    let listen = free_address().to_string();
    let west_server = Control::start(&west, &listen);
    let (here, there) = (named("here"), named("there"));
    let start = Start::new();
    apply(&east, &gateway(&[start.edge()]));
    apply(
        &east,
        &routes("web", "[\"*\"]", "- route: [{destination: {host: web}}]\n"),
    );
    apply_service(&east, here.address);
    apply_service(&west, there.address);
    let ttl = format!("{}s", TTL.as_secs());
    let proxy = start
        .file("kubeconfig", merged(&east, &west))
        .args(["--kubeconfig", "mesh/kubeconfig", "--endpoint-ttl", &ttl])
        .args([
            "--control",
            "kubernetes://east,kubernetes://west=eu/eu-1/default/west",
        ])
        .spawn();
    until_says(&proxy, "here").await;
    // Without localities, the endpoints of both clusters share the traffic; the remote one gets all of it when the local
    // one is gone.
    let gone = kubectl(&east, &["delete", "endpointslice", "web-1"], "");
    assert!(gone.status.success(), "{gone:?}");
    let local = here.address.to_string();
    patiently("the local endpoint leaves", || {
        !proxy.page("/clusters").contains(&local)
    });
    until_says(&proxy, "there").await;

    drop(west_server);
    let away = Instant::now();
    while away.elapsed() < TTL / 2 {
        assert_eq!(
            answer(&proxy).await,
            (200, "there".to_owned()),
            "the last state stays"
        );
    }
    let expired = "longer than --endpoint-ttl: its 1 EndpointSlices are not used";
    patiently("its endpoints leave", || proxy.stderr().contains(expired));
    assert!(away.elapsed() >= TTL);
    let address = there.address.to_string();
    patiently("no cluster has them", || {
        !proxy.page("/clusters").contains(&address)
    });
    assert_eq!(answer(&proxy).await.0, 503);

    let _west = Control::start(&west, &listen);
    patiently("they are back", || {
        proxy.page("/clusters").contains(&address)
    });
    until_says(&proxy, "there").await;
}
