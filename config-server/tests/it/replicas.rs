//! Several replicas that share one etcd.

use serde_json::json;

use crate::etcd::Etcd;
use crate::support::TestServer;

const GTPS: &str = "/apis/flomesh.io/v1alpha1/namespaces/ns1/globaltrafficpolicies";

fn policy(name: &str) -> serde_json::Value {
    json!({
        "apiVersion": "flomesh.io/v1alpha1", "kind": "GlobalTrafficPolicy",
        "metadata": {"name": name}, "spec": {"lbType": "Locality"},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn write_at_one_replica_reaches_watches_of_another() {
    let Some(etcd) = Etcd::start() else { return };
    let settings = etcd.settings();
    let (one, two) = (
        TestServer::on(settings.clone()).await,
        TestServer::on(settings).await,
    );
    let mut first = one.admin().await;
    let created = first.post(GTPS, &policy("a")).await.body;
    let revision = created["metadata"]["resourceVersion"].as_str().unwrap();
    // The CA and tokens are shared, so that a client of one replica works with another.
    let ca = one.data.path().join("ca.crt");
    let token = one.token("admin");
    let connect = async || crate::support::Client::connect(two.address, &ca, Some(&token)).await;
    let read = connect().await.get(&format!("{GTPS}/a")).await;
    assert_eq!(read.body, created);
    let path = format!("{GTPS}?watch=1&resourceVersion={revision}");
    let mut lines = connect().await.watch(&path).await;
    first.post(GTPS, &policy("b")).await;
    assert_eq!(lines.step().await, "ADDED b");
    first.delete(&format!("{GTPS}/a")).await;
    assert_eq!(lines.step().await, "DELETED a");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_replica_leads() {
    let Some(etcd) = Etcd::start() else { return };
    let settings = etcd.settings();
    let (one, two) = (
        TestServer::on(settings.clone()).await,
        TestServer::on(settings).await,
    );
    let limit = std::time::Duration::from_secs(30);
    let chosen = tokio::time::timeout(limit, async {
        while !one.store.is_leader() && !two.store.is_leader() {
            tokio::task::yield_now().await;
        }
    });
    chosen.await.expect("a replica leads");
    assert_ne!(one.store.is_leader(), two.store.is_leader());
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_that_reports_to_one_replica_is_known_to_others() {
    let Some(etcd) = Etcd::start() else { return };
    let settings = etcd.settings();
    let (one, two) = (
        TestServer::on(settings.clone()).await,
        TestServer::on(settings).await,
    );
    let path = "/apis/strait.io/v1alpha1/namespaces/edge/proxies/a";
    let report = json!({
        "apiVersion": "strait.io/v1alpha1", "kind": "Proxy", "metadata": {"name": "a"},
        "spec": {"mode": "gateway"}, "status": {"revision": "7"},
    });
    let (mut first, mut second) = (one.admin().await, two.admin().await);
    let before = one.store.history().latest();
    assert_eq!(first.put(path, &report).await.code, 200);
    let until = async |second: &mut crate::support::Client, code: u16| {
        let limit = std::time::Duration::from_secs(20);
        let reached = tokio::time::timeout(limit, async {
            loop {
                let read = second.get(path).await;
                if read.code == code {
                    return read.body;
                }
                tokio::task::yield_now().await;
            }
        });
        reached.await.expect("the other replica says so")
    };
    let read = until(&mut second, 200).await;
    assert_eq!(read["spec"]["mode"], "gateway");
    assert_eq!(read["status"]["revision"], "7");
    let mut changes = one.store.history().since(before, 10).unwrap();
    // The first start may create one late.
    changes.retain(|change| &*change.key != "/core/namespaces/default");
    assert_eq!(changes, [], "no watch of objects gets a change");
    assert_eq!(first.delete(path).await.code, 200);
    until(&mut second, 404).await;
}
