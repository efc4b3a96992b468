//! Several replicas on one etcd.

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
    // The CA and the tokens are shared: a client of the first replica is one of the second.
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
